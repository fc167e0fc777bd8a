package estimator

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"testing"

	"quotabroker/internal/testlines"
)

type sampleText struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Lang   string `json:"lang"`
	Text   string `json:"text"`
	CL100K int64  `json:"cl100k"`
	O200K  int64  `json:"o200k"`
}

func (s *sampleText) count(e Encoding) int64 {
	if e == CL100K {
		return s.CL100K
	}
	return s.O200K
}

func (v *vocabulary) featuresOf(text string) (f features) {
	f.add([]byte(text), v.classes())
	return f
}

func loadTexts(tb testing.TB) []sampleText {
	return testlines.Read[sampleText](tb, "../testdata/estimator/texts.jsonl")
}

// spread is the distribution of relative errors, in per cent.
type spread struct{ P1, P50, P90, P99, Low, High float64 }

func distribution(errs []float64) spread {
	signed := slices.Sorted(slices.Values(errs))
	abs := make([]float64, len(errs))
	for i, e := range errs {
		abs[i] = math.Abs(e)
	}
	slices.Sort(abs)
	at := func(s []float64, q float64) float64 { return 100 * s[min(int(q*float64(len(s))), len(s)-1)] }
	return spread{P1: at(signed, .01), P50: at(abs, .5), P90: at(abs, .9), P99: at(abs, .99), Low: 100 * signed[0], High: 100 * signed[len(signed)-1]}
}

func (s spread) String() string {
	return fmt.Sprintf("p50 %.2f%% p90 %.2f%% p99 %.2f%%, signed %.1f%% (p1 %.1f%%) to %+.1f%%", s.P50, s.P90, s.P99, s.Low, s.P1, s.High)
}

// looksAt reports whether a test looks at its case i: all of them, or under the
// race detector every eighth.
func looksAt(i int) bool { return !underRace || i%8 == 0 }

// byName goes over a map in the order of its keys, as far as looksAt says.
func byName[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for i, name := range slices.Sorted(maps.Keys(m)) {
			if looksAt(i) && !yield(name, m[name]) {
				return
			}
		}
	}
}
