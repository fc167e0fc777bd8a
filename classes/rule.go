package classes

import (
	"time"

	"quotabroker/window"
)

// Demand is what waits in one class, as the rule needs to know it. Tickets that
// are late or parked do not count: nothing is held back for them.
type Demand struct {
	Count     int           // waiting tickets
	Queued    Vec           // what they want together
	Head      Vec           // what the first of them wants
	HeadSince time.Duration // when the head was first tried with nothing ahead of it
	HeadTried bool          // whether it was
}

// Settings are what the rule takes from a pool's configuration.
type Settings struct {
	Classes     []Class
	Limits      []Limit
	Concurrency int // leases in flight; 0: no cap
	Margin      Portion
	Guard       time.Duration
	Buckets     int
	HalfLife    time.Duration // of a reserve's way down to its minimum
}

// Rule is the admission rule with the meters it judges by: for every limit, what
// each class charged in the window, the pacing line, and the learned reserves.
//
// Call [Rule.Advance] before anything else at a new time, and [Rule.SetDemand]
// whenever what waits in a class changed. A Rule is not safe for concurrent use.
type Rule struct {
	classes   []Class
	limits    []limit
	demand    []Demand
	now       time.Duration
	leaseTime time.Duration // how long a lease lasts on average
}

// limit is one limit under the rule.
type limit struct {
	Limit
	quota    int64         // Q: the amount less the margin
	window   time.Duration // W: the span and the guard; 0 for the concurrency cap
	ring     *window.Ring  // nil for the concurrency cap
	used     []int64       // u, by class
	inFlight int64         // U of the concurrency cap
	line     window.Line   // L
	unmet    int64         // H: the sum of unmet reserves
	age      int64         // in boundaries passed
	seenFrom time.Duration // charges before it were not taken over in the last change of configuration
	rates    *window.Decay
	reserves *window.Decay
	class    []standing
}

// standing is what a class may expect of one limit.
type standing struct {
	share, floor int64
	least, most  int64         // bounds of the reserve
	reserve      int64         // M, in 1/2^16
	risen        int64         // what it was above least when it was last set
	risenAt      int64         // the age of the limit then
	round        int64         // added before it is cut to whole units
	largest      int64         // X: the largest job it can ever be given
	bounded      int64         // G: the largest job whose wait is bounded
	tolerance    time.Duration // tau, stretched with the span; 0: not paced
	rate         window.Rate   // r
	rateSet      window.Rate   // what it was when something was last charged
	rateSetAt    int64         // the age of the limit then
}

const (
	reserveScale = 16
	forecastTau  = 15 * time.Second       // memory of the charge rates that T forecasts with
	gaugeStep    = 250 * time.Millisecond // decay step where there are no buckets
	never        = time.Duration(1<<63 - 1)
	firstLease   = 2 * time.Second // assumed length of a lease before any ended
)

// NewRule returns a rule in which nothing was charged yet, at time 0.
func NewRule(s Settings) *Rule {
	r := &Rule{classes: s.Classes, demand: make([]Demand, len(s.Classes)), leaseTime: firstLease}
	for _, l := range s.Limits {
		r.limits = append(r.limits, newLimit(l, s))
	}
	if s.Concurrency > 0 {
		r.limits = append(r.limits, newLimit(Limit{Metric: Leases, Amount: int64(s.Concurrency)}, s))
	}
	return r
}

func newLimit(spec Limit, s Settings) limit {
	l := limit{Limit: spec, quota: spec.Amount}
	step := time.Duration(gaugeStep)
	if spec.Metric == Leases {
		l.used = make([]int64, len(s.Classes))
	} else {
		l.quota -= s.Margin.Of(spec.Amount)
		l.ring = window.NewRing(spec.Span+s.Guard, s.Buckets, len(s.Classes))
		l.used, l.window, step = l.ring.Used(), l.ring.Window(), l.ring.BucketWidth()
	}
	l.rates = window.NewDecay(step, forecastTau)
	l.reserves = window.NewHalfLife(step, s.HalfLife)
	l.class = make([]standing, len(s.Classes))
	floors := l.floors(s.Classes)
	var sumFloor, sumMost int64
	for i, c := range s.Classes {
		p := &l.class[i]
		p.share = max(1, c.Share.Of(l.quota))
		p.floor = floors[i]
		p.least = min(c.ReserveMin.Of(l.quota), p.floor)
		p.most = min(c.ReserveMax.Of(l.quota), p.floor)
		p.setReserve(max(p.least, p.most/2)<<reserveScale, 0)
		if spec.Metric == Leases { // a lease that was learned is there for a half-life, not until a moment has passed
			p.round = 1 << reserveScale / 2
		}
		p.tolerance = tolerance(c.Pace, spec.Span)
		sumFloor += p.floor
		sumMost += p.most
	}
	for i := range l.class {
		p := &l.class[i]
		p.largest = l.quota - (sumMost - p.most)
		p.bounded = l.quota - (sumFloor - p.floor)
	}
	l.setUnmet()
	return l
}

// floors returns the floor of each class. On the concurrency cap every class with
// a floor gets at least one lease of it, taken from the largest floors, or none
// has a floor where there are too few leases: a floor of less than one lease would
// keep its class from ever standing below it. One lease stays outside all floors
// where some class has none: else the floors of the others would leave it nothing,
// and it and a class that wants more than its floor would wait for each other.
func (l *limit) floors(table []Class) []int64 {
	floors := make([]int64, len(table))
	var sum int64
	most := l.quota
	for i, c := range table {
		floors[i] = c.Floor.Of(l.quota)
		if l.Metric == Leases && floors[i] == 0 && c.Floor > 0 {
			floors[i] = 1
		}
		if floors[i] == 0 {
			most = l.quota - 1
		}
		sum += floors[i]
	}
	if l.Metric != Leases {
		return floors
	}
	for sum > most {
		largest := 0
		for i := range floors {
			if floors[i] > floors[largest] {
				largest = i
			}
		}
		if floors[largest] <= 1 {
			clear(floors)
			return floors
		}
		floors[largest]--
		sum--
	}
	return floors
}

// tolerance stretches a pace with the span of the limit: it is stated for a
// minute, and the burst that a day's limit forgives is a day's, not a minute's.
func tolerance(pace, span time.Duration) time.Duration {
	if pace == 0 || span <= time.Minute {
		return pace
	}
	return time.Duration(mulDiv(int64(pace), int64(span), int64(time.Minute)))
}

// Advance moves every meter to now. A time before the last one is taken as it. It
// goes from boundary to boundary, so that it makes no difference at which moments in
// between somebody looked. Cost: O(classes) for each boundary passed.
func (r *Rule) Advance(now time.Duration) {
	if now <= r.now {
		return
	}
	r.now = now
	for i := range r.limits {
		l := &r.limits[i]
		for at := l.boundary(); at <= now && !l.idle(); at = l.boundary() {
			l.line.Drain(at, l.quota-l.unmet, l.window)
			l.advance(at)
		}
		l.line.Drain(now, l.quota-l.unmet, l.window)
		l.advance(now)
	}
}

// boundary returns when the meters of the limit change next by themselves.
func (l *limit) boundary() time.Duration {
	if l.ring != nil {
		return l.ring.Boundary(1)
	}
	return time.Duration(l.age+1) * gaugeStep
}

// idle reports whether no boundary before now matters: the line is empty, whatever
// rate it drains at.
func (l *limit) idle() bool {
	return l.line.Level() == 0 && (l.ring == nil || l.ring.Total() == 0)
}

// advance moves the limit to now, across any number of boundaries. What fades is
// computed from what it was when it was last set, so that the number of steps in
// which time passed leaves no trace in its rounding.
func (l *limit) advance(now time.Duration) {
	was := l.age
	if l.move(now); l.age == was {
		return
	}
	for c := range l.class {
		p := &l.class[c]
		if !p.rate.Zero() {
			p.rate = p.rateSet
			p.rate.Decay(l.rates, l.age-p.rateSetAt)
		}
		if least := p.least << reserveScale; p.reserve > least {
			p.reserve = least + l.reserves.Apply(p.risen, l.age-p.risenAt)
		}
	}
	l.setUnmet()
}

// move moves the meter to now.
func (l *limit) move(now time.Duration) {
	if l.ring != nil {
		l.age += l.ring.Advance(now)
	} else {
		l.age = max(l.age, int64(now/gaugeStep))
	}
}

// setReserve sets M at the present age of its limit.
func (p *standing) setReserve(m, age int64) {
	p.reserve, p.risen, p.risenAt = m, m-p.least<<reserveScale, age
}

// SetDemand tells the rule what waits in class c.
func (r *Rule) SetDemand(c int, d Demand) { r.demand[c] = d }

// SetLeaseTime tells the rule how long a lease lasts on average, from which the
// wait for a free lease is estimated.
func (r *Rule) SetLeaseTime(d time.Duration) { r.leaseTime = max(d, time.Millisecond) }

// Charge counts a granted job of class c on every limit.
func (r *Rule) Charge(c int, cost Vec) {
	for i := range r.limits {
		l := &r.limits[i]
		n := cost[l.Metric]
		if l.ring == nil {
			l.used[c] += n
			l.inFlight += n
			continue
		}
		l.ring.Charge(c, n)
		p := &l.class[c]
		p.rate.Add(n)
		p.rateSet, p.rateSetAt = p.rate, l.age
		l.line.Pour(n, l.quota)
		l.setUnmet()
	}
}

// Overrun counts what a job of class c took above its estimate. It is charged
// now, and may take a limit over its quota: a debt, until it leaves the window.
func (r *Rule) Overrun(c int, extra Vec) {
	for i := range r.limits {
		l := &r.limits[i]
		if n := extra[l.Metric]; n > 0 && l.ring != nil {
			l.ring.Charge(c, n)
			l.line.Pour(n, l.quota)
			l.setUnmet()
		}
	}
}

// Refund gives back what a job of class c that was charged at the given time did
// not take, as far as that time is still within the window.
func (r *Rule) Refund(c int, charged time.Duration, unused Vec) {
	for i := range r.limits {
		l := &r.limits[i]
		if n := unused[l.Metric]; n > 0 && l.ring != nil {
			l.line.Take(l.ring.Refund(c, charged, n))
			l.setUnmet()
		}
	}
}

// Release takes one lease of class c off the concurrency cap.
func (r *Rule) Release(c int) {
	for i := range r.limits {
		if l := &r.limits[i]; l.ring == nil {
			l.used[c]--
			l.inFlight--
		}
	}
}

// Learn raises the reserve of class c by what was missing for a new ask that was
// not granted although it stays within the floor. Only a new ask may teach:
// asked again, the same shortage would be learned again.
func (r *Rule) Learn(c int, ahead, cost Vec) {
	for i := range r.limits {
		l := &r.limits[i]
		p := &l.class[c]
		n := ahead[l.Metric] + cost[l.Metric]
		if p.most == 0 || cost[l.Metric] == 0 || l.used[c]+n > p.floor {
			continue
		}
		short := n - (l.quota - l.total())
		for e := range l.class {
			if e != c {
				short += max(0, l.class[e].m()-l.used[e])
			}
		}
		short = min(max(short, 0), cost[l.Metric])
		p.setReserve(min(p.reserve+short<<reserveScale, p.most<<reserveScale), l.age)
		l.setUnmet()
	}
}

// NextChange returns the next moment at which time alone may let a job go: something
// may leave a window, or a head comes of age or has paid for what its class borrowed.
func (r *Rule) NextChange() time.Duration {
	next := never
	for i := range r.limits {
		if l := &r.limits[i]; l.ring != nil || !l.idle() {
			next = min(next, l.boundary())
		}
	}
	return next
}

func (l *limit) total() int64 {
	if l.ring == nil {
		return l.inFlight
	}
	return l.ring.Total()
}

// setUnmet recomputes H. The line leaks at (Q - H)/W, so that a changed H acts at
// once.
func (l *limit) setUnmet() {
	l.unmet = 0
	for e := range l.class {
		p := &l.class[e]
		if u := l.used[e]; u < p.floor {
			l.unmet += max(0, min(p.m(), p.floor-u))
		}
	}
}

// m returns the reserve in whole units.
func (p *standing) m() int64 { return (p.reserve + p.round) >> reserveScale }

// protected returns P for a class that uses u and has queued q that counts.
func (p *standing) protected(u, q int64) int64 { return min(p.floor, u+q+p.m()) }
