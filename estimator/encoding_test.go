package estimator

import (
	"strings"
	"sync"
	"testing"

	"quotabroker/internal/testlines"
)

func newEstimator(tb testing.TB, change func(*Options)) *Estimator {
	tb.Helper()
	opt := Default()
	opt.Seed[0] = 7
	if change != nil {
		change(&opt)
	}
	e, err := New(opt)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func TestEncodingNames(t *testing.T) {
	for e := CL100K; e < numEncodings; e++ {
		if got, ok := ParseEncoding(e.String()); !ok || got != e {
			t.Errorf("%s parses as %v, %v", e, got, ok)
		}
	}
	for _, name := range []string{"", "p50k_base", "O200K_BASE"} {
		if e, ok := ParseEncoding(name); ok {
			t.Errorf("%q parses as %s", name, e)
		}
	}
	if Encoding(0).String() != "" || Encoding(99).String() != "" {
		t.Error("a value that is no encoding has a name")
	}
}

// TestVectors: the counts of other tokenizers' own tests, all exact.
func TestVectors(t *testing.T) {
	e := newEstimator(t, nil)
	vectors := testlines.Read[struct {
		Encoding, Text string
		Tokens         int64
	}](t, "../testdata/estimator/encodings.jsonl")
	for _, v := range vectors {
		enc, ok := ParseEncoding(v.Encoding)
		if !ok {
			t.Fatalf("encoding %q", v.Encoding)
		}
		if got, exact := e.Count(enc, v.Text); got != v.Tokens || !exact {
			t.Errorf("%s %.40q: %d (exact %v), want %d", enc, v.Text, got, exact, v.Tokens)
		}
	}
	for i, x := range loadTexts(t) {
		for enc := CL100K; enc < numEncodings; enc++ {
			if !looksAt(i) {
				continue
			}
			if got, exact := e.Count(enc, x.Text); got != x.count(enc) || !exact {
				t.Errorf("%s %s: %d (exact %v), want %d", enc, x.ID, got, exact, x.count(enc))
			}
		}
	}
}

// TestSpecialTokensAreText is scenario TOK-01.
func TestSpecialTokensAreText(t *testing.T) {
	e := newEstimator(t, nil)
	for _, c := range []struct {
		text   string
		cl, o2 int64
	}{
		{"hello <|endoftext|> world", 8, 9},
		{"<|endoftext|>", 7, 7},
		{"", 0, 0},
		{"a", 1, 1},
		{"\x00", 1, 1},
	} {
		for enc, want := range map[Encoding]int64{CL100K: c.cl, O200K: c.o2} {
			if got, exact := e.Count(enc, c.text); got != want || !exact {
				t.Errorf("%s %q: %d (exact %v), want %d", enc, c.text, got, exact, want)
			}
		}
	}
	if got, _ := e.Count(0, "hello <|endoftext|> world"); got != 9 {
		t.Errorf("the zero encoding counts %d, want the fallback's 9", got)
	}
}

// TestInvalidTextCountsReplaced: each bad byte is one U+FFFD, as in tiktoken.
func TestInvalidTextCountsReplaced(t *testing.T) {
	e := newEstimator(t, nil)
	got, _ := e.Count(O200K, "a\xffb\xc3")
	want, _ := e.Count(O200K, "a\uFFFDb\uFFFD")
	if got != want {
		t.Errorf("invalid text counts %d, replaced %d", got, want)
	}
}

// TestFirstUse is scenario TOK-15: 64 first callers, equal answers, each
// vocabulary the same object for all. Run with -race.
func TestFirstUse(t *testing.T) {
	e := newEstimator(t, nil)
	var wg sync.WaitGroup
	var answers [64][2]int64
	var loaded [64][numEncodings]*vocabulary
	for i := range answers {
		wg.Go(func() {
			answers[i][0], _ = e.Count(CL100K, "the quick brown fox")
			answers[i][1], _ = e.Count(O200K, strings.Repeat("a", 100_000))
			for enc := CL100K; enc < numEncodings; enc++ {
				loaded[i][enc] = vocabularies[enc]()
			}
		})
	}
	wg.Wait()
	for i := range answers {
		if answers[i] != answers[0] || loaded[i] != loaded[0] {
			t.Errorf("caller %d was answered %v, caller 0 %v", i, answers[i], answers[0])
		}
	}
	Warm()
}
