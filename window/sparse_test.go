package window

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSparseAgainstList holds the sparse meter against the same naive list as the
// ring, at moments of any distance.
func TestSparseAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buckets := rapid.SampledFrom([]int{1, 6, 60}).Draw(t, "buckets")
		span := rapid.SampledFrom([]time.Duration{100, time.Second, 61 * time.Second}).Draw(t, "span")
		w := NewSpan(span, buckets)
		naive := &charges{window: time.Duration(w.width * w.buckets), bucket: time.Duration(w.width)}
		var s Sparse
		t.Repeat(map[string]func(*rapid.T){
			"charge": func(t *rapid.T) {
				n := rapid.Int64Range(0, 1e12).Draw(t, "n")
				naive.list = append(naive.list, charge{at: naive.now, n: n})
				s.Charge(w, naive.now, n)
			},
			"refund": func(t *rapid.T) {
				if len(naive.list) == 0 {
					return // there is nothing to give back
				}
				c := naive.list[rapid.IntRange(0, len(naive.list)-1).Draw(t, "which")]
				n := rapid.Int64Range(0, 1e12).Draw(t, "n")
				if got, want := s.Refund(w, c.at, n), naive.refund(0, c.at, n); got != want {
					t.Fatalf("Refund(%d) of %+v = %d, want %d", n, c, got, want)
				}
			},
			"advance": func(t *rapid.T) {
				naive.now += time.Duration(rapid.Int64Range(0, 2*int64(naive.window)).Draw(t, "step"))
				s.Advance(w, naive.now)
			},
			"": func(t *rapid.T) {
				if got, want := s.Total(), naive.used(0); got != want {
					t.Fatalf("at %s: total %d, want %d", naive.now, got, want)
				}
				if len(s.cells) > buckets+1 {
					t.Fatalf("%d cells for %d buckets", len(s.cells), buckets)
				}
				sparseFreeAt(t, &s, w, naive)
			},
		})
	})
}

// sparseFreeAt checks the first moment at which n of quota is free.
func sparseFreeAt(t *rapid.T, s *Sparse, w Span, naive *charges) {
	quota := rapid.Int64Range(0, s.Total()+1000).Draw(t, "quota")
	for _, n := range []int64{0, 1, quota / 2, quota} {
		at := s.FreeAt(w, naive.now, quota, n)
		if n > quota {
			continue
		}
		if naive.usedAt(at)+n > quota || at > naive.now && naive.usedAt(at-1)+n <= quota {
			t.Fatalf("FreeAt(%d of %d) = %s at %s: not the first moment", n, quota, at, naive.now)
		}
	}
	if at := s.FreeAt(w, naive.now, quota, 3*quota+1); at < naive.now+naive.window || quota > 0 && at < naive.now+3*naive.window {
		t.Fatalf("FreeAt of over three times the quota %d is %s from %s", quota, at, naive.now)
	}
}

// TestSparseIdleHoldsNothing lets a meter forget what it held.
func TestSparseIdleHoldsNothing(t *testing.T) {
	w := NewSpan(time.Minute, 60)
	var s Sparse
	for i := range 200 {
		now := time.Duration(i) * time.Second
		s.Advance(w, now)
		s.Charge(w, now, 5)
	}
	if s.Total() != 61*5 {
		t.Errorf("total %d, want what 61 buckets hold", s.Total())
	}
	s.Advance(w, 200*time.Second-1+61*time.Second)
	if s.Total() != 0 || len(s.cells) != 0 {
		t.Errorf("total %d in %d cells after a window", s.Total(), len(s.cells))
	}
	if at := s.FreeAt(w, time.Hour, 0, 1); at <= time.Hour {
		t.Errorf("a limit of 0 has room at %s", at)
	}
	if at := s.FreeAt(w, 400*24*time.Hour, 1, 1_000_000_000_000); at < 0 {
		t.Errorf("FreeAt overflows: %d", at)
	}
}
