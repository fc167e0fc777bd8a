package estimator

import (
	"sync"

	"quotabroker/estimator/bpe"
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

// vocabulary is one loaded encoding. It is immutable.
type vocabulary struct {
	bpe     *bpe.Vocabulary
	classes func() *runeClasses // made when a text is first sampled
	weights *weights
}

// vocabularies load on first use and once per process, however many callers
// come first: cl100k takes about 40 ms, o200k about 85 ms, the classes of either
// another 60 ms.
var vocabularies = [numEncodings]func() *vocabulary{
	CL100K: sync.OnceValue(func() *vocabulary { return load(CL100K, bpe.CL100K()) }),
	O200K:  sync.OnceValue(func() *vocabulary { return load(O200K, bpe.O200K()) }),
}

func load(e Encoding, v *bpe.Vocabulary) *vocabulary {
	return &vocabulary{
		bpe:     v,
		classes: sync.OnceValue(func() *runeClasses { return classify(v) }),
		weights: &weightsOf[e],
	}
}

// Warm loads all vocabularies, so that no later call pays for it. It may be
// called at any time and from any goroutine.
func Warm() {
	for e := CL100K; e < numEncodings; e++ {
		vocabularies[e]().classes()
	}
}
