package estimator

import (
	"bytes"
	"math"

	"quotabroker/wire"
)

// maxDepth is how many arrays and objects may stand in each other. Provider
// bodies nest some 10 deep; JSON Schemas may add 30.
const maxDepth = 64

type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

var jsonKindNames = [...]string{
	jsonNull: "null", jsonBool: "a boolean", jsonNumber: "a number",
	jsonString: "a string", jsonArray: "an array", jsonObject: "an object",
}

// node is one value of a body: where it stands, and the index of the node after
// it and all it holds. An object's members are a string node and a value each.
type node struct {
	start, end int32 // strings with their quotes
	next       int32
	kind       jsonKind
	escaped    bool // a string with backslashes
}

// parser reads a body once, into a flat list of nodes, and accepts exactly what
// encoding/json accepts, up to maxDepth. Strings are looked at but not copied.
type parser struct {
	body  []byte
	pos   int
	nodes []node
}

// parseJSON returns the nodes of a body; the first is the whole. Any error
// names the field "request".
func parseJSON(body []byte) ([]node, *wire.Error) {
	if len(body) > math.MaxInt32 {
		return nil, wire.BadField("request", "request has %d bytes; it must have at most %d", len(body), math.MaxInt32)
	}
	most := 1
	for _, c := range []string{",", ":", "[", "{"} {
		most += bytes.Count(body, []byte(c)) // each begins at most one more value
	}
	p := parser{body: body, nodes: make([]node, 0, most)}
	if err := p.value(0); err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(body) {
		return nil, p.broken()
	}
	return p.nodes, nil
}

func (p *parser) broken() *wire.Error {
	if p.pos >= len(p.body) {
		return wire.BadField("request", "request is not valid JSON: it ends too early")
	}
	return wire.BadField("request", "request is not valid JSON at byte %d", p.pos)
}

func (p *parser) space() {
	for p.pos < len(p.body) {
		switch p.body[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	p.space()
	if p.pos < len(p.body) {
		return p.body[p.pos]
	}
	return 0
}

func (p *parser) value(depth int) *wire.Error {
	c := p.peek()
	if depth >= maxDepth && (c == '[' || c == '{') {
		return wire.BadField("request", "request nests deeper than %d levels", maxDepth)
	}
	at := len(p.nodes)
	if p.pos+1 < len(p.body) && p.body[p.pos+1] == c+2 && (c == '{' || c == '[') {
		kind := jsonObject // with nothing in it, of which a body may have a million
		if c == '[' {
			kind = jsonArray
		}
		p.nodes = append(p.nodes, node{start: int32(p.pos), end: int32(p.pos + 2), next: int32(at + 1), kind: kind})
		p.pos += 2
		return nil
	}
	p.nodes = append(p.nodes, node{start: int32(p.pos)})
	var err *wire.Error
	var kind jsonKind
	switch {
	case c == '"':
		p.nodes = p.nodes[:at]
		return p.str()
	case c == '{':
		kind, err = jsonObject, p.object(depth)
	case c == '[':
		kind, err = jsonArray, p.array(depth)
	case c == '-' || c >= '0' && c <= '9':
		kind, err = jsonNumber, p.number()
	case c == 't':
		kind, err = jsonBool, p.word("true")
	case c == 'f':
		kind, err = jsonBool, p.word("false")
	case c == 'n':
		kind, err = jsonNull, p.word("null")
	default:
		err = p.broken()
	}
	if err != nil {
		return err
	}
	p.nodes[at].kind, p.nodes[at].end, p.nodes[at].next = kind, int32(p.pos), int32(len(p.nodes))
	return nil
}

func (p *parser) word(w string) *wire.Error {
	if !bytes.HasPrefix(p.body[p.pos:], []byte(w)) {
		return p.broken()
	}
	p.pos += len(w)
	return nil
}

func (p *parser) array(depth int) *wire.Error {
	p.pos++
	if p.peek() == ']' {
		p.pos++
		return nil
	}
	for {
		if err := p.value(depth + 1); err != nil {
			return err
		}
		if done, err := p.comma(']'); done || err != nil {
			return err
		}
	}
}

func (p *parser) object(depth int) *wire.Error {
	p.pos++
	if p.peek() == '}' {
		p.pos++
		return nil
	}
	for {
		if p.peek() != '"' {
			return p.broken()
		}
		if err := p.str(); err != nil {
			return err
		}
		if p.peek() != ':' {
			return p.broken()
		}
		p.pos++
		if err := p.value(depth + 1); err != nil {
			return err
		}
		if done, err := p.comma('}'); done || err != nil {
			return err
		}
	}
}

// comma passes what follows an element: a comma, or the closing bracket.
func (p *parser) comma(closing byte) (done bool, err *wire.Error) {
	c := p.peek()
	if c != ',' && c != closing {
		return false, p.broken()
	}
	p.pos++
	return c == closing, nil
}

func (p *parser) number() *wire.Error {
	p.skip('-', '-')
	if !p.skip('0', '0') && !p.digits() {
		return p.broken()
	}
	if p.skip('.', '.') && !p.digits() {
		return p.broken()
	}
	if p.skip('e', 'E') {
		p.skip('+', '-')
		if !p.digits() {
			return p.broken()
		}
	}
	return nil
}

// skip passes one byte if it is either of two.
func (p *parser) skip(a, b byte) bool {
	if p.pos < len(p.body) && (p.body[p.pos] == a || p.body[p.pos] == b) {
		p.pos++
		return true
	}
	return false
}

// digits passes digits and reports whether there were any.
func (p *parser) digits() bool {
	from := p.pos
	for p.pos < len(p.body) && '0' <= p.body[p.pos] && p.body[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > from
}

// str passes a string. The scan is a table look-up a byte.
func (p *parser) str() *wire.Error {
	n := node{start: int32(p.pos), kind: jsonString}
	p.pos++
	for {
		for p.pos < len(p.body) && !stringStops[p.body[p.pos]] {
			p.pos++
		}
		if p.pos >= len(p.body) {
			return p.broken()
		}
		switch p.body[p.pos] {
		case '"':
			p.pos++
			n.end, n.next = int32(p.pos), int32(len(p.nodes)+1)
			p.nodes = append(p.nodes, n)
			return nil
		case '\\':
			n.escaped = true
			if !p.escape() {
				return p.broken()
			}
		default: // a control character
			return p.broken()
		}
	}
}

// escape passes a backslash and what belongs to it.
func (p *parser) escape() bool {
	p.pos++
	if p.pos >= len(p.body) {
		return false
	}
	c := p.body[p.pos]
	if bytes.IndexByte([]byte(`"\/bfnrt`), c) >= 0 {
		p.pos++
		return true
	}
	if c != 'u' {
		return false
	}
	for range 4 {
		p.pos++
		if p.pos >= len(p.body) || !isHex(p.body[p.pos]) {
			return false
		}
	}
	p.pos++
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// stringStops marks the bytes a string does not simply run over.
var stringStops = func() (stops [256]bool) {
	for c := range byte(' ') {
		stops[c] = true
	}
	stops['"'], stops['\\'] = true, true
	return stops
}()
