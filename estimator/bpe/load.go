package bpe

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"sync"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// Vocabulary counts the tokens of one encoding. What it answers never changes, so
// any number of goroutines may use it at once.
type Vocabulary struct {
	split   splitter
	classes *classTable
	tokens  tokenSet
	bytes   [256]rank      // of the tokens of one byte, which all are there
	twos    [256][256]rank // of those of two bytes, or none
	memo    memo           // of all longer ones
}

var (
	cl100k = sync.OnceValue(func() *Vocabulary { return load("cl100k_base.tiktoken", splitCL100K) })
	o200k  = sync.OnceValue(func() *Vocabulary { return load("o200k_base.tiktoken", splitO200K) })

	classes = sync.OnceValue(newClassTable)
	memory  = sync.Pool{New: func() any { return new(scratch) }}
)

// CL100K returns cl100k_base: gpt-4, gpt-3.5, text-embedding-*. The first call
// loads it, in some 40 ms.
func CL100K() *Vocabulary { return cl100k() }

// O200K returns o200k_base: gpt-4o and everything after it. The first call loads
// it, in some 85 ms.
func O200K() *Vocabulary { return o200k() }

// load reads a vocabulary file: a line for each token, in the order of their
// ranks, of its bytes in base64 and its rank. A failure means that the binary
// itself is broken.
func load(name string, split splitter) *Vocabulary {
	file, err := assets.Assets.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("bpe: embedded vocabulary %s: %v", name, err))
	}
	lines := bytes.Count(file, []byte("\n"))
	v := &Vocabulary{split: split, classes: classes(), tokens: newTokenSet(lines, len(file)/2)}
	for a := range v.twos {
		for b := range v.twos[a] {
			v.twos[a][b] = none
		}
	}
	var token []byte
	for r := rank(0); len(file) > 0; r++ {
		line, rest, _ := bytes.Cut(file, []byte("\n"))
		file = rest
		text, number, _ := bytes.Cut(line, []byte(" "))
		if token, err = base64.StdEncoding.AppendDecode(token[:0], text); err != nil || !is(number, r) {
			panic(fmt.Sprintf("bpe: embedded vocabulary %s: line %d is %q (%v)", name, r+1, line, err))
		}
		v.add(token, r)
	}
	return v
}

// add takes in the token of the next rank.
func (v *Vocabulary) add(token []byte, r rank) {
	v.tokens.add(token)
	switch len(token) {
	case 1:
		v.bytes[token[0]] = r
	case 2:
		v.twos[token[0]][token[1]] = r
	}
}

// is reports whether a decimal number is n.
func is(number []byte, n rank) bool {
	var got rank
	for _, c := range number {
		got = got*10 + rank(c-'0')
	}
	return got == n && len(number) > 0
}
