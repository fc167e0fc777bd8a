package broker

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// severalLimits makes up a pool of two to six limits, any of which may bind.
func severalLimits(l *loop) Config {
	const q = 600_000
	cfg := burstPool(q, l.IntN(2) == 0, 60)
	cfg.Guard = time.Duration(l.IntN(2)) * time.Second
	add := func(m classes.Metric, least, most int64, span time.Duration) {
		cfg.Limits = append(cfg.Limits, classes.Limit{Metric: m, Amount: least + l.Int64N(most-least), Span: span})
	}
	add(classes.Requests, 100, 700, time.Minute)
	if l.IntN(2) == 0 {
		add(classes.Tokens, q/20, q/10, 2*time.Second)
	}
	if l.IntN(2) == 0 {
		add(classes.InputTokens, q/4, q, time.Minute)
		add(classes.OutputTokens, q/4, q, time.Minute)
	}
	if l.IntN(3) == 0 {
		add(classes.Requests, 4, 20, time.Second)
	}
	if l.IntN(2) == 0 {
		cfg.Concurrency = 4 + l.IntN(40)
	}
	for i := range cfg.Classes {
		c := &cfg.Classes[i]
		if l.IntN(3) == 0 {
			c.ReserveMin, c.ReserveMax = 0, c.Floor
		}
	}
	return cfg
}

// meters sums what is granted of every limit, exactly, in every window.
type meters struct {
	l       *loop
	limits  []classes.LimitState
	windows []exactWindow
	fullest []float64 // part of the limit
	grants  [3]int
	last    time.Duration // when something was granted
	gap     time.Duration // the longest time without a grant while all classes waited
}

func newMeters(l *loop) *meters {
	m := &meters{l: l}
	for i := range l.b.rule.Limits() {
		s := l.b.rule.LimitAt(i)
		m.limits = append(m.limits, s)
		m.windows = append(m.windows, exactWindow{window: s.Window})
	}
	m.fullest = make([]float64, len(m.limits))
	l.hears = m.hear
	return m
}

func (m *meters) hear(a Ask, d wire.Decision) {
	if d.Verdict != wire.Grant {
		return
	}
	for c, source := range sourceOf {
		if a.Source == source {
			m.grants[c]++
		}
	}
	m.last = m.l.now
	cost := classes.VecOf(d.Cost)
	for i := range m.windows {
		s := &m.limits[i]
		if s.Window == 0 {
			m.inFlight(i)
			continue
		}
		sum := m.windows[i].add(m.l.now, cost[s.Metric])
		m.fullest[i] = max(m.fullest[i], float64(sum)/float64(s.Quota))
		if sum > s.Quota {
			m.l.t.Fatalf("at %s: I1: %d of %s granted within a window, the quota is %d", m.l.now, sum, s.Limit, s.Quota)
		}
	}
}

func (m *meters) inFlight(i int) {
	n := int64(m.l.b.inFlight)
	if used := m.l.b.rule.LimitAt(i).Used; n > m.limits[i].Quota || n != used {
		m.l.t.Fatalf("at %s: %d leases are in flight, the rule counts %d, the cap is %d", m.l.now, n, used, m.limits[i].Quota)
	}
	m.fullest[i] = max(m.fullest[i], float64(n)/float64(m.limits[i].Quota))
}

// look watches for a standstill: all classes wait, and nothing is granted.
func (m *meters) look() {
	for c := range m.l.b.queues {
		if m.l.b.queues[c].head(&m.l.b.tickets) == none {
			m.last = m.l.now
			return
		}
	}
	m.gap = max(m.gap, m.l.now-m.last)
}

// boundedSize draws a job whose wait is bounded in class c on every limit.
func boundedSize(l *loop, c int, median float64) int64 {
	most := int64(1) << 40
	for i := range l.b.rule.Limits() {
		s := l.b.rule.LimitAt(i)
		if s.Metric == classes.Requests || s.Metric == classes.Leases {
			continue
		}
		bounded := s.Quota
		for e := range l.b.queues {
			if e != c {
				bounded -= l.b.rule.StandingAt(i, e).Floor
			}
		}
		if s.Metric != classes.Tokens {
			bounded *= 2 // half of a job
		}
		most = min(most, bounded-1)
	}
	return l.lognormal(median, 1, 100, most)
}

// TestSeveralLimits saturates pools of several limits: each quota is kept in every
// window, the cap on leases at every moment, every class is served, no head waits
// longer than on one limit, and nothing ever stands still while everybody waits.
func TestSeveralLimits(t *testing.T) {
	var mu sync.Mutex
	var gap time.Duration
	bound := map[string]int{}
	worst := side(t, 200, func(t *testing.T, seed uint64) [3]time.Duration {
		l := newLoop(t, seed, burstPool(1000, true, 60))
		l.b = New(severalLimits(l), 7, origin)
		m := newMeters(l)
		h := &heads{l: l, bound: func(c int, waited time.Duration) error {
			if most := 3*l.b.rule.LongestWindow() + 15*time.Second; waited > most {
				return fmt.Errorf("seed %d: head for %s", seed, waited)
			}
			return nil
		}}
		for c := range sourceOf {
			for range 4 + l.IntN(20) {
				w := &worker{
					l: l, source: sourceOf[c], hold: time.Duration(l.IntN(2)) * time.Hour,
					size:    func() int64 { return boundedSize(l, c, 4000) },
					service: func() time.Duration { return time.Duration(l.ExpFloat64() * float64(3*time.Second)) },
				}
				l.in(time.Duration(l.Int64N(int64(30*time.Second))), w.start)
			}
		}
		l.after = func() { h.look(); m.look() }
		l.run(240 * time.Second)
		for c, n := range m.grants {
			if n < 3 {
				t.Errorf("seed %d: class %d was granted %d jobs", seed, c, n)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		gap = max(gap, m.gap)
		for i, s := range m.limits {
			if m.fullest[i] > 0.9 {
				bound[s.String()]++
			}
		}
		return h.worst
	})
	t.Logf("longest time as head %v, longest standstill %s; limits that bound: %v", worst, gap, bound)
	if gap > 62*time.Second {
		t.Errorf("nothing was granted for %s while all classes waited", gap)
	}
	for _, name := range []string{"tokens/60s", "requests/60s", "tokens/2s", "output_tokens/60s", "leases"} {
		if bound[name] == 0 {
			t.Errorf("%s never bound: the loops test nothing", name)
		}
	}
}

// TestSlotsAreTheBottleneck saturates a pool whose cap on leases binds: each class
// gets its share of the leases, and work of interactive that comes now and then
// waits for one lease to end at most, not for its turn.
func TestSlotsAreTheBottleneck(t *testing.T) {
	for _, slots := range []int{10, 20, 100} {
		for _, hold := range []time.Duration{0, time.Hour} {
			t.Run(fmt.Sprintf("slots=%d/held=%v", slots, hold > 0), func(t *testing.T) {
				t.Parallel()
				share := slotShares(t, slots, hold)
				t.Logf("lease time: %.1f %.1f %.1f %%", share[0], share[1], share[2])
				for c, want := range []float64{70, 20, 10} {
					if share[c] < want*0.7-2 {
						t.Errorf("class %d had %.1f %% of the leases, its share is %.0f %%", c, share[c], want)
					}
				}
				if waited := slotWait(t, slots); waited > 1500*time.Millisecond {
					t.Errorf("an interactive job waited %s for a lease", waited)
				}
			})
		}
	}
}

// slotShares returns the part of all lease time that each class had.
func slotShares(t *testing.T, slots int, hold time.Duration) (part [3]float64) {
	cfg := burstPool(1_000_000_000, true, 60)
	cfg.Concurrency = slots
	l := newLoop(t, 5, cfg)
	var leased [3]time.Duration
	var total time.Duration
	for c := range sourceOf {
		for range 2 * slots {
			w := &worker{l: l, source: sourceOf[c], hold: hold, size: func() int64 { return 1000 }}
			w.service = func() time.Duration {
				d := time.Duration((0.2 + l.ExpFloat64()) * float64(2*time.Second))
				if l.now > 20*time.Second {
					leased[c] += d
					total += d
				}
				return d
			}
			l.in(time.Duration(l.Int64N(int64(time.Second))), w.start)
		}
	}
	m := newMeters(l)
	l.run(5 * time.Minute)
	if m.fullest[1] < 1 {
		t.Errorf("at most %.0f %% of the leases were in flight", 100*m.fullest[1])
	}
	for c := range part {
		part[c] = 100 * float64(leased[c]) / float64(total)
	}
	return part
}

// slotWait returns the longest wait of an interactive job that comes now and then,
// while the others have more work than there are leases, of 20 s each.
func slotWait(t *testing.T, slots int) (most time.Duration) {
	cfg := burstPool(1_000_000_000, true, 60)
	cfg.Concurrency = slots
	l := newLoop(t, 6, cfg)
	for c := 1; c < 3; c++ {
		for range 2 * slots {
			w := &worker{l: l, source: sourceOf[c], hold: time.Hour, size: func() int64 { return 1000 }}
			w.service = func() time.Duration { return time.Duration((0.5 + l.Float64()) * float64(20*time.Second)) }
			l.in(time.Duration(l.Int64N(int64(20*time.Second))), w.start)
		}
	}
	jobs := 0
	w := &worker{
		l: l, source: "api", hold: time.Hour, size: func() int64 { return 1000 },
		service: func() time.Duration { return time.Second }, think: 8 * time.Second,
		granted: func(_ int64, waited time.Duration) {
			if jobs++; l.now > time.Minute {
				most = max(most, waited)
			}
		},
	}
	l.in(30*time.Second, w.start)
	l.run(10 * time.Minute)
	if jobs < 30 {
		t.Errorf("%d interactive jobs: the loop tests nothing", jobs)
	}
	return most
}
