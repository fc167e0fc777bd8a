package mockprovider

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// record is what was put on a limit, or taken off it, at a moment.
type record struct {
	at time.Duration
	n  int64
}

// naiveUsed computes what is used of a limit from the whole list: the most that any
// tail of the list left over after what refilled since its first record. It is the
// bucket written without a bucket. In units, as in bucket.
func naiveUsed(list []record, limit int64, now time.Duration) int64 {
	var used, tail int64
	for i := len(list) - 1; i >= 0; i-- {
		tail += list[i].n * unitsPerOne
		used = max(used, tail-limit*(now-list[i].at).Microseconds())
	}
	return used
}

// world is a meter beside the lists of what it was told.
type world struct {
	meter    *Meter
	limits   Limits
	now      time.Duration
	tokens   []record // with what was given back, as negative records
	requests []record
	open     []open
	settles  bool
}

type open struct {
	charge Charge
	at     time.Duration
}

// drawWait is often a round part of a minute, so that boundaries are met exactly.
func drawWait(t *rapid.T) time.Duration {
	round := rapid.SampledFrom([]time.Duration{time.Microsecond, ms, 5 * time.Second, 20 * time.Second, time.Minute})
	odd := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(1, 20_000_000).Draw(t, "us")) * time.Microsecond
	})
	return rapid.OneOf(round, odd).Draw(t, "wait")
}

func newWorld(t *rapid.T) *world {
	w := &world{
		limits: Limits{
			TokensPerMinute:   rapid.Int64Range(1, 3000).Draw(t, "tpm"),
			RequestsPerMinute: rapid.Int64Range(1, 40).Draw(t, "rpm"),
		},
		settles: rapid.Bool().Draw(t, "settles"),
	}
	w.meter = NewMeter(w.limits)
	return w
}

func (w *world) admit(t *rapid.T) {
	n := rapid.Int64Range(0, w.limits.TokensPerMinute+w.limits.TokensPerMinute/8).Draw(t, "tokens")
	tokens := naiveUsed(w.tokens, w.limits.TokensPerMinute, w.now)
	requests := naiveUsed(w.requests, w.limits.RequestsPerMinute, w.now)
	fits := tokens+n*unitsPerOne <= w.limits.TokensPerMinute*unitsPerOne &&
		requests+unitsPerOne <= w.limits.RequestsPerMinute*unitsPerOne
	charge, refusal := w.meter.Admit(w.now, n)
	if fits != (refusal == nil) {
		t.Fatalf("at %v, %d tokens: the list says %v, the meter %+v", w.now, n, fits, refusal)
	}
	if refusal == nil {
		w.tokens = append(w.tokens, record{w.now, n})
		w.requests = append(w.requests, record{w.now, 1})
		w.open = append(w.open, open{charge, w.now})
		return
	}
	if refusal.TooLarge() != (n > w.limits.TokensPerMinute) {
		t.Fatalf("%d tokens of %d: too large is %v", n, w.limits.TokensPerMinute, refusal.TooLarge())
	}
	if !refusal.TooLarge() {
		w.checkWait(t, n, refusal)
	}
}

// checkWait waits as long as the refusal says, to the millisecond, on a copy of the
// meter, and must then be admitted.
func (w *world) checkWait(t *rapid.T, n int64, r *Refusal) {
	later := *w.meter
	wait := time.Duration(roundUp(r.Wait, ms)) * ms
	if _, again := later.Admit(w.now+wait, n); again != nil {
		t.Fatalf("at %v, %d tokens: refused with %+v, and %v later again with %+v", w.now, n, r, wait, again)
	}
}

func (w *world) settle(t *rapid.T) {
	if !w.settles || len(w.open) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.open)-1).Draw(t, "which")
	o := w.open[i]
	w.open = append(w.open[:i], w.open[i+1:]...)
	actual := rapid.Int64Range(0, o.charge.Tokens).Draw(t, "actual")
	want := actual - o.charge.Tokens
	if w.now-o.at >= rollingSpan {
		want = 0
	}
	if got := w.meter.Settle(w.now, o.charge, actual); got != want {
		t.Fatalf("at %v, a charge of %d made at %v settled to %d changed %d, want %d", w.now, o.charge.Tokens, o.at, actual, got, want)
	}
	if want != 0 {
		w.tokens = append(w.tokens, record{w.now, want})
	}
}

// checkIntervals: from any moment to any later one, no more was charged (less what
// was given back) than limit + refill.
func checkIntervals(t *rapid.T, list []record, limit int64) {
	for i := range list {
		var sum int64
		for _, r := range list[i:] {
			sum += r.n
			bound := limit*unitsPerOne + limit*(r.at-list[i].at).Microseconds()
			if sum*unitsPerOne > bound {
				t.Fatalf("%d charged from %v to %v with a limit of %d per minute", sum, list[i].at, r.at, limit)
			}
		}
	}
}

func TestMeterAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"admit":  w.admit,
			"settle": w.settle,
			"wait": func(t *rapid.T) {
				w.now += drawWait(t)
			},
			"": func(t *rapid.T) {
				tokens, requests := w.meter.Levels(w.now)
				left := w.limits.TokensPerMinute*unitsPerOne - naiveUsed(w.tokens, w.limits.TokensPerMinute, w.now)
				if tokens.Remaining != left/unitsPerOne {
					t.Fatalf("remaining tokens %d, by the list %d units", tokens.Remaining, left)
				}
				left = w.limits.RequestsPerMinute*unitsPerOne - naiveUsed(w.requests, w.limits.RequestsPerMinute, w.now)
				if requests.Remaining != left/unitsPerOne {
					t.Fatalf("remaining requests %d, by the list %d units", requests.Remaining, left)
				}
			},
		})
		checkIntervals(t, w.tokens, w.limits.TokensPerMinute)
		checkIntervals(t, w.requests, w.limits.RequestsPerMinute)
	})
}

// TestRollingPeak compares the peak with sums over the full list at every moment at
// which a sum can be highest.
func TestRollingPeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMeter(Limits{})
		var now time.Duration
		var standing []record // charges as they stand
		type pending struct {
			charge Charge
			index  int // in standing
		}
		var unsettled []pending
		var peak int64
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) {
				c, _ := m.Admit(now, rapid.Int64Range(0, 1000).Draw(t, "tokens"))
				unsettled = append(unsettled, pending{c, len(standing)})
				standing = append(standing, record{now, c.Tokens})
			},
			"settle": func(t *rapid.T) {
				if len(unsettled) == 0 {
					return
				}
				i := rapid.IntRange(0, len(unsettled)-1).Draw(t, "which")
				p := unsettled[i]
				unsettled = append(unsettled[:i], unsettled[i+1:]...)
				diff := m.Settle(now, p.charge, rapid.Int64Range(0, 1500).Draw(t, "actual"))
				if diff > 0 {
					standing = append(standing, record{now, diff})
				} else {
					standing[p.index].n += diff
				}
			},
			"wait": func(t *rapid.T) {
				now += drawWait(t)
			},
			"": func(t *rapid.T) {
				var sum int64
				for _, r := range standing {
					if r.at > now-time.Minute {
						sum += r.n
					}
				}
				peak = max(peak, sum)
				tokens, _, got := m.Rolling(now)
				if tokens != sum || got.Tokens != peak {
					t.Fatalf("at %v: %d in the last minute and a peak of %d; by the list %d and %d", now, tokens, got.Tokens, sum, peak)
				}
			},
		})
	})
}
