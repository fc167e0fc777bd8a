package classes

import (
	"time"

	"quotabroker/wire"
)

// Ask is a job that wants to go now.
type Ask struct {
	Class int
	Cost  Vec  // the job's own
	Ahead Vec  // what stands before it in its class
	Due   bool // it was booked, and its time has come: it is not paced
	Head  bool // it is the head of its class, which is paced for one window at most
}

// Check is whether a job may go now, limit by limit.
type Check struct {
	Go    bool
	order order
	fails [MaxLimits]bool // no room is left beside what is held for others
	paced [MaxLimits]bool // there may be room, but borrowing goes level
}

// Answer is when a job that may not go now may go, and why it may not.
type Answer struct {
	Wait  time.Duration // as far as can be told; positive
	Cause wire.Cause
	Limit int // which limit binds, an index into the pool's limits
}

// order is where the asking class stands against the others, the same on every
// limit. Bits are class numbers.
type order struct {
	guaranteed bool   // the job stays within its class's floor on every limit
	below      uint32 // classes below their floor on every limit
	own        bool   // the asking class's own head is aged: no class goes first by level
	aged       uint32 // classes whose aged head goes first
	first      uint32 // classes that go first by level
	num, den   int64  // the asking class's level
}

// May says whether the job may go now. It changes nothing.
// Cost: O(limits·classes).
func (r *Rule) May(a *Ask) Check {
	n := a.Ahead.Add(a.Cost)
	ch := Check{Go: true, order: r.order(a.Class, &a.Cost, &n)}
	for i := range r.limits {
		l := &r.limits[i]
		m := l.Metric
		if a.Cost[m] == 0 {
			continue
		}
		ch.fails[i] = !r.fits(l, a.Class, n[m], &ch.order)
		ch.paced[i] = l.paced(a.Class, n[m], a.Ahead[m]) && r.pacedFor(l, a) > 0
		if ch.fails[i] || ch.paced[i] {
			ch.Go = false
		}
	}
	return ch
}

// When tells the wait of a job that may not go now, which limit binds and why.
// Cost: O(buckets·classes) for each limit that binds.
func (r *Rule) When(a *Ask, ch *Check) Answer {
	var waits [MaxLimits]time.Duration
	out := Answer{Wait: 1, Cause: wire.CauseOrder}
	for i := range r.limits {
		if !ch.fails[i] && !ch.paced[i] {
			continue
		}
		waits[i] = r.wait(&r.limits[i], a, &ch.order, ch.fails[i])
		if waits[i] > out.Wait {
			out.Wait, out.Limit = waits[i], i
		}
	}
	if limit, cause := r.cause(a, &waits); cause != wire.CauseNone {
		out.Limit, out.Cause = limit, cause
	}
	return out
}

// PaceWait returns the exact time until pacing alone lets the job go; ok is false
// when something else binds too, which no clock but a boundary or an event cures.
func (r *Rule) PaceWait(a *Ask, ch *Check) (wait time.Duration, ok bool) {
	for i := range r.limits {
		l := &r.limits[i]
		if ch.fails[i] {
			return 0, false
		}
		if ch.paced[i] {
			p := &l.class[a.Class]
			need := l.line.Level() + a.Ahead[l.Metric] - l.forgiven(p)
			wait = max(wait, min(l.line.Leaks(need, l.quota-l.unmet, l.window), r.pacedFor(l, a)))
		}
	}
	return wait, true
}

// cause names what keeps the job waiting, judged as if nothing of its class were
// ahead; CauseNone if it could then go.
func (r *Rule) cause(a *Ask, waits *[MaxLimits]time.Duration) (limit int, cause wire.Cause) {
	o := r.order(a.Class, &a.Cost, &a.Cost)
	longest := time.Duration(-1)
	for i := range r.limits {
		l := &r.limits[i]
		x := a.Cost[l.Metric]
		if x == 0 || waits[i] <= longest {
			continue
		}
		why := wire.CauseNone
		switch {
		case !r.fits(l, a.Class, x, &o):
			why = wire.CauseReserved
			if l.ring == nil {
				why = wire.CauseConcurrency
			} else if l.quota-l.total() < x {
				why = wire.CauseQuota
			}
		case l.paced(a.Class, x, 0) && r.pacedFor(l, a) > 0:
			why = wire.CausePace
		}
		if why != wire.CauseNone {
			limit, cause, longest = i, why, waits[i]
		}
	}
	return limit, cause
}

// order places class c, with a job of the given cost that needs n, among the
// classes that wait.
func (r *Rule) order(c int, cost, n *Vec) order {
	o := order{guaranteed: true, den: 1}
	for i := range r.limits {
		l := &r.limits[i]
		if cost[l.Metric] > 0 && l.used[c]+n[l.Metric] > l.class[c].floor {
			o.guaranteed = false
		}
	}
	for e := range r.classes {
		if e != c && r.demand[e].Count > 0 && r.below(e) {
			o.below |= 1 << e
		}
	}
	if o.guaranteed {
		return o
	}
	o.num, o.den = r.level(c)
	o.own = r.aged(c)
	for e := range r.classes {
		if e == c || r.demand[e].Count == 0 {
			continue
		}
		theirs := r.aged(e)
		switch {
		case theirs && (!o.own || r.older(e, c)):
			o.aged |= 1 << e
		case !theirs && !o.own:
			if num, den := r.level(e); lessRatio(num, den, o.num, o.den) {
				o.first |= 1 << e
			}
		}
	}
	return o
}

// below reports whether e stands below its floor on every limit, so that its
// waiting work is owed to it. On one limit alone that is no claim: the work needs
// all of them.
func (r *Rule) below(e int) bool {
	for i := range r.limits {
		if l := &r.limits[i]; l.used[e] >= l.class[e].floor {
			return false
		}
	}
	return true
}

// level returns the largest use over share of c on any limit, as a ratio.
func (r *Rule) level(c int) (num, den int64) {
	den = 1
	for i := range r.limits {
		l := &r.limits[i]
		if u, s := l.used[c], l.class[c].share; i == 0 || lessRatio(num, den, u, s) {
			num, den = u, s
		}
	}
	return num, den
}

// aged reports whether the head of c has been head for so long that it goes
// before every class above its floor.
func (r *Rule) aged(c int) bool {
	after, d := r.classes[c].AgeAfter, &r.demand[c]
	return after > 0 && d.Count > 0 && d.HeadTried && r.now-d.HeadSince >= after && r.Bounded(c, d.Head)
}

// older reports whether the head of e is older than that of c; of the same age,
// the more urgent class is the older.
func (r *Rule) older(e, c int) bool {
	a, b := r.demand[e].HeadSince, r.demand[c].HeadSince
	return a < b || a == b && e < c
}

// fits reports whether n more of class c leaves on limit l what is held for the
// others.
func (r *Rule) fits(l *limit, c int, n int64, o *order) bool {
	free := l.quota - l.total() - n
	if free < 0 {
		return false
	}
	for e := range l.class {
		if e == c {
			continue
		}
		u := l.used[e]
		if hold := r.hold(l, c, e, o); hold > u {
			if free -= hold - u; free < 0 {
				return false
			}
		}
	}
	return true
}

// hold returns how far class e's use may still rise before c may take anything
// more of limit l.
func (r *Rule) hold(l *limit, c, e int, o *order) int64 {
	p, d, bit := &l.class[e], &r.demand[e], uint32(1)<<e
	u, q := l.used[e], d.Queued[l.Metric]
	if o.guaranteed {
		hold := p.m()
		if e < c && o.below&bit != 0 { // the more urgent class below its own floor goes first
			hold = max(hold, min(p.floor, u+q))
		}
		return hold
	}
	owed := int64(0)
	if o.below&bit != 0 {
		owed = q
	}
	hold := p.protected(u, owed)
	switch {
	case o.aged&bit != 0:
		hold = max(hold, u+d.Head[l.Metric])
	case o.first&bit != 0:
		level := mulDiv(o.num, p.share, o.den)
		if r.Bounded(e, d.Head) {
			level = max(level, u+d.Head[l.Metric])
		}
		hold = max(hold, min(level, u+q))
	}
	return hold
}

// paced reports whether pacing keeps class c from taking n more: it would stand
// above its share, and the account's line is not low enough.
func (l *limit) paced(c int, n, ahead int64) bool {
	p := &l.class[c]
	return p.tolerance > 0 && l.ring != nil && l.used[c]+n > p.share && l.line.Level()+ahead > l.forgiven(p)
}

// pacedFor returns for how long from now pacing may still keep the job waiting. A
// head that ages pays what its class borrowed for one window at most: room that
// comes back in lumps, together with those who push the line up, else meets a level
// line never. A booking that is due has paid.
func (r *Rule) pacedFor(l *limit, a *Ask) time.Duration {
	d := &r.demand[a.Class]
	switch {
	case a.Due:
		return 0
	case a.Head && d.HeadTried && r.classes[a.Class].AgeAfter > 0 && r.Bounded(a.Class, d.Head):
		return max(0, d.HeadSince+l.window-r.now)
	}
	return longest
}

// forgiven returns the level up to which a class of this tolerance borrows.
func (l *limit) forgiven(p *standing) int64 {
	return mulDiv(l.quota-l.unmet, int64(p.tolerance), int64(l.window))
}

// TooLarge reports whether class c can never be given the job, and by which limit.
func (r *Rule) TooLarge(c int, cost Vec) (limit int, tooLarge bool) {
	for i := range r.limits {
		if l := &r.limits[i]; cost[l.Metric] > l.class[c].largest {
			return i, true
		}
	}
	return 0, false
}

// Bounded reports whether the wait of the job is bounded: it fits beside the
// floors of all others.
func (r *Rule) Bounded(c int, cost Vec) bool {
	for i := range r.limits {
		if l := &r.limits[i]; cost[l.Metric] > l.class[c].bounded {
			return false
		}
	}
	return true
}

// Blocks returns the longest window of a limit on which the wait of the job is not
// bounded; bounded is true where there is none.
func (r *Rule) Blocks(c int, cost Vec) (window time.Duration, bounded bool) {
	bounded = true
	for i := range r.limits {
		if l := &r.limits[i]; cost[l.Metric] > l.class[c].bounded {
			window, bounded = max(window, l.window), false
		}
	}
	return window, bounded
}

// LongestWindow returns the longest window of any limit.
func (r *Rule) LongestWindow() (w time.Duration) {
	for i := range r.limits {
		w = max(w, r.limits[i].window)
	}
	return w
}

// Empty returns the first limit whose quota is 0, if there is one.
func (r *Rule) Empty(cost Vec) (limit int, empty bool) {
	for i := range r.limits {
		if l := &r.limits[i]; l.quota == 0 && cost[l.Metric] > 0 {
			return i, true
		}
	}
	return 0, false
}
