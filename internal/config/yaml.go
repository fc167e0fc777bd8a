package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// What a file may have at most. The library's parser is quadratic in the keys of
// a mapping and recurses into nesting: within these bounds it ends in seconds.
const (
	maxBytes  = 1 << 20
	maxTokens = 30_000
	maxDepth  = 32
)

// readYAML turns the text of a file into a tree. It reports what it refuses and
// goes on where it can; nil means that there is nothing to go on with.
func readYAML(r *report, data []byte) *node {
	if len(data) > maxBytes {
		r.bad(place{}, "the file has %d bytes; it may have at most %d", len(data), maxBytes)
		return nil
	}
	if countMarks(data) > 4*maxTokens {
		r.bad(place{}, "%s", tooLong)
		return nil
	}
	if at, ok := firstInvalid(data); !ok {
		r.bad(at, "the file is not UTF-8 text; save it as UTF-8")
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if at, problem := refuseTokens(tokens); problem != "" {
		r.bad(at, "%s", problem)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := syntax(err)
		r.bad(at, "this is not YAML: %s", message)
		return nil
	}
	return treeOf(r, file)
}

// countMarks counts what separates words: far more of it than a file may have
// words is not worth taking apart.
func countMarks(data []byte) int {
	n := 0
	for _, c := range data {
		if strings.IndexByte("\n,:-?[]{}&*!\"'", c) >= 0 {
			n++
		}
	}
	return n
}

// firstInvalid returns the place of the first byte that is not UTF-8.
func firstInvalid(data []byte) (place, bool) {
	at := place{line: 1, column: 1}
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		if c == utf8.RuneError && size == 1 {
			return at, false
		}
		at.column++
		if c == '\n' {
			at = place{line: at.line + 1, column: 1}
		}
		data = data[size:]
	}
	return place{}, true
}

// refuseTokens finds what no file may contain, before anything recurses into it.
func refuseTokens(tokens token.Tokens) (place, string) {
	if len(tokens) > maxTokens {
		return tokenPlace(tokens[maxTokens]), tooLong
	}
	depth, dashes, dashLine := 0, 0, 0
	for _, t := range tokens {
		at := tokenPlace(t)
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return at, "anchors (&), aliases (*) and merges (<<) are not accepted; write the values out, or quote the text"
		case token.TagType:
			return at, "tags (!) are not accepted; leave the tag out, or quote the text"
		case token.MappingKeyType:
			return at, "a key marked with ? is not accepted; write key: value, or quote the text"
		case token.DirectiveType:
			return at, "directives (%) are not accepted; leave the line out, or quote the text"
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
			if at.line != dashLine {
				dashes, dashLine = 0, at.line
			}
			dashes++
		default: // the parser's affair
		}
		if depth > maxDepth || dashes > maxDepth {
			return at, tooDeep
		}
	}
	return place{}, ""
}

var (
	tooDeep = fmt.Sprintf("this is nested more than %d levels deep; no key is", maxDepth)
	tooLong = fmt.Sprintf("the file is too long; it may have at most %d words and marks", maxTokens)
)

func tokenPlace(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{}
	}
	return place{line: max(t.Position.Line, 1), column: max(t.Position.Column, 1)}
}

// syntax takes the library's error apart.
func syntax(err error) (place, string) {
	var y yaml.Error
	if errors.As(err, &y) {
		message := y.GetMessage()
		if strings.Contains(message, "'\t'") {
			message = "a tab cannot indent; use spaces"
		}
		return tokenPlace(y.GetToken()), message
	}
	return place{}, err.Error()
}

// treeOf converts the one document of a file.
func treeOf(r *report, file *ast.File) *node {
	var root *node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		next := convert(r, doc.Body, 0)
		if root != nil {
			r.bad(next.at, "a second document begins here; the file must have one")
			return nil
		}
		root = next
	}
	if root == nil {
		return &node{}
	}
	return root
}

// convert turns one YAML node and all below it into ours.
func convert(r *report, n ast.Node, depth int) *node {
	at := tokenPlace(n.GetToken())
	if depth > maxDepth {
		r.bad(at, "%s", tooDeep)
		return &node{at: at}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			at = tokenPlace(n.Values[0].Key.GetToken()) // the library has the first colon
		}
		return convertMapping(r, n.Values, at, depth)
	case *ast.MappingValueNode:
		return convertMapping(r, []*ast.MappingValueNode{n}, at, depth)
	case *ast.SequenceNode:
		out := &node{kind: list, at: at}
		for _, item := range n.Values {
			out.items = append(out.items, convert(r, item, depth+1))
		}
		return out
	case *ast.NullNode:
		return &node{at: at}
	}
	text, ok := scalarText(n)
	if !ok {
		r.bad(at, "this kind of YAML (%s) is not accepted", n.Type())
	}
	return &node{kind: scalar, at: at, text: text}
}

func convertMapping(r *report, values []*ast.MappingValueNode, at place, depth int) *node {
	out := &node{kind: mapping, at: at}
	for _, v := range values {
		at := tokenPlace(v.Key.GetToken())
		key, ok := scalarText(v.Key)
		if !ok {
			r.bad(at, "a key must be a name")
			continue
		}
		value := convert(r, v.Value, depth+1)
		if i := out.find(key); i >= 0 {
			r.bad(at, "key %s is there twice; the first is on line %d", quote(key), out.entries[i].at.line)
			continue
		}
		out.entries = append(out.entries, entry{key, at, value})
	}
	return out
}

// scalarText returns a scalar's text: as it was meant for quoted and block
// scalars, as it was written for the rest, so that no word turns into a number,
// a truth or nothing behind the operator's back.
func scalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}
