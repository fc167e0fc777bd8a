package config

import "slices"

// kind is what a node is.
type kind uint8

const (
	null    kind = iota // nothing was written
	scalar              // one value, as text: its type is its reader's affair
	list                // values in order
	mapping             // keys with values, in the order they were written
)

// String returns what messages call a node of the kind.
func (k kind) String() string {
	return [...]string{null: "empty", scalar: "a single value", list: "a list", mapping: "a mapping"}[k]
}

// place is where something was written: in a line of the file, in a variable of
// the environment, or, for the zero place, nowhere.
type place struct {
	line, column int // from 1, in characters
	variable     string
}

// node is a piece of a configuration before its meaning is known. It is less
// than YAML: scalars are text, keys are text and stand once, there are no
// references.
type node struct {
	kind    kind
	at      place
	text    string  // of a scalar
	items   []*node // of a list
	entries []entry // of a mapping
	flow    bool    // shown on one line
}

// entry is one key of a mapping.
type entry struct {
	key   string
	at    place
	value *node
}

func newScalar(text string) *node { return &node{kind: scalar, text: text} }

// find returns the index of a key among the entries, -1 where it is not there.
func (n *node) find(key string) int {
	return slices.IndexFunc(n.entries, func(e entry) bool { return e.key == key })
}

// get returns the value of a key, nil where the node has none.
func (n *node) get(key string) *node {
	if i := n.find(key); i >= 0 {
		return n.entries[i].value
	}
	return nil
}

// put sets a key, in its old place or at the end. What was empty becomes a mapping.
func (n *node) put(key string, at place, value *node) {
	n.kind = mapping
	if i := n.find(key); i >= 0 {
		n.entries[i] = entry{key, at, value}
		return
	}
	n.entries = append(n.entries, entry{key, at, value})
}

// move says that the node and all below it were written at another place.
func (n *node) move(to place) {
	n.at = to
	for _, item := range n.items {
		item.move(to)
	}
	for i := range n.entries {
		n.entries[i].at = to
		n.entries[i].value.move(to)
	}
}

// places finds where each path of a tree was written. A scalar stands where its
// value is, a mapping or list where its key is: there it is seen to be changed.
func places(root *node) map[string]place {
	out := map[string]place{}
	var walk func(path string, key place, n *node)
	walk = func(path string, key place, n *node) {
		out[path] = key
		if n.kind == scalar {
			out[path] = n.at
		}
		for i, item := range n.items {
			walk(index(path, i), item.at, item)
		}
		for _, e := range n.entries {
			walk(join(path, e.key), e.at, e.value)
		}
	}
	walk("", place{}, root)
	return out
}
