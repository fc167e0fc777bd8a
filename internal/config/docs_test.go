package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"quotabroker/classes"
)

const docsPath = "../../docs/configuration.md"

func docs(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// block is a fenced code block: the word after the fence, and its text.
type block struct{ info, text string }

var fence = regexp.MustCompile("(?ms)^```([^\n]+)\n(.*?)^```$")

func blocks(t *testing.T) []block {
	t.Helper()
	var out []block
	for _, m := range fence.FindAllStringSubmatch(docs(t), -1) {
		out = append(out, block{m[1], m[2]})
	}
	return out
}

// TestDocsExamples runs every code block of the documentation: files load
// without a warning, broken ones fail with the very text that follows them.
func TestDocsExamples(t *testing.T) {
	seen := map[string]int{}
	all := blocks(t)
	for i, b := range all {
		kind, env, _ := strings.Cut(b.info, " ")
		seen[kind]++
		switch kind {
		case "yaml":
			f := parse(t, b.text, nil)
			if len(f.Warnings) > 0 {
				t.Errorf("warnings of %s: %q", b.text, f.Warnings)
			}
		case "yaml-broken":
			failsWith(t, b.text, nil, all[i+1].text)
		case "text-of":
			failsWith(t, minimal, []string{env}, b.text)
		case "yaml-part":
			f := parse(t, minimal+"    classes:\n"+indent(b.text, "      "), nil)
			if diff := cmp.Diff(Default().Pools["default"].Classes, f.Pools["default"].Classes); diff != "" {
				t.Error("the documented default classes are not the default classes:", diff)
			}
		case "sh":
			parse(t, minimal, strings.Split(strings.TrimSpace(b.text), "\n"))
		case "text":
		default:
			t.Errorf("a code block is of kind %q, which no test reads", kind)
		}
	}
	for _, kind := range []string{"yaml", "yaml-broken", "text-of", "yaml-part", "sh"} {
		if seen[kind] == 0 {
			t.Errorf("there is no code block of kind %s", kind)
		}
	}
}

func failsWith(t *testing.T, file string, env []string, want string) {
	t.Helper()
	_, err := Parse("quotabroker.yaml", []byte(file), env)
	if err == nil {
		t.Fatalf("this should not load:\n%s", file)
	}
	if diff := cmp.Diff(want, err.Error()+"\n"); diff != "" {
		t.Error(diff)
	}
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by) + "\n"
}

// TestDocsKeys compares the tables of the documentation with the keys: under
// each section's heading every key stands once, in the order of the keys, with its default.
func TestDocsKeys(t *testing.T) {
	text := docs(t)
	f := Default()
	f.Pools["default"].Limits = []classes.Limit{{Metric: classes.Tokens, Amount: 1, Span: 1}}
	var walk func(path string, v value)
	walk = func(path string, v value) {
		switch v := unwrap(v).(type) {
		case section:
			if path != "" {
				checkTable(t, text, path, v)
			}
			for _, f := range v.fields {
				walk(join(path, f.key), f.value)
			}
		case named:
			word, ok := map[string]string{"classes": "<class>", "tiers": "<tier>"}[path[strings.LastIndex(path, ".")+1:]]
			if !ok {
				word = "<name>"
			}
			walk(join(path, word), v.entry("example"))
		case ignored:
			if !strings.Contains(text, "`"+v.key+"`") {
				t.Errorf("section %s is not documented", v.key)
			}
		}
	}
	walk("", keysOf(f))
}

var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]*) \\| ([^|]*) \\| [^|]* \\|$")

func checkTable(t *testing.T, text, path string, s section) {
	t.Helper()
	_, under, ok := strings.Cut(text, "# `"+path+"`\n")
	if !ok {
		t.Errorf("section %s has no heading", path)
		return
	}
	under, _, _ = strings.Cut(under, "\n#")
	var keys []string
	for _, m := range row.FindAllStringSubmatch(under, -1) {
		key, cell := m[1], m[3]
		keys = append(keys, key)
		f, ok := s.find(key)
		if !ok {
			continue
		}
		n, code := f.value.show(), strings.HasPrefix(cell, "`") && strings.Count(cell, "`") == 2
		switch {
		case n == nil && cell != "none":
			t.Errorf("%s.%s has no default; the documentation says %s", path, key, cell)
		case code && n != nil && n.kind == scalar && cell != "`"+n.text+"`" && cell != "`\""+n.text+"\"`":
			t.Errorf("%s.%s is %s by default; the documentation says %s", path, key, n.text, cell)
		case n != nil && n.kind == scalar && !code && !slices.Contains([]string{"book", "age_after"}, key) && cell != "required":
			t.Errorf("%s.%s is %s by default; the documentation says %s", path, key, n.text, cell)
		}
	}
	want := s.keys()
	slices.Sort(want)
	slices.Sort(keys)
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("the table of %s has other keys: %s", path, diff)
	}
}
