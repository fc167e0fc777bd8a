package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"quotabroker/internal/config"
)

const testdata = "../../testdata/config"

// TestGolden runs the transcripts of testdata/config: a file in, then what it
// means or what is wrong with it. `go test ./internal/config -rewrite` writes
// them anew; review the difference.
//
//	env            sets the environment for the next parse
//	parse [print]  parses a file; prints the effective configuration where asked
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var env []string
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				switch d.Cmd {
				case "env":
					env = strings.Split(d.Input, "\n")
					return ""
				case "parse":
					out := parsed(t, d, env)
					env = nil
					return out
				}
				t.Fatalf("%s: there is no command %s", d.Pos, d.Cmd)
				return ""
			})
		})
	}
}

func parsed(t *testing.T, d *datadriven.TestData, env []string) string {
	t.Helper()
	f, err := config.Parse("quotabroker.yaml", []byte(d.Input), env)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	b.WriteString("ok\n")
	for _, w := range f.Warnings {
		b.WriteString("warning: " + w + "\n")
	}
	if d.HasArg("print") {
		if err := config.Print(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
