package bpe

import (
	"sync"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// encoding is one of ours beside tiktoken-go's.
type encoding struct {
	name       string
	vocabulary *Vocabulary
	reference  *tiktoken.Tiktoken
	pattern    *regexp2.Regexp
}

var encodings = sync.OnceValue(func() (all []encoding) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	for _, e := range []encoding{
		{name: "cl100k_base", vocabulary: CL100K(), pattern: regexp2.MustCompile(cl100kPattern, regexp2.None)},
		{name: "o200k_base", vocabulary: O200K(), pattern: regexp2.MustCompile(o200kPattern, regexp2.None)},
	} {
		reference, err := tiktoken.GetEncoding(e.name)
		if err != nil {
			panic(err)
		}
		e.reference = reference
		all = append(all, e)
	}
	return all
})

// check compares pieces with those of the pattern, and the count with
// tiktoken-go's, whose time grows with the square of the longest piece.
func check(tb testing.TB, text string) {
	tb.Helper()
	for _, e := range encodings() {
		e.checkPieces(tb, text)
		want := len(e.reference.EncodeOrdinary(text))
		if got := e.vocabulary.Count([]byte(text)); got != want {
			tb.Fatalf("%s %q: %d tokens, want %d", e.name, text, got, want)
		}
	}
}

func (e *encoding) checkPieces(tb testing.TB, text string) {
	tb.Helper()
	runes := []rune(text) // bad bytes are U+FFFD
	if string(runes) != text {
		text = string(runes)
	}
	from := 0
	for m, _ := e.pattern.FindStringMatch(text); m != nil; m, _ = e.pattern.FindNextMatch(m) {
		want := m.String()
		to := e.vocabulary.split(e.vocabulary.classes, []byte(text), from)
		if got := text[from:to]; got != want {
			tb.Fatalf("%s %q: piece %q at byte %d, want %q", e.name, text, got, from, want)
		}
		from = to
	}
	if from != len(text) {
		tb.Fatalf("%s %q: the pattern ends at %d", e.name, text, from)
	}
}
