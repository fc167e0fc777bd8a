package bpe

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestEveryTokenIsOne: each token of a vocabulary, as a text of its own, would
// be one token if the pattern let it be; merged it is one as well.
func TestEveryTokenIsOne(t *testing.T) {
	s := new(scratch)
	for _, e := range encodings() {
		set := &e.vocabulary.tokens
		for r := range len(set.ends) - 1 {
			if !looksAt(r) {
				continue
			}
			token := set.bytes[set.ends[r]:set.ends[r+1]]
			if got := set.find(token, 0, len(token)); got != rank(r) {
				t.Fatalf("%s: %q is found as %d, want %d", e.name, token, got, r)
			}
			if len(token) == 1 {
				continue
			}
			if got, _ := e.vocabulary.merge(s, token, len(token)); got != 1 {
				t.Fatalf("%s: %q is merged to %d tokens", e.name, token, got)
			}
		}
		t.Logf("%s: %d tokens, the longest of %d bytes", e.name, len(set.ends)-1, set.limit)
	}
}

// TestWorkIsLinear: sixteen times the text is at most twenty times the work, if
// every level of the tree takes its part; and no piece is more work than foretold.
func TestWorkIsLinear(t *testing.T) {
	small, large := hostile(1<<13), hostile(1<<17)
	for i, name := range slices.Sorted(maps.Keys(small)) {
		if !looksAt(i) {
			continue
		}
		for _, e := range encodings() {
			_, _, one := e.vocabulary.CountWithin([]byte(small[name]), 1<<60)
			_, _, all := e.vocabulary.CountWithin([]byte(large[name]), 1<<60)
			if all > 20*one {
				t.Errorf("%s %s: %d times the work", e.name, name, all/one)
			}
		}
	}
	s := new(scratch)
	for name, text := range hostile(3000) {
		for n := 2; n < 3000; n = n*3/2 + 1 {
			if _, work := O200K().merge(s, []byte(text), n); missWork+work > mostWork(n) {
				t.Errorf("%s: %d bytes are work %d, foretold %d", name, n, missWork+work, mostWork(n))
			}
		}
	}
}

// TestCountWithin: what is read is whole pieces and counts as in the whole text,
// the work is within the limit, and a limit that is enough reads everything.
func TestCountWithin(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(hostile(1))) {
		if !looksAt(i) {
			continue
		}
		text := []byte(hostile(4000)[name])
		for _, e := range encodings() {
			v := e.vocabulary
			all, _, total := v.CountWithin(text, 1<<60)
			for _, limit := range []int{0, 1, 100, 5000, 50_000, total / 2, total} {
				tokens, read, work := v.CountWithin(text, limit)
				if work > limit {
					t.Errorf("%s %s: work %d within %d", e.name, name, work, limit)
				}
				if limit == 0 && (tokens != 0 || read != 0) {
					t.Errorf("%s %s: %d tokens for nothing", e.name, name, tokens)
				}
				rest, _, _ := v.CountWithin(text[read:], 1<<60)
				if tokens+rest != all {
					t.Errorf("%s %s: %d tokens of %d bytes and %d of the rest, want %d", e.name, name, tokens, read, rest, all)
				}
			}
			if _, read, _ := v.CountWithin(text[:1000], 1200*1001); read == 0 {
				t.Errorf("%s %s: a piece of at most 1000 bytes is not begun", e.name, name)
			}
			if _, read, _ := v.CountWithin(text, total+mostWork(3*len(text))); read != len(text) {
				t.Errorf("%s %s: %d of %d bytes within enough", e.name, name, read, len(text))
			}
		}
	}
}

// TestManyAtOnce: goroutines that share a memo do not change each other's
// answers. Run with -race.
func TestManyAtOnce(t *testing.T) {
	var group sync.WaitGroup
	for name, text := range hostile(3000) {
		for _, e := range encodings() {
			want := e.vocabulary.Count([]byte(text))
			for range 4 {
				group.Go(func() {
					if got := e.vocabulary.Count([]byte(text)); got != want {
						t.Errorf("%s %s: %d tokens, alone %d", e.name, name, got, want)
					}
				})
			}
		}
	}
	group.Wait()
}

// TestLongTokens: hundreds of blanks, dashes and letters, where tokens are
// longest.
func TestLongTokens(t *testing.T) {
	for _, r := range []string{" ", "-", "=", "*", "/", "\t", "a", "_", "\n", "#", "."} {
		for _, n := range []int{1, 2, 15, 16, 17, 63, 64, 80, 81, 128, 129, 300} {
			check(t, strings.Repeat(r, n))
			check(t, "x"+strings.Repeat(r, n)+"y")
		}
	}
}
