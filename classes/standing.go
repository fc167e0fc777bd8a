package classes

import "time"

// Standing is a class on one limit, in the limit's metric.
type Standing struct {
	Used, Share, Floor int64
	Reserve            int64 // M as learned
	Protected          int64 // P
	Borrowed           int64 // used above the share
	Lent               int64 // of the unused share, what others are using
	Waiting            int64
	Largest            int64 // X
}

// LimitState is one limit as it stands.
type LimitState struct {
	Limit
	Quota         int64         // the amount less the margin
	Used          int64         // charged within the window
	Window        time.Duration // 0 for the concurrency cap
	Level         int64         // of the pacing line
	LeakPerMinute int64         // what the line drains
}

// Limits returns the number of limits, the concurrency cap included, as the last.
func (r *Rule) Limits() int { return len(r.limits) }

// LimitAt returns the i-th limit as it stands.
func (r *Rule) LimitAt(i int) LimitState {
	l := &r.limits[i]
	s := LimitState{Limit: l.Limit, Quota: l.quota, Used: l.total(), Window: l.window, Level: l.line.Level()}
	if l.window > 0 {
		s.LeakPerMinute = mulDiv(l.quota-l.unmet, int64(time.Minute), int64(l.window))
	}
	return s
}

// StandingAt returns class c on the i-th limit.
func (r *Rule) StandingAt(i, c int) Standing {
	l := &r.limits[i]
	p, u := &l.class[c], l.used[c]
	q := r.demand[c].Queued[l.Metric]
	s := Standing{
		Used: u, Share: p.share, Floor: p.floor, Reserve: p.m(), Protected: p.protected(u, q),
		Borrowed: max(0, u-p.share), Waiting: q, Largest: p.largest,
	}
	var borrowed, unused int64
	for e := range l.class {
		borrowed += max(0, l.used[e]-l.class[e].share)
		unused += max(0, l.class[e].share-l.used[e])
	}
	if mine := max(0, p.share-u); mine > 0 {
		s.Lent = min(mine, mulDiv(mine, borrowed, unused))
	}
	return s
}

// Borrowing reports whether class c holds more than its share on some limit.
func (r *Rule) Borrowing(c int) bool {
	for i := range r.limits {
		if l := &r.limits[i]; l.used[c] > l.class[c].share {
			return true
		}
	}
	return false
}

// Weight returns a job's size in one number, for fairness between tenants: the
// largest part of any limit that it takes, in units of the first limit. With one
// limit it is the job's size.
func (r *Rule) Weight(cost *Vec) int64 {
	first := &r.limits[0]
	w := cost[first.Metric]
	for i := 1; i < len(r.limits); i++ {
		if l := &r.limits[i]; l.ring != nil && l.quota > 0 {
			w = max(w, mulDiv(cost[l.Metric], first.quota, l.quota))
		}
	}
	return max(w, 1)
}

// Adopt takes over what another rule metered, when the configuration changed.
// class[i] is the number in r of old's class i, or -1 where it is gone: what that
// class charged is then counted for the last class, so that the account's total
// stays what it is. A limit of the same metric and span is carried over; one that
// is new takes over the charges of the limit of its metric with the nearest longer
// span, else of the longest one.
//
// Charges are carried over at the end of the bucket they were made in, so they
// never leave earlier than they would have. Learned reserves are scaled with the
// quota. Leases in flight are for [Rule.CountLeases], and a limit of a metric that
// none was metered of before is for [Rule.Backfill].
func (r *Rule) Adopt(old *Rule, class []int) {
	r.now, r.leaseTime = old.now, old.leaseTime
	to := func(c int) int {
		if class[c] >= 0 {
			return class[c]
		}
		return len(r.classes) - 1
	}
	for i := range r.limits {
		l := &r.limits[i]
		from := old.source(l.Limit)
		if from == nil {
			l.seenFrom = never
			l.line.Drain(r.now, 0, l.window)
			l.start(r.now)
			continue
		}
		if from.window < l.window {
			l.seenFrom = from.ring.Since()
		}
		l.line = from.line
		l.line.Scale(l.quota, from.quota)
		l.start(r.now)
		if l.ring != nil {
			from.ring.Held(func(end time.Duration, amounts []int64) {
				for c, n := range amounts {
					l.ring.ChargeAt(to(c), min(end-1, r.now), n)
				}
			})
		}
		for c := range from.class {
			if class[c] >= 0 {
				l.class[class[c]].adopt(&from.class[c], l.quota, from.quota, l.age)
			}
		}
		l.setUnmet()
	}
}

// start begins the life of a limit at a later time than 0.
func (l *limit) start(now time.Duration) {
	l.move(now)
	for c := range l.class {
		p := &l.class[c]
		p.setReserve(p.reserve, l.age)
	}
}

func (p *standing) adopt(from *standing, quota, was, age int64) {
	p.rate, p.rateSet, p.rateSetAt = from.rate, from.rate, age
	if was > 0 {
		m := mulDiv(from.reserve, quota, was)
		p.setReserve(min(max(m, p.least<<reserveScale), p.most<<reserveScale), age)
	}
}

// source finds the limit of r whose charges tell most about limit l.
func (r *Rule) source(l Limit) *limit {
	var best *limit
	for i := range r.limits {
		s := &r.limits[i]
		switch {
		case s.Metric != l.Metric:
		case best == nil,
			s.Span >= l.Span && (best.Span < l.Span || s.Span < best.Span),
			best.Span < l.Span && s.Span > best.Span:
			best = s
		}
	}
	return best
}

// CountLeases sets the leases in flight by class, for a concurrency cap that did
// not see them granted.
func (r *Rule) CountLeases(inFlight []int64) {
	for i := range r.limits {
		if l := &r.limits[i]; l.ring == nil {
			l.inFlight = 0
			for c, n := range inFlight {
				l.used[c] = n
				l.inFlight += n
			}
			l.setUnmet()
		}
	}
}

// Backfill counts a job of class c that was charged at an earlier time on the limits
// that could not take it over in [Rule.Adopt]: nothing metered their metric, or
// only for a shorter span.
func (r *Rule) Backfill(c int, charged time.Duration, cost Vec) {
	for i := range r.limits {
		if l := &r.limits[i]; l.ring != nil && charged < l.seenFrom {
			l.ring.ChargeAt(c, charged, cost[l.Metric])
			l.setUnmet()
		}
	}
}
