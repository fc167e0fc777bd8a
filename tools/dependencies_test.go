package tools

import (
	"os"
	"regexp"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestDependenciesAreExplained asks that docs/dependencies.md names every direct
// dependency at the version in use, and none that has gone.
func TestDependenciesAreExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]string{} // module → version
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+) \| (v[0-9][^ ,|]*)`).FindAllSubmatch(page, -1) {
		explained[string(row[1])] = string(row[2])
	}

	used := map[string]string{}
	// The root comes last: where both modules use something, its version counts.
	for _, name := range []string{"go.mod", "../go.mod"} {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		mod, err := modfile.Parse(name, src, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range mod.Require {
			used[r.Mod.Path] = r.Mod.Version
			if !r.Indirect && explained[r.Mod.Path] == "" {
				t.Errorf("%s requires %s, which docs/dependencies.md does not explain", name, r.Mod.Path)
			}
		}
	}
	for path, version := range explained {
		switch used[path] {
		case version:
		case "":
			t.Errorf("docs/dependencies.md explains %s, which nothing requires", path)
		default:
			t.Errorf("docs/dependencies.md says %s %s; in use is %s", path, version, used[path])
		}
	}
}
