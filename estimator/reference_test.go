package estimator

import (
	"container/heap"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// reference counts any text in n·log n: the splitting of tiktoken-go, and a
// merge of its own that is proven equal to tiktoken-go's below. It makes the
// true counts of the golden files.
type reference struct {
	ranks   map[string]int
	pattern *regexp2.Regexp
}

func newReference(tb testing.TB, e Encoding) *reference {
	tb.Helper()
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(e.String() + ".tiktoken")
	if err != nil {
		tb.Fatal(err)
	}
	pattern := map[Encoding]string{CL100K: cl100kPattern, O200K: o200kPattern}[e]
	return &reference{ranks: ranks, pattern: regexp2.MustCompile(pattern, regexp2.None)}
}

func (r *reference) count(text string) (tokens int64) {
	for m, _ := r.pattern.FindStringMatch(text); m != nil; m, _ = r.pattern.FindNextMatch(m) {
		tokens += r.merge(m.String())
	}
	return tokens
}

// merge counts the tokens of one piece: the pair of lowest rank, leftmost first,
// until there is none.
func (r *reference) merge(piece string) int64 {
	n := len(piece)
	next, prev := make([]int, n+1), make([]int, n+1)
	for i := range n + 1 {
		next[i], prev[i] = i+1, i-1
	}
	var pairs pairHeap
	push := func(i int) {
		if i < 0 || next[i] >= n {
			return
		}
		end := next[next[i]]
		if rank, ok := r.ranks[piece[i:end]]; ok {
			heap.Push(&pairs, pair{rank, i, end})
		}
	}
	for i := range n {
		push(i)
	}
	tokens := int64(n)
	gone := make([]bool, n+1)
	for pairs.Len() > 0 {
		p := heap.Pop(&pairs).(pair)
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

type pair struct{ rank, at, end int }

type pairHeap []pair

func (h pairHeap) Len() int      { return len(h) }
func (h pairHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *pairHeap) Push(x any)   { *h = append(*h, x.(pair)) }
func (h pairHeap) Less(i, j int) bool {
	return h[i].rank < h[j].rank || h[i].rank == h[j].rank && h[i].at < h[j].at
}

func (h *pairHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// TestReferenceIsTiktoken compares the golden counts' maker, and the core, with
// tiktoken-go as it is meant to be used.
func TestReferenceIsTiktoken(t *testing.T) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	for e := CL100K; e < numEncodings; e++ {
		tk, err := tiktoken.GetEncoding(e.String())
		if err != nil {
			t.Fatal(err)
		}
		ref, v := newReference(t, e), vocabularies[e]()
		for name, text := range byName(hostile(500)) {
			text = replaced(text)
			want := int64(len(tk.EncodeOrdinary(text)))
			if got := ref.count(text); got != want {
				t.Errorf("%s %s: reference counts %d, want %d", e, name, got, want)
			}
			if got, exact := v.countAll([]byte(text)); exact && got != want {
				t.Errorf("%s %s: counted %d, want %d", e, name, got, want)
			}
		}
	}
}
