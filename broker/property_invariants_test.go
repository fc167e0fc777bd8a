package broker

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// histories returns how many of n histories are played: all, or with -short a
// twentieth. The race detector runs with -short: there is no goroutine in here for it
// to watch, and it makes every history ten times as long.
func histories(n int) int {
	if testing.Short() {
		return max(n/20, 8)
	}
	return n
}

// spread runs n histories in parallel subtests and adds up what they exercised.
func spread(t *testing.T, n int, one func(seed uint64) (tally, error)) tally {
	var (
		mu    sync.Mutex
		total tally
	)
	n = histories(n)
	parts := 2 * runtime.GOMAXPROCS(0)
	t.Run("histories", func(t *testing.T) {
		for part := range parts {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				var sum tally
				for seed := part; seed < n; seed += parts {
					met, err := one(uint64(seed))
					if err != nil {
						t.Fatal(err)
					}
					sum.add(&met)
				}
				mu.Lock()
				defer mu.Unlock()
				total.add(&sum)
			})
		}
	})
	t.Logf("%d histories: %s", n, &total)
	return total
}

// enough fails a test that did not exercise what it is about.
func (t *tally) enough(tt *testing.T, what ...int) {
	for _, i := range what {
		if least := 100; t[i] < histories(least) {
			tt.Errorf("%q was met %d times: the histories test nothing", metNames[i], t[i])
		}
	}
}

// TestUndisturbed is I1, I2, I3 and I9, and that every answer is the naive pool's,
// on 3000 histories of a constant quota in which every grant takes its estimate.
func TestUndisturbed(t *testing.T) {
	total := spread(t, 3000, func(seed uint64) (tally, error) {
		h := newHistory(seed, false, nil)
		err := h.lives(h.age())
		return h.met, err
	})
	total.enough(t, metGuaranteed, metBorrowed, metAtOnce, metPaced, metAged, metLearned, metBooked, metDue,
		metLate, metBack, metVanished, metEarly, metSaturated, metCancelled)
}

// TestDisturbed is I5, I7, I9 and I10, on 3000 histories with quota cuts to 30 to
// 100 %, refunds, overruns and late settlements.
func TestDisturbed(t *testing.T) {
	total := spread(t, 3000, func(seed uint64) (tally, error) {
		h := newHistory(seed, true, nil)
		err := h.lives(h.age())
		return h.met, err
	})
	total.enough(t, metGuaranteed, metBorrowed, metAtOnce, metPaced, metAged, metLearned, metBooked, metDue,
		metLate, metBack, metVanished, metRefunded, metOverrun, metCut, metDebt, metExpired, metMissing)
}

// TestBookings is I13, on 600 histories of 1500 steps with four tenants.
func TestBookings(t *testing.T) {
	var checked atomic.Int64
	total := spread(t, 600, func(seed uint64) (tally, error) {
		h := newHistory(seed, false, func(cfg *Config) {
			for i, d := range []time.Duration{time.Second, 3 * time.Second, 3 * time.Second} {
				cfg.Classes[i].Book = d
			}
		})
		h.tenants = 4
		for range 1500 {
			if err := h.next(); err != nil {
				return h.met, err
			}
			n, err := h.bookings()
			if err != nil {
				return h.met, err
			}
			checked.Add(int64(n))
		}
		return h.met, nil
	})
	total.enough(t, metBooked, metDue, metBack, metLate)
	t.Logf("bookings checked: %d", checked.Load())
	if checked.Load() < int64(histories(100_000)) {
		t.Errorf("%d bookings were checked: the histories test nothing", checked.Load())
	}
}

// TestLookingChangesNothing plays histories beside themselves, one of which is looked
// at in the middle of every step: both decide the same, from the same levels.
func TestLookingChangesNothing(t *testing.T) {
	total := spread(t, 100, func(seed uint64) (tally, error) {
		alone, watched := newHistory(seed, seed%2 == 0, nil), newHistory(seed, seed%2 == 0, nil)
		for range 1000 {
			was := alone.now
			if err := alone.next(); err != nil {
				return alone.met, err
			}
			at := origin.Add(was + (alone.now-was)/2)
			watched.b.Status(at)
			if _, err := watched.b.Explain(at, Ask{Source: "eval", Cost: tokens(1000), Deadline: -1}); err != nil {
				return alone.met, err
			}
			if err := watched.next(); err != nil {
				return alone.met, err
			}
			if alone.met != watched.met || alone.m.level != watched.m.level {
				return alone.met, fmt.Errorf("seed %d, at %s: to look at the pool changed what it does: L %d and %d", seed, alone.now, alone.m.level, watched.m.level)
			}
		}
		return alone.met, nil
	})
	total.enough(t, metGuaranteed, metBorrowed, metPaced, metBooked)
}
