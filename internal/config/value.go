package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// value is one setting, or a group of them: it is read from a node into the Go
// value it is bound to, and shown as a node.
type value interface {
	// read reports what is wrong with the node, and then leaves the Go value alone.
	read(r *report, at spot, n *node)
	// show returns nil for what is not set.
	show() *node
}

// spot is where a value stands: its path from the top of the file, and what
// messages call it.
type spot struct{ path, name string }

// field binds a key to its value.
type field struct {
	key   string
	value value
}

// section is a mapping with fixed keys.
type section struct {
	what    string // what messages call it: "class batch"
	label   string // goes before the names of its keys in messages: "batch: "
	fields  []field
	flow    bool                    // shown on one line
	belongs func(key string) string // where an unknown key would be right; nil or "": nowhere
	then    func(n *node)           // completes what was read, where a default depends on another key
}

func (s section) read(r *report, at spot, n *node) {
	if !isMapping(r, at, n, "from its keys to values") {
		return
	}
	for _, e := range n.entries {
		path := join(at.path, e.key)
		f, ok := s.find(e.key)
		if !ok {
			r.cannot(path, e.at, "unknown key %s in %s; %s", quote(e.key), s.what, s.instead(e.key))
			continue
		}
		f.value.read(r, spot{path, s.label + e.key}, e.value)
	}
	if s.then != nil {
		s.then(n)
	}
}

func (s section) show() *node {
	out := &node{kind: mapping, flow: s.flow}
	for _, f := range s.fields {
		if n := f.value.show(); n != nil {
			out.entries = append(out.entries, entry{key: f.key, value: n})
		}
	}
	return out
}

func (s section) find(key string) (field, bool) {
	i := slices.IndexFunc(s.fields, func(f field) bool { return f.key == key })
	if i < 0 {
		return field{}, false
	}
	return s.fields[i], true
}

func (s section) keys() []string {
	var out []string
	for _, f := range s.fields {
		out = append(out, f.key)
	}
	return out
}

// instead says what an unknown key should have been.
func (s section) instead(key string) string {
	if s.belongs != nil && s.belongs(key) != "" {
		return s.belongs(key)
	}
	if near := nearest(key, s.keys()); near != "" {
		return "did you mean " + near + "?"
	}
	return "its keys are " + strings.Join(s.keys(), ", ")
}

// named is a mapping whose keys are names that the operator chooses. One that is
// in the file replaces the default one.
type named struct {
	example string
	clear   func()
	names   func() []string         // in the order they are shown
	entry   func(name string) value // made where it is not there; used before the next is asked for
}

func (m named) read(r *report, at spot, n *node) {
	if !isMapping(r, at, n, "from names, like "+m.example) {
		return
	}
	m.clear()
	for _, e := range n.entries {
		m.entry(e.key).read(r, spot{join(at.path, e.key), at.name + "." + e.key}, e.value)
	}
}

func (m named) show() *node {
	out := &node{kind: mapping}
	for _, name := range m.names() {
		out.entries = append(out.entries, entry{key: name, value: m.entry(name).show()})
	}
	return out
}

// isMapping says no where a node is neither a mapping nor empty, which is a
// mapping without keys.
func isMapping(r *report, at spot, n *node, like string) bool {
	if n.kind == mapping || n.kind == null {
		return true
	}
	r.cannot(at.path, n.at, "%s is %s; it must be a mapping %s", at.name, n.kind, like)
	return false
}

// one is a single value.
type one[T any] struct {
	get    func() T
	set    func(T)
	parse  func(text string) (T, error) // the error says what would be right
	format func(T) string
}

// bind makes a value of a variable.
func bind[T any](p *T, parse func(string) (T, error), format func(T) string) one[T] {
	return one[T]{func() T { return *p }, func(v T) { *p = v }, parse, format}
}

func (o one[T]) read(r *report, at spot, n *node) {
	switch n.kind {
	case scalar:
	case null:
		r.cannot(at.path, n.at, "%s has no value; write one, or leave the key out", at.name)
		return
	default:
		r.cannot(at.path, n.at, "%s is %s; it must be a single value", at.name, n.kind)
		return
	}
	v, err := o.parse(n.text)
	if err != nil {
		r.cannot(at.path, n.at, "%s is %s; %v", at.name, quote(n.text), err)
		return
	}
	o.set(v)
}

// single tells a single value from a group of them.
func (o one[T]) single() {}

func (o one[T]) show() *node { return newScalar(o.format(o.get())) }

// many is a list of single values.
type many[T any] struct {
	p       *[]T
	example string
	parse   func(text string) (T, error)
	format  func(T) string
}

func (m many[T]) read(r *report, at spot, n *node) {
	if n.kind != list {
		r.cannot(at.path, n.at, "%s is %s; it must be a list, like %s", at.name, n.kind, m.example)
		return
	}
	*m.p = nil
	for i, item := range n.items {
		var v T
		one := bind(&v, m.parse, m.format)
		one.read(r, spot{index(at.path, i), index(at.name, i)}, item)
		*m.p = append(*m.p, v)
	}
}

func (m many[T]) show() *node {
	out := &node{kind: list, flow: true}
	for _, v := range *m.p {
		out.items = append(out.items, newScalar(m.format(v)))
	}
	return out
}

// optional is a value that is not shown while it is unset.
type optional struct {
	value
	unset func() bool
}

func (o optional) show() *node {
	if o.unset() {
		return nil
	}
	return o.value.show()
}

// unlessZero shows a value only where the variable behind it is not zero.
func unlessZero[T comparable](p *T, v value) value {
	return optional{v, func() bool { var zero T; return *p == zero }}
}

// unlessEmpty shows a value only where the list behind it has items.
func unlessEmpty[T any](p *[]T, v value) value {
	return optional{v, func() bool { return len(*p) == 0 }}
}

// quote returns text from a file as messages show it: as it is where that cannot
// be misread, else in quotes, and not at any length.
func quote(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	for _, c := range text {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-.:/%*", c)
		if !plain {
			return strconv.Quote(text)
		}
	}
	if text == "" {
		return `""`
	}
	return text
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
