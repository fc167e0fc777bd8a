package config

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// EnvPrefix begins the name of every variable that overrides a key. After it
// comes the path of the key, with two underscores between its levels:
// QUOTABROKER_HTTP__LISTEN, QUOTABROKER_POOLS__DEFAULT__MARGIN.
const EnvPrefix = "QUOTABROKER_"

// levels separates the levels of a path in a variable's name.
const levels = "__"

// override is a variable that is meant for a key.
type override struct {
	variable, text string
	path           []string // as the variable spells it
}

// overrides finds the variables that are meant for keys, the shortest paths
// first, so that one key of a section can be set beside the section. A variable
// with the prefix and one level that is no section is somebody else's:
// QUOTABROKER_EVAL_KEY, or what an orchestrator sets for a service of our name.
func overrides(r *report, env []string) []override {
	var out []override
	root := keysOf(Default())
	for _, pair := range env {
		variable, text, _ := strings.Cut(pair, "=")
		rest, ok := strings.CutPrefix(variable, EnvPrefix)
		if !ok {
			continue
		}
		o := override{variable, text, strings.Split(rest, levels)}
		first := strings.ToLower(o.path[0])
		_, isSection := root.find(first)
		switch {
		case !isSection && len(o.path) > 1 && !strings.HasSuffix(rest, "_KEY"):
			r.bad(o.at(), "there is no section %s; %s", quote(first), root.instead(first))
		case !isSection && meantLevels(root, first):
			r.bad(o.at(), "two underscores separate the levels of a key, like %sHTTP__LISTEN", EnvPrefix)
		case isSection && !utf8.ValidString(text):
			r.bad(o.at(), "the value is not UTF-8 text")
		case isSection:
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b override) int {
		return cmp.Or(cmp.Compare(len(a.path), len(b.path)), cmp.Compare(a.variable, b.variable))
	})
	return out
}

// meantLevels reports whether a name with single underscores can only have been
// meant for a key: http_listen.
func meantLevels(root section, name string) bool {
	for _, f := range root.fields {
		tail, ok := strings.CutPrefix(name, f.key+"_")
		if s, isSection := f.value.(section); ok && isSection {
			if _, found := s.find(tail); found {
				return true
			}
		}
	}
	return false
}

// overlay puts the overrides into the tree of a file. What the file does not
// have, and an override changes only a part of, is first filled in with its
// default.
func overlay(r *report, root *node, all []override) {
	set := map[string]string{}
	for _, o := range all {
		path, ok := o.apply(r, root, keysOf(Default()))
		if other := set[path]; ok && other != "" {
			r.bad(o.at(), "this sets %s, and %s does so too; keep one of them", path, other)
		}
		set[path] = o.variable
	}
}

// apply walks from the top to the key of the override and sets it. It returns
// the path of the key.
func (o override) apply(r *report, n *node, v value) (path string, ok bool) {
	for i, word := range o.path {
		key, below, problem := step(n, v, word)
		if problem != "" {
			r.bad(o.at(), "%s", problem)
			return "", false
		}
		path = join(path, key)
		if _, skip := below.(ignored); skip {
			n.put(key, o.at(), &node{at: o.at()})
			return "", false
		}
		if i == len(o.path)-1 {
			next := o.node(r, below)
			if next == nil {
				return "", false
			}
			n.put(key, o.at(), next)
			return path, true
		}
		if !hasKeys(below) {
			r.bad(o.at(), "%s has no keys below it; set it whole", path)
			return "", false
		}
		next := n.get(key)
		if next == nil {
			next = absent(v, below)
			next.move(o.at())
			n.put(key, o.at(), next)
		}
		if next.kind != mapping && next.kind != null {
			return "", false // the file's own mistake, said when it is read
		}
		n, v = next, below
	}
	return "", false
}

// absent returns what stands for a group of keys that the file does not have: of a
// table or one of its rows the default. The keys of a section have their defaults
// anyway, and must not seem to be written: a key of another mode is warned of.
func absent(in, v value) *node {
	_, isRow := unwrap(in).(named)
	if _, isSection := unwrap(v).(section); isSection && !isRow {
		return &node{kind: mapping}
	}
	return unwrap(v).show()
}

func (o override) at() place { return place{variable: o.variable} }

// node returns the override's text as a node: as it is where a single value is
// wanted, else read as YAML; nil where that cannot be done.
func (o override) node(r *report, v value) *node {
	n := newScalar(o.text)
	if !isSingle(v) {
		inner := newReport()
		n = readYAML(inner, normalise([]byte(o.text)))
		for _, p := range inner.problems {
			r.bad(o.at(), "%s", p.Message)
		}
	}
	if n != nil {
		n.move(o.at())
	}
	return n
}

// step goes one level down, from the value behind a node, a section or a table
// of names, to the key that a word of a variable means. problem says why there
// is none.
func step(n *node, v value, word string) (key string, below value, problem string) {
	word = strings.ToLower(word)
	table, ok := unwrap(v).(named)
	if !ok {
		s := unwrap(v).(section)
		f, ok := s.find(word)
		if !ok {
			return "", nil, "there is no key " + quote(word) + " in " + s.what + "; " + s.instead(word)
		}
		return word, f.value, ""
	}
	var fits []string
	for _, e := range n.entries {
		if sameName(e.key, word) {
			fits = append(fits, e.key)
		}
	}
	if len(fits) > 1 {
		return "", nil, quote(word) + " could mean " + orList(fits) + "; change it in the file"
	}
	if len(fits) == 1 {
		word = fits[0]
	}
	return word, table.entry(word), ""
}

// sameName reports whether a word of a variable means a name in the file: case
// does not count, and an underscore stands for a hyphen too, which no shell
// allows in a variable.
func sameName(name, word string) bool {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_") == strings.ReplaceAll(word, "-", "_")
}

func unwrap(v value) value {
	if o, ok := v.(optional); ok {
		return unwrap(o.value)
	}
	return v
}

// isSingle tells a single value from a list or a mapping.
func isSingle(v value) bool {
	_, ok := unwrap(v).(interface{ single() })
	return ok
}

func hasKeys(v value) bool {
	switch unwrap(v).(type) {
	case section, named:
		return true
	}
	return false
}
