package bpe

import (
	"container/heap"
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
	ranks      map[string]int
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
		if e.ranks, err = loader.NewOfflineLoader().LoadTiktokenBpe(e.name + ".tiktoken"); err != nil {
			panic(err)
		}
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

// countLong is tiktoken-go's count of any text in n·log n: the pieces of the
// pattern, and a merge that is proven equal to tiktoken-go's by TestLongTexts.
func (e *encoding) countLong(text string) (tokens int) {
	for m, _ := e.pattern.FindStringMatch(text); m != nil; m, _ = e.pattern.FindNextMatch(m) {
		tokens += e.merge(m.String())
	}
	return tokens
}

// merge counts the tokens of one piece: the pair of lowest rank, leftmost first,
// until there is none. It is n·log n, for pieces that tiktoken-go takes minutes for.
func (e *encoding) merge(piece string) int {
	n := len(piece)
	next, prev := make([]int, n+1), make([]int, n+1)
	for i := range n + 1 {
		next[i], prev[i] = i+1, i-1
	}
	var queue joints
	push := func(i int) {
		if i < 0 || next[i] >= n {
			return
		}
		end := next[next[i]]
		if rank, ok := e.ranks[piece[i:end]]; ok {
			heap.Push(&queue, joint{rank, i, end})
		}
	}
	for i := range n {
		push(i)
	}
	tokens := int(n)
	gone := make([]bool, n+1)
	for queue.Len() > 0 {
		p := heap.Pop(&queue).(joint)
		if gone[p.at] || next[p.at] >= n || next[next[p.at]] != p.end {
			continue
		}
		gone[next[p.at]] = true
		next[p.at], prev[p.end] = p.end, p.at
		tokens--
		push(p.at)
		push(prev[p.at])
	}
	return tokens
}

type joint struct{ rank, at, end int }

type joints []joint

func (h joints) Len() int      { return len(h) }
func (h joints) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *joints) Push(x any)   { *h = append(*h, x.(joint)) }
func (h joints) Less(i, j int) bool {
	return h[i].rank < h[j].rank || h[i].rank == h[j].rank && h[i].at < h[j].at
}

func (h *joints) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
