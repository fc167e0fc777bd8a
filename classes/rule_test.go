package classes

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"quotabroker/window"
	"quotabroker/wire"
)

// world is a rule and its naive twin, which see the same events.
type world struct {
	*rand.Rand
	rule *Rule
	m    *naive
	met  map[string]int // what the history exercised
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), met: map[string]int{}}
	s := Settings{
		Classes: w.table(), HalfLife: 10 * time.Minute, Guard: time.Duration(w.IntN(2)) * time.Second,
		Buckets: []int{6, 60, 120, 240}[w.IntN(4)],
		Limits:  []Limit{{Tokens, w.quota(), time.Minute}},
	}
	if w.IntN(2) == 0 {
		s.Margin = Portion(w.IntN(int(10 * Percent)))
	}
	w.rule = NewRule(s)
	l := &w.rule.limits[0]
	w.m = &naive{
		table: s.Classes, quota: l.quota, window: l.window, bucket: l.window / time.Duration(s.Buckets),
		level: new(big.Int), demand: make([]Demand, len(s.Classes)),
		fall:     window.NewHalfLife(l.window/time.Duration(s.Buckets), s.HalfLife),
		forecast: func(c int, t time.Duration) int64 { return l.class[c].rate.Over(t, forecastTau) },
	}
	for _, c := range s.Classes {
		floor := c.Floor.Of(l.quota)
		least, most := min(c.ReserveMin.Of(l.quota), floor), min(c.ReserveMax.Of(l.quota), floor)
		w.m.share = append(w.m.share, max(1, c.Share.Of(l.quota)))
		w.m.floor = append(w.m.floor, floor)
		w.m.least = append(w.m.least, least)
		w.m.reserve = append(w.m.reserve, max(least, most/2))
		w.m.exact = append(w.m.exact, max(least, most/2)<<16)
		w.m.risen = append(w.m.risen, (max(least, most/2)-least)<<16)
		w.m.age = append(w.m.age, 0)
	}
	w.m.measure()
	return w
}

func (w *world) quota() int64 {
	return []int64{50, 1000, 100_000 + w.Int64N(900_000), 1_000_000_000_000}[w.IntN(4)]
}

// table makes up a valid class table.
func (w *world) table() []Class {
	table := make([]Class, 1+w.IntN(4))
	left := Whole
	for i := range table {
		c := &table[i]
		c.Name = fmt.Sprintf("c%d", i)
		if c.Share = left; i < len(table)-1 {
			c.Share = 1 + Portion(w.Int64N(int64(left)-int64(len(table)-i)))
		}
		left -= c.Share
		switch w.IntN(3) {
		case 0:
			c.Floor = c.Share
		case 1:
			c.Floor = Portion(w.Int64N(int64(c.Share) + 1))
		}
		if w.IntN(3) > 0 {
			c.ReserveMax = Portion(w.Int64N(int64(c.Floor) + 1))
			c.ReserveMin = Portion(w.Int64N(int64(c.ReserveMax) + 1))
		}
		if i > 0 && w.IntN(4) > 0 {
			c.Pace = time.Duration(500+w.IntN(2000)) * time.Millisecond
		}
		if w.IntN(2) == 0 {
			c.AgeAfter = time.Duration(1+w.IntN(20)) * time.Second
		}
	}
	return table
}

// size makes up an amount, small or near a bound of the class.
func (w *world) size(c int) int64 {
	u, total := w.m.usedAt(w.m.now)
	edges := []int64{
		1 + w.Int64N(1+w.m.quota/20), 1 + w.Int64N(w.m.quota), w.m.quota - total,
		w.m.floor[c] - u[c], w.m.share[c] - u[c], w.m.reserve[c] - u[c], w.m.largestBounded(c),
	}
	return min(max(edges[w.IntN(len(edges))]+w.Int64N(3)-1, 1), w.m.quota+1)
}

// step lets one thing happen to both.
func (w *world) step() {
	c := w.IntN(len(w.m.table))
	switch w.IntN(8) {
	case 0, 1:
		dt := time.Duration(w.ExpFloat64() * float64(3*time.Second))
		if w.IntN(10) == 0 {
			dt *= 10
		}
		if w.IntN(2) == 0 { // to look in between makes no difference
			w.rule.Advance(w.m.now + time.Duration(w.Int64N(int64(dt)+1)))
		}
		was := slices.Clone(w.m.reserve)
		w.rule.Advance(w.m.now + dt)
		w.m.advance(w.m.now + dt)
		w.fell(was)
	case 2, 3: // a grant, or an overrun
		n := w.size(c)
		if u, total := w.m.usedAt(w.m.now); !w.m.fits(c, n, u, total) && w.IntN(10) > 0 {
			return
		}
		if w.IntN(5) == 0 {
			w.rule.Overrun(c, Vec{Tokens: n})
		} else {
			w.rule.Charge(c, Vec{Tokens: n})
		}
		w.m.charge(c, n)
	case 4:
		if len(w.m.list) > 0 {
			x := w.m.list[w.IntN(len(w.m.list))]
			n := w.Int64N(x.n + 2)
			w.rule.Refund(x.class, x.at, Vec{Tokens: n})
			w.m.refund(x.class, x.at, n)
		}
	case 5, 6:
		d := Demand{}
		if d.Count = w.IntN(4); d.Count > 0 {
			d.Head[Tokens] = w.size(c)
			d.Queued[Tokens] = d.Head[Tokens] + int64(d.Count-1)*w.size(c)
			if w.IntN(3) > 0 {
				d.HeadTried, d.HeadSince = true, w.m.now-min(w.m.now, time.Duration(w.IntN(120))*time.Second)
			}
		}
		w.rule.SetDemand(c, d)
		w.m.demand[c] = d
	case 7:
		w.learn(c)
	}
}

// fell checks the reserves after time passed.
func (w *world) fell(was []int64) {
	for e, want := range w.m.reserve {
		if got := w.rule.StandingAt(0, e).Reserve; got != want {
			panic(fmt.Sprintf("the reserve of class %d went from %d to %d, want %d", e, was[e], got, want))
		}
		if want < was[e] {
			w.met["reserve fell"]++
		}
	}
}

// learn is 4.5: only below the floor, by what was missing, at most the job.
func (w *world) learn(c int) {
	m := w.m
	u, total := m.usedAt(m.now)
	x, ahead := w.size(c), w.Int64N(m.quota/10+1)
	if within := m.floor[c] - u[c]; within > 0 && w.IntN(4) > 0 {
		x, ahead = within-w.Int64N(min(within, 1+m.quota/20)), 0
	}
	most := min(m.table[c].ReserveMax.Of(m.quota), m.floor[c])
	if n := ahead + x; most > 0 && u[c]+n <= m.floor[c] {
		short := n - (m.quota - total)
		for i := range m.table {
			if i != c {
				short += max(0, m.reserve[i]-u[i])
			}
		}
		m.exact[c] = min(most<<16, m.exact[c]+min(max(short, 0), x)<<16)
		m.risen[c], m.age[c] = m.exact[c]-m.least[c]<<16, 0
	}
	if m.reserve[c] < m.exact[c]>>16 {
		w.met["learned"]++
	}
	m.reserve[c] = m.exact[c] >> 16
	w.rule.Learn(c, Vec{Tokens: ahead}, Vec{Tokens: x})
	if got := w.rule.StandingAt(0, c).Reserve; got != m.reserve[c] {
		panic(fmt.Sprintf("class %d learned %d from a job of %d behind %d\n%s", c, got, x, ahead, m))
	}
	m.measure()
}

// compare holds everything that the rule says of one job against the twin.
func (w *world) compare(t *testing.T, seed uint64) {
	m := w.m
	u, total := m.usedAt(m.now)
	state := w.rule.LimitAt(0)
	if state.Used != total || state.Level != m.shown() || w.rule.limits[0].unmet != m.unmet {
		t.Fatalf("seed %d: the rule has U %d L %d H %d\n%s", seed, state.Used, state.Level, w.rule.limits[0].unmet, m)
	}
	for e := range m.table {
		if got := w.rule.StandingAt(0, e).Used; got != u[e] {
			t.Fatalf("seed %d: u of class %d is %d, want %d", seed, e, got, u[e])
		}
	}
	c := w.IntN(len(m.table))
	x, ahead := w.size(c), int64(0)
	if w.IntN(2) == 0 {
		ahead = w.Int64N(m.quota/4 + 1)
	}
	a := Ask{Class: c, Cost: Vec{Tokens: x}, Ahead: Vec{Tokens: ahead}, Due: w.IntN(8) == 0, Head: ahead == 0 && w.IntN(2) == 0}
	n := x + ahead
	check := w.rule.May(&a)
	fits, paced := m.fits(c, n, u, total), m.pacedOut(c, n, ahead, u[c], 0, 0, m.pacedFor(&a))
	if check.fails[0] == fits || check.paced[0] != paced || check.Go != (fits && !paced) {
		t.Fatalf("seed %d: class %d, %d behind %d: fits %v paced %v, the rule says %+v\n%s", seed, c, x, ahead, fits, paced, check, m)
	}
	if !a.Due && !paced && m.pacedOut(c, n, ahead, u[c], 0, 0, longest) {
		w.met["head not paced after a window"]++
	}
	switch {
	case check.Go && u[c]+n <= m.floor[c]:
		w.met["granted within the floor"]++
	case check.Go:
		w.met["granted above the floor"]++
	default:
		w.compareWait(t, seed, &a, &check)
	}
}

func (w *world) compareWait(t *testing.T, seed uint64, a *Ask, check *Check) {
	m, c := w.m, a.Class
	x, ahead := a.Cost[Tokens], a.Ahead[Tokens]
	u, total := m.usedAt(m.now)
	got := w.rule.When(a, check)
	exact, boundary := m.wait(a)
	if exact == 0 && boundary == 0 {
		exact = m.beyond(a)
		w.met["beyond a window"]++
	} else if exact != boundary {
		w.met["pacing ends between boundaries"]++
	}
	if got.Wait != max(exact, 1) {
		t.Fatalf("seed %d: class %d, %d behind %d, due %v: waits %s, want %s (boundary %s); %+v\n%s",
			seed, c, x, ahead, a.Due, got.Wait, exact, boundary, check, m)
	}
	if boundary > 0 && got.Wait > boundary {
		t.Fatalf("seed %d: waits %s, the first boundary at which it may go is %s", seed, got.Wait, boundary)
	}
	want := wire.CauseOrder
	switch {
	case m.quota-total < x:
		want = wire.CauseQuota
	case !m.fits(c, x, u, total):
		want = wire.CauseReserved
	case m.pacedOut(c, x, 0, u[c], 0, 0, m.pacedFor(a)):
		want = wire.CausePace
	}
	if got.Cause != want {
		t.Fatalf("seed %d: cause %s, want %s\n%s", seed, got.Cause, want, m)
	}
	w.met["cause "+want.String()]++
	if check.paced[0] && !check.fails[0] {
		w.paceEnds(t, seed, a, check)
	}
}

// paceEnds checks that the wait for pacing alone is exact to the nanosecond.
func (w *world) paceEnds(t *testing.T, seed uint64, a *Ask, check *Check) {
	m := w.m
	wait, ok := w.rule.PaceWait(a, check)
	if m.quota == m.unmet {
		return
	}
	if want := min(m.levels(a.Ahead[Tokens]-m.forgiven(a.Class)), m.pacedFor(a)); !ok || wait != want {
		t.Fatalf("seed %d: pacing ends in %s (%v), want %s\n%s", seed, wait, ok, want, m)
	}
	w.met["pacing alone"]++
}

// TestRuleAgainstNaive holds the rule of one limit against the naive one on random
// histories: may it go, when, why not, what is learned.
func TestRuleAgainstNaive(t *testing.T) {
	const histories, parts = 300, 4
	met := make(chan map[string]int, parts)
	t.Run("histories", func(t *testing.T) {
		for part := range uint64(parts) {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				sum := map[string]int{}
				for seed := part; seed < histories; seed += parts {
					w := newWorld(seed)
					for range 60 {
						w.step()
						w.compare(t, seed)
					}
					for what, n := range w.met {
						sum[what] += n
					}
				}
				met <- sum
			})
		}
	})
	total := map[string]int{}
	for range min(parts, len(met)) {
		for what, n := range <-met {
			total[what] += n
		}
	}
	t.Logf("exercised: %v", total)
	if total["head not paced after a window"] < 5 {
		t.Error("no head was old enough not to be paced")
	}
	for _, what := range []string{
		"granted within the floor", "granted above the floor", "beyond a window", "pacing ends between boundaries",
		"cause quota", "cause reserved", "cause pace", "cause order", "learned", "reserve fell", "pacing alone",
	} {
		if total[what] < 20 {
			t.Errorf("%q was met %d times: the histories test nothing", what, total[what])
		}
	}
}
