package bpe

import (
	"unicode"
	"unicode/utf8"
)

// class is a set of the kinds of runes that the patterns tell apart. A rune has
// one of them, but line breaks, which are white space as well. The end of a text
// has none.
type class uint8

const (
	upper   class = 1 << iota // Lu, Lt
	lower                     // Ll
	letter                    // Lm, Lo: letters without case
	mark                      // M
	number                    // N
	space                     // \s
	newline                   // \r, \n
	other                     // everything else
)

const (
	letters = upper | lower | letter // \p{L}
	head    = upper | letter | mark  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	body    = lower | letter | mark  // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
	symbols = other | mark           // [^\s\p{L}\p{N}]
)

const (
	pageBits = 8
	pageSize = 1 << pageBits
)

// classTable gives each rune its class, in pages of 256 runes of which equal ones
// are stored once. The tables are those of package unicode, as they are for the
// regular expressions of tiktoken-go.
type classTable struct {
	ascii [utf8.RuneSelf]class
	page  [(unicode.MaxRune + 1) >> pageBits]uint8 // of pages
	pages [][pageSize]class
}

func newClassTable() *classTable {
	all := make([]class, unicode.MaxRune+1)
	for r := range all {
		all[r] = other
	}
	for name, c := range map[string]class{
		"Lu": upper, "Lt": upper, "Ll": lower, "Lm": letter, "Lo": letter, "M": mark, "N": number,
	} {
		fill(all, unicode.Categories[name], c)
	}
	fill(all, unicode.White_Space, space) // what unicode.IsSpace is
	all['\r'] |= newline
	all['\n'] |= newline

	t := new(classTable)
	copy(t.ascii[:], all)
	known := map[[pageSize]class]uint8{}
	for i := range t.page {
		p := [pageSize]class(all[i<<pageBits:])
		at, ok := known[p]
		if !ok {
			at = uint8(len(t.pages))
			known[p] = at
			t.pages = append(t.pages, p)
		}
		t.page[i] = at
	}
	return t
}

func fill(all []class, table *unicode.RangeTable, c class) {
	for _, r := range table.R16 {
		for at := int(r.Lo); at <= int(r.Hi); at += int(r.Stride) {
			all[at] = c
		}
	}
	for _, r := range table.R32 {
		for at := int(r.Lo); at <= int(r.Hi); at += int(r.Stride) {
			all[at] = c
		}
	}
}

// of returns the class of a rune.
func (t *classTable) of(r rune) class { return t.pages[t.page[r>>pageBits]][r&(pageSize-1)] }

// at returns the class of the rune at a place in text and its length, zeros at
// the end.
func (t *classTable) at(text []byte, i int) (c class, size int) {
	if i >= len(text) {
		return 0, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return t.ascii[b], 1
	}
	return t.wide(text[i:])
}

// wide returns the class of the rune, not ASCII, that text begins with.
func (t *classTable) wide(text []byte) (c class, size int) {
	r, size := utf8.DecodeRune(text)
	return t.of(r), size
}

// run returns where the run of runes of the given classes that begins at i ends.
func (t *classTable) run(text []byte, i int, of class) int {
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf {
			if t.ascii[b]&of == 0 {
				return i
			}
			i++
			continue
		}
		c, size := t.wide(text[i:])
		if c&of == 0 {
			return i
		}
		i += size
	}
	return i
}
