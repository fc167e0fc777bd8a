package estimator

import (
	"bytes"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// document is a parsed body.
type document struct {
	body  []byte
	nodes []node
	index map[string]value // the fields of a root with very many members, else nil
}

// newDocument returns a body as a document. A root with so many members that
// going through them for each of its fields would take long is indexed.
func newDocument(body []byte, nodes []node) *document {
	const many = 1000
	d := &document{body: body, nodes: nodes}
	if nodes[0].kind != jsonObject || len(nodes) < 2*many {
		return d
	}
	members := 0
	for range d.root().members() {
		members++
	}
	if members < many {
		return d
	}
	index := make(map[string]value, len(rootFields))
	for key, val := range d.root().members() {
		if name := key.text(); rootFields[string(name)] {
			index[string(name)] = val
		}
	}
	d.index = index
	return d
}

// rootFields are the fields that any shape of body is asked for.
var rootFields = map[string]bool{
	"anthropic_version": true, "best_of": true, "dimensions": true, "encoding_format": true, "functions": true,
	"input": true, "instructions": true, "max_completion_tokens": true, "max_output_tokens": true, "max_tokens": true,
	"messages": true, "model": true, "n": true, "output_config": true, "output_format": true, "prompt": true,
	"response_format": true, "suffix": true, "system": true, "text": true, "tools": true,
}

// value is one value in a document. The zero value is an absent one; it reads
// as null.
type value struct {
	doc *document
	at  int32
}

func (d *document) root() value { return value{d, 0} }

func (v value) node() *node { return &v.doc.nodes[v.at] }

func (v value) kind() jsonKind {
	if v.doc == nil {
		return jsonNull
	}
	return v.node().kind
}

// isNull reports whether the value is null or absent.
func (v value) isNull() bool { return v.kind() == jsonNull }

// raw returns the value as it stands in the body, a string with its quotes.
func (v value) raw() []byte { n := v.node(); return v.doc.body[n.start:n.end] }

// elements returns the values of an array, none for any other kind.
func (v value) elements() iter.Seq2[int, value] {
	return func(yield func(int, value) bool) {
		if v.kind() != jsonArray {
			return
		}
		end := v.node().next
		for i, at := 0, v.at+1; at < end; i, at = i+1, v.doc.nodes[at].next {
			if !yield(i, value{v.doc, at}) {
				return
			}
		}
	}
}

// empty reports whether the value is an array or object with nothing in it.
func (v value) empty() bool { return v.kind() >= jsonArray && v.node().next == v.at+1 }

// length returns how many elements an array has, 0 for any other kind.
func (v value) length() (n int) {
	for range v.elements() {
		n++
	}
	return n
}

// members returns the keys and values of an object, none for any other kind.
func (v value) members() iter.Seq2[value, value] {
	return func(yield func(key, val value) bool) {
		if v.kind() != jsonObject {
			return
		}
		end := v.node().next
		for at := v.at + 1; at < end; at = v.doc.nodes[at+1].next {
			if !yield(value{v.doc, at}, value{v.doc, at + 1}) {
				return
			}
		}
	}
}

// get returns an object's member, the last one of that name as encoding/json
// does; absent, or no object: the zero value.
func (v value) get(name string) (found value) {
	if v.kind() != jsonObject {
		return value{}
	}
	if v.at == 0 && v.doc.index != nil && rootFields[name] {
		return v.doc.index[name]
	}
	nodes, end := v.doc.nodes, v.node().next
	for at := v.at + 1; at < end; {
		key := &nodes[at]
		if (int(key.end-key.start) == len(name)+2 || key.escaped) && (value{v.doc, at}).is(name) {
			found = value{v.doc, at + 1}
		}
		at = nodes[at+1].next
	}
	return found
}

// is reports whether the value is the string s.
func (v value) is(s string) bool {
	if v.kind() != jsonString {
		return false
	}
	if raw := v.raw(); !v.node().escaped {
		return string(raw[1:len(raw)-1]) == s
	}
	return string(v.text()) == s
}

// text returns a string's text, a view of the body where nothing in it is
// escaped; nil for any other kind.
func (v value) text() []byte {
	if v.kind() != jsonString {
		return nil
	}
	raw := v.raw()
	raw = raw[1 : len(raw)-1]
	if !v.node().escaped {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(out, raw...)
		}
		out = append(out, raw[:i]...)
		out, raw = unescape(out, raw[i:])
	}
	return out
}

// unescape appends the character that the escape at the beginning of s stands
// for and returns the rest of s. A surrogate without its half is U+FFFD.
func unescape(out, s []byte) (appended, rest []byte) {
	if s[1] != 'u' {
		c := s[1]
		if i := bytes.IndexByte([]byte("bfnrt"), c); i >= 0 {
			c = "\b\f\n\r\t"[i]
		}
		return append(out, c), s[2:]
	}
	r := hexRune(s)
	s = s[6:]
	if utf16.IsSurrogate(r) {
		both := utf8.RuneError
		if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
			both = utf16.DecodeRune(r, hexRune(s))
		}
		if both != utf8.RuneError {
			s = s[6:]
		}
		r = both
	}
	return utf8.AppendRune(out, r), s
}

func hexRune(escape []byte) rune {
	n, _ := strconv.ParseUint(string(escape[2:6]), 16, 32)
	return rune(n)
}

// compact appends the value as JSON without white space and with no escapes but
// those JSON asks for: what a program that serialises it would send. Strings for
// which drop says so are left empty.
func (v value) compact(out []byte, drop func(value) bool) []byte {
	switch v.kind() {
	case jsonNull:
		return append(out, "null"...)
	case jsonArray:
		out = append(out, '[')
		for i, e := range v.elements() {
			if i > 0 {
				out = append(out, ',')
			}
			out = e.compact(out, drop)
		}
		return append(out, ']')
	case jsonObject:
		open := len(out)
		out = append(out, '{')
		for key, val := range v.members() {
			if len(out) > open+1 {
				out = append(out, ',')
			}
			out = append(key.quoted(out), ':')
			out = val.compact(out, drop)
		}
		return append(out, '}')
	case jsonString:
		if drop(v) {
			return append(out, '"', '"')
		}
		return v.quoted(out)
	default: // numbers, true and false
		return append(out, v.raw()...)
	}
}

// compacted reports whether the value stands in the body as compact would write
// it, and without data URLs; it may miss some.
func (v value) compacted() bool {
	raw := v.raw()
	for i, c := range raw {
		if c <= ' ' || c == '\\' || c == ':' && bytes.HasSuffix(raw[:i], []byte("data")) {
			return false
		}
	}
	return true
}

// quoted appends a string with its quotes and only the escapes it needs.
func (v value) quoted(out []byte) []byte {
	if !v.node().escaped {
		return append(out, v.raw()...)
	}
	out = append(out, '"')
	for _, c := range v.text() {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= ' ':
			out = append(out, c)
		case bytes.IndexByte([]byte("\b\f\n\r\t"), c) >= 0:
			out = append(out, '\\', "bfnrt"[bytes.IndexByte([]byte("\b\f\n\r\t"), c)])
		default:
			out = append(out, `\u00`...)
			out = append(out, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
	}
	return append(out, '"')
}
