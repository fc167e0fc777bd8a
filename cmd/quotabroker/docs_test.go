package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// docs/cli.md names every command, and the exit codes that the help names.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range parser.Model.Children {
		if !strings.Contains(string(page), "\n| `"+c.Name+"` |") {
			t.Errorf("docs/cli.md lacks the command %s", c.Name)
		}
	}
	_, section, _ := strings.Cut(string(page), "## Exit codes")
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(section, -1) {
		documented = append(documented, m[1])
	}
	helped := regexp.MustCompile(`\b(\d|\d{3})\b`).FindAllString(strings.ReplaceAll(exitCodes, "128 + N", ""), -1)
	slices.Sort(documented)
	slices.Sort(helped)
	if !slices.Equal(documented, helped) {
		t.Errorf("docs/cli.md has the codes %v, the help %v", documented, helped)
	}
}
