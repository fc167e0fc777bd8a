package broker

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// side runs n closed loops in parallel subtests; each returns its longest waits by
// class, the worst of which come back.
func side(t *testing.T, n int, one func(t *testing.T, seed uint64) [3]time.Duration) (worst [3]time.Duration) {
	var mu sync.Mutex
	n = histories(n)
	parts := 2 * runtime.GOMAXPROCS(0)
	t.Run("loops", func(t *testing.T) {
		for part := range parts {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := part; seed < n; seed += parts {
					waits := one(t, uint64(seed))
					mu.Lock()
					for c := range waits {
						worst[c] = max(worst[c], waits[c])
					}
					mu.Unlock()
				}
			})
		}
	})
	return worst
}

// heads watches how long the head of each class has been one while its class stays
// within its floor with it, or at all.
type heads struct {
	l      *loop
	within bool // only while the class stays within its floor with it
	ticket [3]uint64
	since  [3]time.Duration
	worst  [3]time.Duration
	counts [3]int
	bound  func(c int, waited time.Duration) error
}

// look is called after everything that happens.
func (h *heads) look() {
	b := h.l.b
	for c := range b.queues {
		i := b.queues[c].head(&b.tickets)
		if i == none {
			h.ticket[c] = 0
			continue
		}
		t := b.tickets.at(i)
		s := b.rule.StandingAt(0, c)
		if h.within && s.Used+t.need[classes.Tokens] > s.Floor {
			h.ticket[c] = 0
			continue
		}
		if t.n != h.ticket[c] {
			h.ticket[c], h.since[c] = t.n, h.l.now
			h.counts[c]++
		}
		waited := h.l.now - h.since[c]
		h.worst[c] = max(h.worst[c], waited)
		if err := h.bound(c, waited); err != nil {
			h.l.t.Fatalf("at %s: ticket %x of class %d: %v", h.l.now, t.n, c, err)
		}
	}
}

// burstPool is a pool of the default classes for closed loops.
func burstPool(q int64, paced bool, buckets int) Config {
	cfg := DefaultConfig()
	cfg.Margin, cfg.Guard, cfg.Buckets = 0, 0, buckets
	cfg.Limits = []classes.Limit{{Metric: classes.Tokens, Amount: q, Span: time.Minute}}
	cfg.Classes[0].MaxWait = 0
	if !paced {
		cfg.Classes[1].Pace, cfg.Classes[2].Pace = 0, 0
	}
	return cfg
}

// TestFloorWithinAWindow is I4: a head that stays within its floor is granted
// within a window, a re-ask interval and claim, whatever the others do: 1000
// adversarial loops of 400 s.
func TestFloorWithinAWindow(t *testing.T) {
	var counted [3]int
	var mu sync.Mutex
	worst := side(t, 1000, func(t *testing.T, seed uint64) [3]time.Duration {
		const q = 600_000
		cfg := burstPool(q, seed%2 == 0, 60)
		cfg.Near = 2 * time.Second
		l := newLoop(t, seed, cfg)
		told := map[uint64]time.Duration{} // the longest wait that a ticket was told
		h := &heads{l: l, within: true}
		h.bound = func(c int, waited time.Duration) error {
			most := l.b.rule.LimitAt(0).Window + 2*time.Second // two buckets
			if b := most + max(told[h.ticket[c]], cfg.Near) + cfg.Claim; waited > b {
				return fmt.Errorf("head within its floor for %s; a window, a re-ask and claim are %s", waited, b)
			}
			return nil
		}
		for c := range cfg.Classes {
			adversary(l, c, q, told)
		}
		l.after = h.look
		l.run(400 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		for c := range counted {
			counted[c] += h.counts[c]
		}
		return h.worst
	})
	t.Logf("I4: worst %v over %v heads", worst, counted)
	for c, n := range counted {
		if n < histories(1000) {
			t.Errorf("class %d had %d heads within its floor: the loops test nothing", c, n)
		}
	}
}

// adversary lets a class fall silent and burst, each for up to 90 s, with jobs of up
// to 2.5 % of the quota and some workers that do not come back.
func adversary(l *loop, c int, q int64, told map[uint64]time.Duration) {
	active := l.IntN(2) == 0
	var flip func()
	flip = func() {
		active = !active
		l.in(time.Duration(l.Int64N(int64(90*time.Second))), flip)
	}
	l.in(time.Duration(l.Int64N(int64(90*time.Second))), flip)
	vanish := 0.0
	if l.IntN(2) == 0 {
		vanish = 0.05
	}
	most := float64(q) * (0.002 + 0.023*l.Float64())
	for range 1 + l.IntN(6) {
		w := &adversaryWorker{l: l, c: c, most: int64(most), vanish: vanish, told: told, active: &active}
		l.in(time.Duration(l.Int64N(int64(10*time.Second))), w.start)
	}
}

// adversaryWorker is a worker that asks for the next job as soon as one is granted.
type adversaryWorker struct {
	l      *loop
	c      int
	most   int64
	vanish float64
	told   map[uint64]time.Duration
	active *bool
}

func (w *adversaryWorker) start() {
	if !*w.active {
		w.l.in(time.Second, w.start)
		return
	}
	w.ask(1+w.l.Int64N(w.most), wire.TicketID{})
}

func (w *adversaryWorker) ask(x int64, ticket wire.TicketID) {
	l := w.l
	l.ask(Ask{Source: sourceOf[w.c], Cost: tokens(x), Deadline: -1, Ticket: ticket}, func(d wire.Decision) {
		if d.Verdict != wire.Defer {
			l.in(time.Duration(l.Int64N(int64(200*time.Millisecond))), w.start)
			return
		}
		retry := time.Duration(d.RetryAfterMS) * time.Millisecond
		w.told[d.Ticket.N] = max(w.told[d.Ticket.N], retry)
		if l.Float64() < w.vanish {
			l.in(retry, w.start)
			return
		}
		l.in(retry, func() { w.ask(x, d.Ticket) })
	})
}

// TestSharesUnderContention is I8: with all classes backlogged the quota is split
// as the shares say, within 1.5 points, over 18 of 20 minutes.
func TestSharesUnderContention(t *testing.T) {
	for _, hold := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprintf("held=%v", hold > 0), func(t *testing.T) {
			t.Parallel()
			const q = 600_000
			l := newLoop(t, 8, burstPool(q, true, 240))
			var got [3]int64
			for c, n := range []int{200, 60, 60} {
				for i := range n {
					w := &worker{
						l: l, source: sourceOf[c], tenant: fmt.Sprint(i % 7), hold: hold,
						size:    func() int64 { return l.lognormal(q/200, 0.8, q/2000, q/20) },
						service: func() time.Duration { return 2 * time.Second },
						granted: func(x int64, _ time.Duration) {
							if l.now > 2*time.Minute {
								got[c] += x
							}
						},
					}
					l.in(time.Duration(l.Int64N(int64(time.Second))), w.start)
				}
			}
			l.run(20 * time.Minute)
			for c, share := range []float64{70, 20, 10} {
				part := 100 * float64(got[c]) / (q * 18)
				t.Logf("I8: class %d got %.2f %% of the quota", c, part)
				if part < share-1.5 || part > share+1.5 {
					t.Errorf("class %d got %.2f %%, its share is %.0f %%", c, part, share)
				}
			}
		})
	}
}

// TestSaturatedHeads is I11: with all classes saturated no head waits longer than
// 180 s (two windows, and one at most to pay for what its class borrowed), and what
// is larger than a class can ever be given is refused at once: 150 loops of 600 s. The classes that age have jobs up to the largest whose wait is
// bounded, and interactive, which does not, up to its floor.
func TestSaturatedHeads(t *testing.T) {
	worst := side(t, 150, func(t *testing.T, seed uint64) [3]time.Duration {
		return saturated(t, seed, [3]int64{70, 25, 20}, 0, 180*time.Second)
	})
	t.Logf("I11: longest time as head %v", worst)
}

// TestSaturatedHeadsThatAllAge lets interactive age too, with jobs up to its bound:
// then each of the three may have to wait for the two others and for itself, a
// window and a bucket each, and to be asked for again.
func TestSaturatedHeadsThatAllAge(t *testing.T) {
	worst := side(t, 50, func(t *testing.T, seed uint64) [3]time.Duration {
		return saturated(t, seed, [3]int64{85, 25, 20}, 15*time.Second, 3*60_250*time.Millisecond+10*time.Second)
	})
	t.Logf("I11, all age: longest time as head %v", worst)
}

// saturated is one loop in which every class always waits, a quarter of its jobs
// just below the given part of the quota.
func saturated(t *testing.T, seed uint64, parts [3]int64, ageAfter, bound time.Duration) [3]time.Duration {
	const q = 600_000
	cfg := burstPool(q, seed%2 == 0, 240)
	cfg.Classes[0].AgeAfter = ageAfter
	l := newLoop(t, seed, cfg)
	h := &heads{l: l, bound: func(c int, waited time.Duration) error {
		if waited > bound {
			return fmt.Errorf("head for %s", waited)
		}
		return nil
	}}
	for c, part := range parts {
		most := q * part / 100
		hold := time.Duration(l.IntN(2)) * time.Hour
		for range 3 + l.IntN(6) {
			w := &worker{
				l: l, source: sourceOf[c], hold: hold, service: func() time.Duration { return time.Second },
				size: func() int64 {
					if l.IntN(4) == 0 {
						return most - l.Int64N(most/20)
					}
					return l.lognormal(q/100, 1, q/2000, most)
				},
			}
			l.in(time.Duration(l.Int64N(int64(20*time.Second))), w.start)
		}
		for range 3 {
			l.in(time.Duration(l.Int64N(int64(600*time.Second))), func() { tooLarge(l, c, q) })
		}
	}
	l.after = h.look
	l.run(600 * time.Second)
	return h.worst
}

// tooLarge asks for one token more than the class can ever be given: the quota less
// the largest reserves of the others, 98, 90 and 88 %.
func tooLarge(l *loop, c int, q int64) {
	x := []int64{98, 90, 88}[c]*q/100 + 1
	l.ask(Ask{Source: sourceOf[c], Cost: tokens(x), Deadline: -1, Wait: time.Minute}, func(d wire.Decision) {
		if d.Cause != wire.CauseTooLarge || d.LimitTokens != x-1 || d.RetryAfterMS != 0 || d.Ticket.N != 0 {
			l.t.Errorf("a job of %d: %+v", x, d)
		}
	})
}
