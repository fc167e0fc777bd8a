package classes

import (
	"time"

	"quotabroker/window"
)

// wait returns how long from now until the job may go on limit l: it looks ahead
// along the moments at which charges leave the window, with what the classes that
// go first are expected to charge until then. Alone in the pool it is exact.
func (r *Rule) wait(l *limit, a *Ask, o *order, fails bool) time.Duration {
	if l.ring == nil {
		return r.waitForLease(l, a, o)
	}
	c, m := a.Class, l.Metric
	ahead := a.Ahead[m]
	n := ahead + a.Cost[m]
	p := &l.class[c]
	paced := r.pacedFor(l, a)
	pace := p.tolerance > 0 && paced > 0
	forgiven, leak := int64(0), l.quota-l.unmet
	level := time.Duration(0) // when the line is low enough, at the earliest
	if pace {
		forgiven = l.forgiven(p)
		level = min(paced, l.line.Leaks(l.line.Level()+ahead-forgiven, leak, l.window))
	}
	if n > l.quota {
		return r.beyond(l, c, n, ahead, pace, forgiven)
	}
	var f forecast
	f.start(l, c, n)
	last := l.ring.Buckets() + 1
	for j := 0; j <= last; j++ {
		t := time.Duration(0)
		if j > 0 {
			f.leave(l.ring.Leaving(j))
			t = l.ring.Boundary(j) - r.now
		} else if fails {
			continue
		}
		over := pace && f.used[c]+n > p.share
		next := l.ring.Boundary(j+1) - r.now
		if f.total+n > l.quota || over && level >= next && j < last {
			continue // even without what the others will take meanwhile
		}
		f.at(l, t)
		if j > 0 && !r.fitsThen(l, c, n, &f, o) {
			continue
		}
		if !over {
			return max(t, 1)
		}
		level := max(t, min(paced, l.line.Leaks(l.line.Level()+f.come+ahead-forgiven, leak, l.window)))
		if level == t || j == last || level < next {
			return max(level, 1)
		}
	}
	return r.beyond(l, c, n, ahead, pace, forgiven)
}

// forecast is what one limit is expected to hold at a later time.
type forecast struct {
	used   [MaxClasses]int64 // without what is still to come
	total  int64
	counts uint32 // classes whose charges until then are expected
	flow   [MaxClasses]window.Flow
	come   int64             // what they are
	more   [MaxClasses]int64 // by class
}

// start takes the limit as it is now. Expected charges count only for classes
// that go before c: those within their floor, and where c would leave its own,
// those at a lower level.
func (f *forecast) start(l *limit, c int, n int64) {
	copy(f.used[:], l.used)
	f.total = l.total()
	reached, mine := l.used[c]+n, &l.class[c]
	for e := range l.class {
		u, p := l.used[e], &l.class[e]
		if e != c && !p.rate.Zero() && (u <= p.floor || reached > mine.floor && !lessRatio(reached, mine.share, u, p.share)) {
			f.counts |= 1 << e
			f.flow[e] = p.rate.Flow(forecastTau)
		}
	}
}

// leave takes out what leaves the window at a boundary.
func (f *forecast) leave(leaving []int64) {
	for e, n := range leaving {
		f.used[e] -= n
		f.total -= n
	}
}

// at adds what is expected until t from now.
func (f *forecast) at(l *limit, t time.Duration) {
	if f.counts == 0 {
		return
	}
	f.come = 0
	for e := range l.class {
		if f.counts&(1<<e) != 0 {
			f.more[e] = f.flow[e].Over(t)
			f.come += f.more[e]
		}
	}
}

// fitsThen is fits at a later time. It is more careful in two ways, because a
// promise must hold against classes that ask meanwhile: within its floor the job
// lets every class below its own go first, and above it the level counts that the
// class would reach.
func (r *Rule) fitsThen(l *limit, c int, n int64, f *forecast, o *order) bool {
	free := l.quota - f.total - f.come - n
	if free < 0 {
		return false
	}
	reached, mine := f.used[c]+n, &l.class[c]
	within := reached <= mine.floor
	for e := range l.class {
		if e == c {
			continue
		}
		p, d, bit := &l.class[e], &r.demand[e], uint32(1)<<e
		u, q := f.used[e]+f.more[e], d.Queued[l.Metric]
		var hold int64
		switch {
		case within:
			if hold = p.m(); d.Count > 0 {
				hold = max(hold, min(p.floor, u+q))
			}
		default:
			owed := int64(0)
			if o.below&bit != 0 || len(r.limits) == 1 {
				owed = q
			}
			hold = p.protected(u, owed)
			if d.Count == 0 {
				break
			}
			if o.aged&bit != 0 {
				hold = max(hold, u+d.Head[l.Metric])
			} else if !o.own && lessRatio(u, p.share, reached, mine.share) {
				level := mulDiv(reached, p.share, mine.share)
				if d.Head[l.Metric] <= p.bounded {
					level = max(level, u+d.Head[l.Metric])
				}
				hold = max(hold, min(level, u+q))
			}
		}
		if hold > u {
			if free -= hold - u; free < 0 {
				return false
			}
		}
	}
	return true
}

// beyond estimates a wait of more than a window, from the rate at which class c
// is served while the others take what is theirs.
func (r *Rule) beyond(l *limit, c int, n, ahead int64, pace bool, forgiven int64) time.Duration {
	mine := &l.class[c]
	served := l.quota
	for e := range l.class {
		if e == c {
			continue
		}
		p, d := &l.class[e], &r.demand[e]
		u, q := l.used[e], d.Queued[l.Metric]
		takes := max(p.protected(u, q), u)
		if d.Count > 0 {
			takes = max(takes, min(u+q, mulDiv(l.used[c], p.share, mine.share)))
		}
		served -= takes
	}
	served = max(served, mine.share)
	t := l.window + l.ring.BucketWidth() + time.Duration(mulDiv(max(0, n-served), int64(l.window), served))
	if pace {
		over := max(0, l.line.Level()+ahead-forgiven)
		t = max(t, time.Duration(mulDiv(over, int64(l.window), served)))
	}
	return min(t, longest)
}

// longest is the longest wait that is told: beyond it nothing is known.
const longest = 366 * 24 * time.Hour

// waitForLease estimates when enough leases in flight will have ended.
func (r *Rule) waitForLease(l *limit, a *Ask, o *order) time.Duration {
	short := a.Ahead[Leases] + a.Cost[Leases] - (l.quota - l.inFlight)
	for e := range l.class {
		if e != a.Class {
			short += max(0, r.hold(l, a.Class, e, o)-l.used[e])
		}
	}
	each := mulDiv(int64(r.leaseTime), max(short, 1), max(l.inFlight, 1))
	return min(max(time.Duration(each), time.Millisecond), longest)
}
