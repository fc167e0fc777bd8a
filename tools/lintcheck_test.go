// Package tools pins the development tools and tests their configuration.
package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the section want of testdata/lintcheck.txtar")

const (
	toyFile    = "testdata/lintcheck.txtar"
	configFile = "../.golangci.yml"
)

// TestLintRules runs the linter, with the project's own configuration, on a toy
// tree that breaks every rule, and compares all it says with what is written
// down. Then it asks that every rule of the configuration was among it: a rule
// that reports nothing there is a rule nobody has seen work.
func TestLintRules(t *testing.T) {
	toy, err := txtar.ParseFile(toyFile)
	if err != nil {
		t.Fatal(err)
	}
	var want string
	toy.Files = slices.DeleteFunc(toy.Files, func(f txtar.File) bool {
		if f.Name != "want" {
			return false
		}
		want = string(f.Data)
		return true
	})

	got := lint(t, toy)

	for _, said := range promises(t) {
		if !strings.Contains(got, said) {
			t.Errorf("no line of the toy tree provokes: %s", said)
		}
	}
	if got == want {
		return
	}
	if *update {
		toy.Files = append(toy.Files, txtar.File{Name: "want", Data: []byte(got)})
		if err := os.WriteFile(toyFile, txtar.Format(toy), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("the linter speaks differently of the toy tree (-update accepts it):")
	wantLines, gotLines := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, l := range wantLines {
		if !slices.Contains(gotLines, l) {
			t.Log("- " + l)
		}
	}
	for _, l := range gotLines {
		if !slices.Contains(wantLines, l) {
			t.Log("+ " + l)
		}
	}
}

// lint writes the toy tree out and returns the linter's findings, one a line,
// sorted: file:line: linter: message.
func lint(t *testing.T, toy *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	config, err := os.ReadFile(configFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(toy.Files, txtar.File{Name: ".golangci.yml", Data: config}) {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	path, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "golangci-lint").Output()
	if err != nil {
		t.Fatalf("building golangci-lint: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(path)), "run",
		"--output.json.path=stdout", "--show-stats=false", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 { // 1: there were findings
		t.Fatalf("golangci-lint: %v\n%s%s", err, out, &stderr)
	}

	var report struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct {
				Filename string
				Line     int
			}
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	lines := make([]string, 0, len(report.Issues))
	for _, i := range report.Issues {
		text := strings.ReplaceAll(i.Text, "\n", " ")
		lines = append(lines, fmt.Sprintf("%s:%d: %s: %s\n", filepath.ToSlash(i.Pos.Filename), i.Pos.Line, i.FromLinter, text))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// promises lists what the configuration says it will report: each linter, each
// list of depguard with each of its reasons, each message of forbidigo.
func promises(t *testing.T) []string {
	t.Helper()
	src, err := os.ReadFile(configFile)
	if err != nil {
		t.Fatal(err)
	}
	type linters struct {
		Enable   []string
		Settings struct {
			Depguard struct {
				Rules map[string]struct {
					Deny []struct{ Pkg, Desc string }
				}
			}
			Forbidigo struct {
				Forbid []struct{ Msg string }
			}
		}
	}
	var config struct{ Linters, Formatters linters }
	if err := yaml.Unmarshal(src, &config); err != nil {
		t.Fatal(err)
	}

	var said []string
	for _, name := range append(config.Linters.Enable, config.Formatters.Enable...) {
		said = append(said, ": "+name+": ")
	}
	for name, rule := range config.Linters.Settings.Depguard.Rules {
		for _, d := range rule.Deny {
			if d.Desc == "" {
				t.Errorf("depguard list %s denies %s without a reason", name, d.Pkg)
			}
			said = append(said, fmt.Sprintf("from list '%s': %s", name, d.Desc))
		}
	}
	for _, f := range config.Linters.Settings.Forbidigo.Forbid {
		said = append(said, f.Msg)
	}
	if len(said) < 40 {
		t.Errorf("only %d rules found: is %s still read rightly?", len(said), configFile)
	}
	slices.Sort(said)
	return said
}
