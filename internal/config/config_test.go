package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"quotabroker/broker"
	"quotabroker/classes"
)

const minimal = "pools:\n  default:\n    limits: [450k tokens/1m]\n"

func parse(t testing.TB, text string, env []string) *File {
	t.Helper()
	f, err := Parse("quotabroker.yaml", []byte(text), env)
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, text)
	}
	return f
}

func printed(t testing.TB, f *File) string {
	t.Helper()
	var b strings.Builder
	if err := Print(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// effective returns a file without its warnings, which are no part of what it means.
func effective(f *File) File {
	out := *f
	out.Warnings = nil
	return out
}

var perMinute = classes.Limit{Metric: classes.Tokens, Amount: 450_000, Span: time.Minute}

// What the file, the flags and nothing at all mean must be one thing.
func TestDefaults(t *testing.T) {
	fromFile := parse(t, minimal, nil)
	fromFlags, err := ForLimits([]classes.Limit{perMinute}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(effective(fromFile), effective(fromFlags)); diff != "" {
		t.Error("a minimal file and flags differ:", diff)
	}
	byHand := Default()
	byHand.Pools["default"].Limits = []classes.Limit{perMinute}
	if diff := cmp.Diff(effective(fromFile), effective(byHand)); diff != "" {
		t.Error("a minimal file and Default differ:", diff)
	}

	want := broker.DefaultConfig()
	want.Limits = []classes.Limit{perMinute}
	for i := range want.Classes {
		want.Classes[i].MaxWaiting = classes.DefaultMaxWaiting // which its 0 means
	}
	if diff := cmp.Diff(want, fromFile.Pools["default"].Config); diff != "" {
		t.Error("a pool's defaults are not the broker's:", diff)
	}
	if len(fromFile.Warnings) > 0 {
		t.Error("the defaults warn:", fromFile.Warnings)
	}
}

// The classes of the design's sample say in full what the defaults are.
func TestFullSample(t *testing.T) {
	f, err := Load("../../testdata/config/full.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := f.Pools["default"]
	if diff := cmp.Diff(Default().Pools["default"].Classes, p.Classes); diff != "" {
		t.Error("the sample's classes are not the default ones:", diff)
	}
	if diff := cmp.Diff(classes.DefaultSources(), p.Sources); diff != "" {
		t.Error("the sample's sources are not the default ones:", diff)
	}
	share := 25 * classes.Percent
	if p.Concurrency != 200 || cmp.Diff(p.TenantShare, &share) != "" || len(p.Tiers) != 3 || p.Tenants["acme"] != "premium" {
		t.Errorf("the sample was read as %+v", p)
	}
	var said []string
	for _, w := range f.Warnings {
		said = append(said, strings.SplitN(w, ": ", 2)[1])
	}
	want := []string{
		"nats.store_dir is not used: this version keeps everything in memory, so a restart begins with an empty window",
		"models is not used by this version: every ask names its pool",
		"profile openai is charged as generic in this version: input plus output, settled both ways",
		"gateway is not in this version; the section is ignored",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error("warnings:", diff)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "quotabroker.yaml")
	if err := os.WriteFile(file, []byte(minimal), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Load(file, []string{"QUOTABROKER_HTTP__LISTEN=127.0.0.1:1", "HOME=/"})
	if err != nil || f.HTTP.Listen != "127.0.0.1:1" {
		t.Error("Load:", f, err)
	}
	if _, err := Load(filepath.Join(dir, "absent.yaml"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file that is not there:", err)
	}
	if _, err := Load(dir, nil); err == nil {
		t.Error("a folder was loaded")
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("# \n", maxBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, nil); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
		t.Error("a file that is too large:", err)
	}
}

// The limits of the flags go before those of the environment, and are checked.
func TestForLimits(t *testing.T) {
	env := []string{"QUOTABROKER_POOLS__DEFAULT__LIMITS=[1 tokens/1m]", "QUOTABROKER_POOLS__DEFAULT__MARGIN=3%"}
	f, err := ForLimits([]classes.Limit{perMinute}, env)
	if err != nil {
		t.Fatal(err)
	}
	p := f.Pools["default"]
	if p.Margin != 3*classes.Percent || len(p.Limits) != 1 || p.Limits[0] != perMinute {
		t.Errorf("margin %s, limits %v", p.Margin, p.Limits)
	}
	for _, c := range []struct {
		limits []classes.Limit
		env    []string
		want   string
	}{
		{nil, nil, "there are no pools; write at least pools: {default: {limits: [450k tokens/1m]}}"},
		{[]classes.Limit{{Metric: classes.Tokens, Amount: -1, Span: time.Minute}}, nil, "pools.default.limits[0]: the amount is -1; it must be between 0 and 1000000000000"},
		{[]classes.Limit{perMinute}, []string{"QUOTABROKER_NATS__MODE=cluster"}, "QUOTABROKER_NATS__MODE: cluster mode is not in this version; nats.mode must be embedded or external"},
	} {
		if _, err := ForLimits(c.limits, c.env); err == nil || err.Error() != c.want {
			t.Errorf("ForLimits(%v, %q): %v\nwant %s", c.limits, c.env, err, c.want)
		}
	}
}

// A caller can take an error apart.
func TestErrorIsTyped(t *testing.T) {
	_, err := Parse("f.yaml", []byte("a: 1\npools: {default: {limits: [1 tokens/1m]}}\nb: 1\n"), []string{"QUOTABROKER_HTTP__A=1"})
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != 3 {
		t.Fatalf("%#v", err)
	}
	if e.Problems[0].Line != 1 || e.Problems[1].Line != 3 || e.Problems[2].Variable != "QUOTABROKER_HTTP__A" {
		t.Errorf("%+v", e.Problems)
	}
}

func TestHash(t *testing.T) {
	a, b := parse(t, minimal, nil), parse(t, "# the same\n"+minimal+"    margin: 2%\ngateway: {}\n", nil)
	if a.Hash() != b.Hash() || len(a.Hash()) != 12 {
		t.Errorf("equal configurations have hashes %s and %s", a.Hash(), b.Hash())
	}
	if c := parse(t, minimal+"    margin: 3%\n", nil); c.Hash() == a.Hash() {
		t.Error("another margin has the same hash")
	}
}

// Lines and columns are those the operator sees, whatever the editor left there.
func TestPositions(t *testing.T) {
	for name, text := range map[string]string{
		"carriage returns": "http:\r\n  lösten: x\r\npools: {default: {limits: [1 tokens/1m]}}\r\n",
		"old returns":      "http:\r  lösten: x\rpools: {default: {limits: [1 tokens/1m]}}\r",
		"byte order mark":  "\ufeffhttp:\n  lösten: x\npools: {default: {limits: [1 tokens/1m]}}\n",
	} {
		_, err := Parse("f", []byte(text), nil)
		want := "f:2:3: unknown key \"lösten\" in http; did you mean listen?\n     1 | http:\n     2 |   lösten: x\n       |   ^"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
	}
	_, err := Parse("f", []byte("http:\n  é: \xff"), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "f:2:6: the file is not UTF-8") {
		t.Error(err)
	}
}

// What a variable holds need not be text.
func TestVariableIsNotText(t *testing.T) {
	_, err := Parse("f", []byte(minimal), []string{"QUOTABROKER_NATS__PREFIX=\xff"})
	if want := "QUOTABROKER_NATS__PREFIX: the value is not UTF-8 text"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// Whatever a file holds, reading it ends soon.
func TestReadingEnds(t *testing.T) {
	many := func(s string, bytes int) string { return strings.Repeat(s, bytes/len(s)) }
	for name, text := range map[string]string{
		"too many keys":   many("a:\n", maxBytes),
		"just many keys":  many("a:\n", 20_000),
		"too many items":  "[" + many("1,", maxBytes-1),
		"just many items": "[" + many("1,", 60_000),
		"brackets":        many("[", 150_000),
		"braces":          many("{a: ", 200_000),
		"dashes":          many("- ", 300_000),
		"questions":       many("? ", 300_000),
		"aliases":         "a: &a [1]\n" + many("b: *a\n", 200_000),
		"one line":        "a: " + many("x", maxBytes-3),
		"many lines":      "a: |\n" + many("  x\n", 400_000),
		"deep":            deep(400),
	} {
		start := time.Now()
		_, err := Parse("f", []byte(text), nil)
		if took := time.Since(start); err == nil || took > 30*time.Second || len(err.Error()) > 2000 {
			t.Errorf("%s: took %v, error %v", name, took, err != nil)
		}
	}
}

func deep(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
