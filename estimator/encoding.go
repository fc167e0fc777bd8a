package estimator

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// Encoding is a public byte-pair vocabulary with its splitting pattern. The
// zero Encoding is none; where one is asked for, it means the configured
// fallback.
type Encoding uint8

// The encodings whose vocabularies are embedded.
const (
	CL100K Encoding = iota + 1 // cl100k_base: gpt-4, gpt-3.5, text-embedding-*
	O200K                      // o200k_base: gpt-4o and everything after it
	numEncodings
)

var encodingNames = [numEncodings]string{CL100K: "cl100k_base", O200K: "o200k_base"}

// String returns the published name, "" for a value that is no encoding.
func (e Encoding) String() string {
	if e >= numEncodings {
		return ""
	}
	return encodingNames[e]
}

// ParseEncoding returns the encoding of a published name. ok is false for any
// other text.
func ParseEncoding(name string) (e Encoding, ok bool) {
	for e := CL100K; e < numEncodings; e++ {
		if encodingNames[e] == name {
			return e, true
		}
	}
	return 0, false
}

func (e Encoding) valid() bool { return e > 0 && e < numEncodings }

// Splitting patterns as published in openai/tiktoken (tiktoken_ext/openai_public.py)
// and used by tiktoken-go. pieces.go depends on them: what it calls a boundary
// is one in both.
const (
	cl100kPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// vocabulary is one loaded encoding. It is immutable.
type vocabulary struct {
	bpe     *tiktoken.Tiktoken
	classes *runeClasses
	weights *weights
}

// vocabularies load on first use and once per process, however many callers
// come first: cl100k takes about 70 ms, o200k about 200 ms.
var vocabularies = [numEncodings]func() *vocabulary{
	CL100K: sync.OnceValue(func() *vocabulary { return load(CL100K, cl100kPattern) }),
	O200K:  sync.OnceValue(func() *vocabulary { return load(O200K, o200kPattern) }),
}

// load builds an encoding from the vocabulary file that the loader module
// embeds. It goes round tiktoken.GetEncoding, whose default loader dials out.
// A failure means that the binary itself is broken.
func load(e Encoding, pattern string) *vocabulary {
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(e.String() + ".tiktoken")
	if err != nil {
		panic(fmt.Sprintf("estimator: embedded vocabulary %s: %v", e, err))
	}
	core, err := tiktoken.NewCoreBPE(ranks, nil, pattern)
	if err != nil {
		panic(fmt.Sprintf("estimator: pattern of %s: %v", e, err))
	}
	return &vocabulary{
		bpe:     tiktoken.NewTiktoken(core, nil, nil),
		classes: classify(ranks),
		weights: &weightsOf[e],
	}
}

// Warm loads all vocabularies, so that no later call pays for it. It may be
// called at any time and from any goroutine.
func Warm() {
	for e := CL100K; e < numEncodings; e++ {
		vocabularies[e]()
	}
}

// encode counts text with the reference tokenizer. Special tokens are text. Its
// time grows with the square of the longest piece: callers bound that first.
func (v *vocabulary) encode(text []byte) int64 {
	if len(text) == 0 {
		return 0
	}
	if len(text) == 1 && text[0] < utf8.RuneSelf {
		return 1
	}
	return int64(len(v.bpe.EncodeOrdinary(string(text))))
}
