package classes

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// adopted is a rule that took over from another, with what the first had charged.
type adopted struct {
	old, now *Rule
	class    []int // old number → new
	charges  []naiveCharge
	at       time.Duration
}

func adopt(rnd *rand.Rand, was, is Settings, class []int) *adopted {
	a := &adopted{old: NewRule(was), now: NewRule(is), class: class}
	for range 1 + rnd.IntN(200) {
		a.at += time.Duration(rnd.ExpFloat64() * float64(500*time.Millisecond))
		a.old.Advance(a.at)
		c := naiveCharge{a.at, rnd.IntN(len(was.Classes)), 1 + rnd.Int64N(5000)}
		a.charges = append(a.charges, c)
		a.old.Charge(c.class, Vec{Tokens: c.n, InputTokens: c.n / 2, OutputTokens: c.n - c.n/2, Requests: 1, Leases: 1})
	}
	a.now.Adopt(a.old, class)
	return a
}

// known returns what the old rule still metered for limit l at the moment of the
// change and was charged within l's window at a later moment: the least that may
// count then.
func (a *adopted) known(l *limit, at time.Duration) (least int64) {
	source := a.old.source(l.Limit)
	if source == nil {
		return 0
	}
	for _, c := range a.charges {
		if c.at > at-l.window && c.at > a.at-source.window {
			least += Vec{Tokens: c.n, InputTokens: c.n / 2, OutputTokens: c.n - c.n/2, Requests: 1}[l.Metric]
		}
	}
	return least
}

// TestAdoptForgetsNothing changes limits, spans, buckets, amounts and the class
// table at random moments and checks that what was charged within the window of a
// limit still counts, now and later, and never more than what the old rule held.
func TestAdoptForgetsNothing(t *testing.T) {
	spans := []time.Duration{2 * time.Second, 10 * time.Second, time.Minute, time.Hour}
	carried, left := 0, 0
	for seed := range uint64(1500) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		settings := func() Settings {
			s := newCrowd(rnd.Uint64()).s
			s.Guard = time.Duration(rnd.IntN(3)) * time.Second
			s.Limits = s.Limits[:1+rnd.IntN(len(s.Limits))]
			for i := range s.Limits {
				s.Limits[i].Span = spans[rnd.IntN(len(spans))]
			}
			return s
		}
		was, is := settings(), settings()
		class := make([]int, len(was.Classes))
		for i := range class {
			class[i] = rnd.IntN(len(is.Classes)+1) - 1
		}
		a := adopt(rnd, was, is, class)
		for i := range a.now.limits {
			l := &a.now.limits[i]
			if l.ring == nil {
				continue
			}
			if from := a.old.source(l.Limit); from != nil {
				carried++
				if l.total() > from.total() {
					t.Fatalf("seed %d: %s takes over %d of %d", seed, l.Limit, l.total(), from.total())
				}
				if l.window >= from.window && l.total() != from.total() {
					t.Fatalf("seed %d: %s takes over %d of %d", seed, l.Limit, l.total(), from.total())
				}
			}
		}
		for _, later := range []time.Duration{0, 1, 700 * time.Millisecond, 3 * time.Second, 30 * time.Second, 59 * time.Second, 63 * time.Second, 2 * time.Hour} {
			a.now.Advance(a.at + later)
			for i := range a.now.limits {
				l := &a.now.limits[i]
				if l.ring == nil {
					continue
				}
				if least := a.known(l, a.at+later); l.total() < least {
					t.Fatalf("seed %d: %s later %s holds %d, at least %d was charged in its window", seed, later, l.Limit, l.total(), least)
				} else if least > 0 {
					left++
				}
				var sum int64
				for _, u := range l.used {
					sum += u
				}
				if sum != l.total() {
					t.Fatalf("seed %d: %s later the classes use %d of %d", seed, later, sum, l.total())
				}
			}
		}
		for i := range a.now.limits {
			if l := &a.now.limits[i]; l.ring != nil && l.total() != 0 {
				t.Fatalf("seed %d: two hours later %s still holds %d", seed, l.Limit, l.total())
			}
		}
	}
	if carried < 1000 || left < 1000 {
		t.Errorf("%d limits carried over, %d with something left: the histories test nothing", carried, left)
	}
}

// TestAdoptLiteral changes one thing at a time.
func TestAdoptLiteral(t *testing.T) {
	base := func() Settings {
		return Settings{Classes: DefaultClasses(), Limits: []Limit{{Tokens, 100_000, time.Minute}}, Buckets: 60, HalfLife: 10 * time.Minute}
	}
	charged := func() *Rule {
		r := NewRule(base())
		r.Advance(30 * time.Second)
		r.Charge(0, Vec{Tokens: 10_000, Requests: 1})
		r.Charge(2, Vec{Tokens: 2_000, Requests: 1})
		return r
	}
	same := []int{0, 1, 2}
	t.Run("half the quota", func(t *testing.T) {
		s := base()
		s.Limits[0].Amount = 50_000
		old, r := charged(), NewRule(s)
		r.Adopt(old, same)
		if got := r.LimitAt(0); got.Used != 12_000 || got.Level != 6_000 {
			t.Errorf("used %d, level %d; want 12000 and half the level of 12000", got.Used, got.Level)
		}
		if was, is := old.StandingAt(0, 0).Reserve, r.StandingAt(0, 0).Reserve; is != was/2 {
			t.Errorf("reserve %d, want half of %d", is, was)
		}
	})
	t.Run("a class is gone", func(t *testing.T) {
		s := base()
		s.Classes = []Class{{Name: "batch", Share: 60 * Percent}, {Name: "interactive", Share: 40 * Percent}}
		r := NewRule(s)
		r.Adopt(charged(), []int{1, -1, 0})
		if got := r.limits[0].used; !slices.Equal(got, []int64{2_000, 10_000}) {
			t.Errorf("used %v", got)
		}
		r = NewRule(s)
		r.Adopt(charged(), []int{-1, -1, 0})
		if got := r.limits[0].used; !slices.Equal(got, []int64{2_000, 10_000}) {
			t.Errorf("used %v: what a class that is gone charged counts for the last", got)
		}
	})
	t.Run("a limit is new", func(t *testing.T) {
		s := base()
		s.Limits = append(s.Limits, Limit{Requests, 100, time.Minute}, Limit{Tokens, 20_000, 10 * time.Second})
		r := NewRule(s)
		r.Adopt(charged(), same)
		if got := r.LimitAt(1).Used; got != 0 {
			t.Errorf("%d requests are charged; nobody counted them before", got)
		}
		if got := r.LimitAt(2).Used; got != 12_000 {
			t.Errorf("the sub-window holds %d, want what was charged just now", got)
		}
	})
	t.Run("a refund after the change", func(t *testing.T) {
		r := NewRule(base())
		r.Adopt(charged(), same)
		r.Advance(31 * time.Second)
		r.Refund(0, 30*time.Second, Vec{Tokens: 4_000})
		if got := r.LimitAt(0).Used; got != 8_000 {
			t.Errorf("used %d, want 8000", got)
		}
	})
	t.Run("leases in flight", func(t *testing.T) {
		s := base()
		s.Concurrency = 10
		r := NewRule(s)
		r.Adopt(charged(), same)
		r.CountLeases([]int64{3, 0, 4})
		if got := r.LimitAt(1).Used; got != 7 {
			t.Errorf("%d leases are in flight, want 7", got)
		}
		r.Release(2)
		if got := r.StandingAt(1, 2).Used; got != 3 {
			t.Errorf("batch has %d leases, want 3", got)
		}
	})
}
