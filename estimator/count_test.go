package estimator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"quotabroker/wire"
)

// TestHostileTextsAreSampledClosely holds the sampled count of every hostile
// text near the truth. Measured over 8 seeds: 0.995 to 1.04 of it.
func TestHostileTextsAreSampledClosely(t *testing.T) {
	est := newEstimator(t, nil)
	truth := trueCounts(t)
	for name, text := range byName(hostile(hostileBytes)) {
		for e := CL100K; e < numEncodings; e++ {
			got, exact := est.Count(e, text)
			ratio := float64(got) / float64(truth[name][e.String()])
			if exact || ratio < 0.98 || ratio > 1.06 {
				t.Errorf("%s %s: counted %d (exact %v), %.3f of the truth", e, name, got, exact, ratio)
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

// TestWorkIsBounded: whatever the text and its length, the reference tokenizer
// is given at most windows·windowWork to sample, or the budget to count in full.
func TestWorkIsBounded(t *testing.T) {
	const slack = windows * (1024 + chunkBytes*chunkBytes/stretchWork) // a cut stretch a window
	opt := Default()
	budget := opt.ExactBytes * proseWork
	for _, size := range []int{1 << 10, 12 << 10, 30 << 10, 256 << 10} {
		for name, text := range byName(hostile(size)) {
			texts := [][]byte{[]byte(text)}
			if fits(texts, budget) {
				if _, work := prefix(texts[0], len(text), 1<<30); work > budget {
					t.Errorf("%s of %d bytes: counting is work %d, the budget %d", name, size, work, budget)
				}
				continue
			}
			s := newSampler(texts)
			stride := s.size / windows
			sum := 0
			for k := range windows {
				parts, work := s.window(k*stride, min(windowBytes, stride))
				sum += work
				given := 0
				for _, p := range parts {
					given += p.to - p.from
				}
				if given == 0 || given > windowBytes+utf8.UTFMax {
					t.Errorf("%s of %d bytes: window of %d bytes", name, size, given)
				}
			}
			if sum > windows*windowWork+slack {
				t.Errorf("%s of %d bytes: sampling is work %d", name, size, sum)
			}
		}
	}
}

// TestManyShortTextsAreBounded: a body of very many very short texts costs no
// more, and is not under-estimated.
func TestManyShortTextsAreBounded(t *testing.T) {
	texts := make([][]byte, 200_000)
	for i := range texts {
		texts[i] = []byte("ab1")
	}
	if fits(texts, Default().ExactBytes*proseWork) {
		t.Fatal("200000 calls fit the budget")
	}
	v := vocabularies[O200K]()
	got, work := v.sampleTokens(texts, new([32]byte))
	if got < 400_000 || got > 420_000 || work > windows*windowWork*2 {
		t.Errorf("%d tokens with work %d, true 400000", got, work)
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
// languages and kinds. Measured: p50 1.2 %, p90 4.9 %, p99 11 %, p1 -2.1 %,
// lowest -2.3 %: it errs high.
func TestSamplingError(t *testing.T) {
	var errs []float64
	for _, text := range byName(longTexts(t)) {
		for e := CL100K; e < numEncodings; e++ {
			v := vocabularies[e]()
			truth, _ := v.countAll([]byte(text))
			for seed := range byte(6) {
				if !looksAt(int(seed)) {
					break
				}
				got, _ := v.sampleTokens([][]byte{[]byte(text)}, &[32]byte{seed})
				errs = append(errs, float64(got)/float64(truth)-1)
			}
		}
	}
	s := distribution(errs)
	t.Logf("%d samples: %s", len(errs), s)
	if s.P50 > 2 || s.P90 > 7 || s.P99 > 13 || s.Low < -5 {
		t.Errorf("%d samples: %s", len(errs), s)
	}
}

// TestHiddenDenseTextIsFound: a producer hides dense text in ten times as much
// cheap text. It cannot know where the windows are, and the regression counts
// what they miss. Measured over all hostile texts: never below -8 % in prose and
// -32 % in blanks or one letter, which are cheap as no real prompt is.
func TestHiddenDenseTextIsFound(t *testing.T) {
	dense := hostile(20_000)["base64"]
	for _, c := range []struct {
		cover  string
		lowest float64 // per cent
	}{
		{strings.Repeat("the quick brown fox jumps over the lazy dog. ", 4500), -12},
		{strings.Repeat(" ", 200_000), -38},
	} {
		v := vocabularies[O200K]()
		whole := []byte(c.cover[:90_000] + dense + c.cover[90_000:])
		cheap, _ := v.countAll([]byte(c.cover[:20_000]))
		hidden, _ := v.countAll([]byte(dense))
		truth := float64(cheap)*float64(len(c.cover))/20_000 + float64(hidden)
		var errs []float64
		for seed := range byte(16) {
			if !looksAt(int(seed)) {
				continue
			}
			got, _ := v.sampleTokens([][]byte{whole}, &[32]byte{seed})
			errs = append(errs, float64(got)/truth-1)
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
		got, exact := newEstimator(t, func(o *Options) { o.Seed[31] = seed }).Count(O200K, text)
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
