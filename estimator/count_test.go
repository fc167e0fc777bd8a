package estimator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"quotabroker/wire"
)

// TestHostileTextsAreExact: 64 KiB of anything are counted in full, but for those
// that are a single piece: that may be more work than is allowed.
func TestHostileTextsAreExact(t *testing.T) {
	est := newEstimator(t, nil)
	truth := trueCounts(t)
	texts := hostile(hostileBytes)
	for name, text := range byName(texts) {
		for e := CL100K; e < numEncodings; e++ {
			got, exact := est.Count(e, text)
			want := truth[name][e.String()]
			if exact && got != want || float64(got) < 0.98*float64(want) || float64(got) > 1.02*float64(want) {
				t.Errorf("%s %s: counted %d (exact %v), want %d", e, name, got, exact, want)
			}
		}
	}
	for _, name := range []string{"base64", "printable", "hex", "digits", "digit and space", "many scripts", "contractions"} {
		if _, exact := est.Count(O200K, texts[name]); !exact {
			t.Errorf("%s is not counted in full", name)
		}
	}
}

// TestHostileTextsAreSampledClosely holds the sampled count of every hostile
// text near the truth. Measured over 8 seeds: 0.992 to 1.011 of it.
func TestHostileTextsAreSampledClosely(t *testing.T) {
	truth := trueCounts(t)
	for name, text := range byName(hostile(hostileBytes)) {
		for e := CL100K; e < numEncodings; e++ {
			for seed := range byte(3) {
				got := vocabularies[e]().sampleTokens([][]byte{[]byte(text)}, &[32]byte{seed})
				ratio := float64(got) / float64(truth[name][e.String()])
				if ratio < 0.99 || ratio > 1.04 {
					t.Errorf("%s %s: counted %d, %.3f of the truth", e, name, got, ratio)
				}
			}
		}
	}
}

// TestMegabyteOfOneLetter is scenario TOK-03, which asks for 118 000 at least,
// but for its times: those are in the benchmarks.
func TestMegabyteOfOneLetter(t *testing.T) {
	est := newEstimator(t, nil)
	for e := CL100K; e < numEncodings; e++ {
		got, _ := est.Count(e, strings.Repeat("a", 1<<20))
		if got < 131_072*99/100 || got > 131_072*102/100 {
			t.Errorf("%s: %d tokens, true 131072", e, got)
		}
	}
}

// TestWindowsAreBounded: whatever the text and its length, the windows are within
// the text and no longer than they may be, and begin and end between runes.
func TestWindowsAreBounded(t *testing.T) {
	for _, size := range []int{100, 1 << 10, 12 << 10, 100 << 10} {
		for name, text := range byName(hostile(size)) {
			texts := [][]byte{[]byte(text), nil, []byte(text)}
			s := newSampler(texts)
			stride := s.size / windows
			for k := range windows {
				given := 0
				for _, p := range s.window(k*stride, min(windowBytes, stride)) {
					given += p.to - p.from
					if utf8.ValidString(text) && !utf8.Valid(p.text[p.from:p.to]) {
						t.Errorf("%s of %d bytes: a window cuts a rune", name, size)
					}
				}
				if given > windowBytes+utf8.UTFMax || given == 0 && stride >= utf8.UTFMax {
					t.Errorf("%s of %d bytes: window of %d bytes", name, size, given)
				}
			}
		}
	}
}

// TestManyShortTextsAreBounded: a body of very many very short texts is sampled
// when it is more work than the limit, and is not under-estimated.
func TestManyShortTextsAreBounded(t *testing.T) {
	texts := make([][]byte, 300_000)
	for i := range texts {
		texts[i] = []byte("ab1")
	}
	got, method := newEstimator(t, nil).count(O200K, texts)
	if got < 600_000 || got > 630_000 || method != wire.MethodSampled {
		t.Errorf("%d tokens (%s), true 600000", got, method)
	}
}

// TestRegressionOnDenseText is scenario TOK-05: no tokenizer at all.
func TestRegressionOnDenseText(t *testing.T) {
	est := newEstimator(t, func(o *Options) { o.ExactBytes = 0 })
	r := rand.New(rand.NewPCG(5, 6))
	var han, rare strings.Builder
	for range 2000 {
		han.WriteRune(rune(0x4E00 + r.IntN(0x5200)))
	}
	for range 1000 {
		rare.WriteRune(rune(0x20000 + r.IntN(0xA6DF)))
	}
	for e := CL100K; e < numEncodings; e++ {
		if got, exact := est.Count(e, han.String()); exact || got < 3440 || got > 6000 {
			t.Errorf("%s: 2000 ideographs are %d tokens (exact %v)", e, got, exact)
		}
		if got, exact := est.Count(e, rare.String()); exact || got < 3550 || got > 4000 {
			t.Errorf("%s: 1000 rare ideographs are %d tokens (exact %v)", e, got, exact)
		}
	}
	res, err := est.Estimate(Input{Model: "gpt-4o", Body: []byte(`{"input":"hello there","instructions":"be brief"}`)})
	if err != nil || res.Cost.Method != wire.MethodRegression || res.Cost.InputTokens == 0 {
		t.Errorf("estimate %+v, %v", res, err)
	}
}

// TestRegressionError: on the texts it was not fitted on. Measured: cl100k p50
// 3.1, p90 9.7 %; o200k p50 3.1, p90 9.9 %. Latin languages that look like
// English to it are its worst: Estonian and Tagalog -41 % and -30 %.
func TestRegressionError(t *testing.T) {
	texts := loadTexts(t)
	for e := CL100K; e < numEncodings; e++ {
		v := vocabularies[e]()
		var errs []float64
		for i := 1; i < len(texts); i += 2 {
			errs = append(errs, v.regress([][]byte{[]byte(texts[i].Text)})/float64(texts[i].count(e))-1)
		}
		s := distribution(errs)
		t.Logf("%s: %s", e, s)
		if s.P50 > 4 || s.P90 > 12 || s.Low < -45 {
			t.Errorf("%s: %s", e, s)
		}
	}
}

// longTexts joins the texts of the test data into some of 30 to 200 kB.
func longTexts(tb testing.TB) map[string]string {
	parts := map[string]*strings.Builder{}
	add := func(name, text string) {
		if parts[name] == nil {
			parts[name] = new(strings.Builder)
		}
		if parts[name].Len() < 150_000 {
			parts[name].WriteString(text)
			parts[name].WriteString("\n\n")
		}
	}
	texts := loadTexts(tb)
	for _, x := range texts {
		add(x.Kind, x.Text)
	}
	for i, j := range rand.New(rand.NewPCG(8, 9)).Perm(len(texts)) {
		add(fmt.Sprintf("mixed %d", i/70), texts[j].Text)
	}
	long := map[string]string{}
	for name, b := range parts {
		if b.Len() > 30_000 {
			long[name] = b.String()
		}
	}
	return long
}

// TestSamplingError over 6 seeds and all long texts, half of them mixed of
// languages and kinds. Measured: p50 1.6 %, p90 3.9 %, p99 6.5 %, p1 -0.4 %,
// lowest -0.6 %: it errs high.
func TestSamplingError(t *testing.T) {
	var errs []float64
	for _, text := range byName(longTexts(t)) {
		for e := CL100K; e < numEncodings; e++ {
			v := vocabularies[e]()
			truth := v.bpe.Count([]byte(text))
			for seed := range byte(6) {
				if !looksAt(int(seed)) {
					break
				}
				got := v.sampleTokens([][]byte{[]byte(text)}, &[32]byte{seed})
				errs = append(errs, float64(got)/float64(truth)-1)
			}
		}
	}
	s := distribution(errs)
	t.Logf("%d samples: %s", len(errs), s)
	if s.P50 > 2 || s.P90 > 5 || s.P99 > 8 || s.Low < -2 {
		t.Errorf("%d samples: %s", len(errs), s)
	}
}

// TestHiddenDenseTextIsFound: a producer hides dense text in ten times as much
// cheap text. It cannot know where the windows are, and the regression counts
// what they miss. Measured over all hostile texts at eight places: never below
// -1.3 % in prose and -4.3 % in blanks or one letter.
func TestHiddenDenseTextIsFound(t *testing.T) {
	hidden := hostile(20_000)
	v := vocabularies[O200K]()
	for _, c := range []struct {
		cover  string
		lowest float64 // per cent
	}{
		{strings.Repeat("the quick brown fox jumps over the lazy dog. ", 4500), -3},
		{strings.Repeat(" ", 200_000), -7},
	} {
		var errs []float64
		for _, name := range []string{"base64", "special tokens", "random spaces", "Han"} {
			for seed := range byte(8) {
				if !looksAt(int(seed)) {
					continue
				}
				at := 10_000 + 23_456*int(seed)
				whole := []byte(c.cover[:at] + hidden[name] + c.cover[at:])
				got := v.sampleTokens([][]byte{whole}, &[32]byte{seed})
				errs = append(errs, float64(got)/float64(v.bpe.Count(whole))-1)
			}
		}
		s := distribution(errs)
		t.Logf("in %.3q: %s", c.cover, s)
		if s.Low < c.lowest {
			t.Errorf("in %.3q: %s", c.cover, s)
		}
	}
}

// TestReplayGivesTheSame: the answer follows from seed and text alone, and
// other seeds look elsewhere.
func TestReplayGivesTheSame(t *testing.T) {
	text := longTexts(t)["mixed 0"]
	count := func(seed byte) int64 {
		got, exact := newEstimator(t, func(o *Options) { o.Seed[31], o.ExactBytes = seed, minExactBytes }).Count(O200K, text)
		if exact {
			t.Fatal("not sampled")
		}
		return got
	}
	answers := map[int64]bool{}
	for seed := range byte(4) {
		a, b := count(seed), count(seed)
		if a != b {
			t.Errorf("seed %d answers %d and %d", seed, a, b)
		}
		answers[a] = true
	}
	if len(answers) < 3 {
		t.Errorf("4 seeds give %d answers", len(answers))
	}
	places := func(texts ...string) int {
		var bs [][]byte
		for _, s := range texts {
			bs = append(bs, []byte(s))
		}
		return newStream(new([32]byte), bs).below(1 << 30)
	}
	if places("ab", "c") == places("a", "bc") || places("abcdefgh") == places("abcdefgi") {
		t.Error("different texts are sampled at the same places")
	}
}
