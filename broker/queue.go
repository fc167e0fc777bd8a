package broker

import (
	"time"

	"quotabroker/classes"
)

// queue is the virtual queue of one class: a tree for each tier, and the tags of
// start-time fair queueing between the tenants of a tier (in tokens).
type queue struct {
	tiers   []tier
	tickets int   // all of them, late and parked included
	tokens  int64 // what they want
	late    int
	parked  int
	// bookedKey is the largest effective key of a booking, noKey for none: no
	// newcomer of any tier passes it. It acts only while the class has tickets.
	bookedKey int64
}

type tier struct {
	tree
	base   int64 // ageing × base points, ns
	v      int64 // start tag of the last grant
	maxFin int64 // largest finish tag given out
	booked int64 // largest tag of a booking
}

// place is a position in a class's order.
type place struct {
	tier     int32
	tag, seq int64
	key      rank
}

func newQueue(cfg *Config) queue {
	q := queue{bookedKey: noKey}
	for _, t := range cfg.tiers() {
		q.tiers = append(q.tiers, tier{tree: tree{root: none}, base: int64(cfg.Ageing) * t.Base})
	}
	return q
}

// tiers returns the tiers, one that asks for nothing where none is configured.
func (c *Config) tiers() []Tier {
	if len(c.Tiers) == 0 {
		return []Tier{{Name: "all"}}
	}
	return c.Tiers
}

// newcomer returns the place of a new ask: behind what its tenant has asked for,
// behind what was granted, and behind every booking.
func (q *queue) newcomer(now time.Duration, tier int32, fin, seq int64) place {
	t := &q.tiers[tier]
	p := place{tier: tier, tag: max(t.v, fin), seq: seq, key: rankAt(now, t.base)}
	if q.tickets > 0 {
		p.tag = max(p.tag, t.booked)
		if q.bookedKey != noKey {
			p.key.key = max(p.key.key, q.bookedKey+1)
		}
	}
	return p
}

// ahead adds up everything before a place, in its own tier and in the others:
// of another tier the longest run from its front whose keys are all smaller than
// the largest key up to the place. Written like this it is one total order.
func (q *queue) ahead(a *arena[ticket], p place) sums {
	if q.tickets == 0 {
		return sums{key: noRank}
	}
	own := &q.tiers[p.tier]
	out := own.beforePlace(a, p.tag, p.seq)
	key := maxRank(out.key, p.key)
	for i := range q.tiers {
		if t := &q.tiers[i]; int32(i) != p.tier {
			before := t.prefix(a, key, t.base < own.base || t.base == own.base && int32(i) < p.tier)
			out.add(&before)
		}
	}
	return out
}

// effective returns the largest key up to a place within its own tier.
func (q *queue) effective(a *arena[ticket], p place) rank {
	before := q.tiers[p.tier].beforePlace(a, p.tag, p.seq)
	return maxRank(before.key, p.key)
}

// rankAt is the rank of work that asked at the given time in a tier of this base.
func rankAt(asked time.Duration, base int64) rank {
	key := int64(asked) + base
	return rank{key, key}
}

// head returns the first ticket of the class that is not late.
func (q *queue) head(a *arena[ticket]) int32 {
	best := none
	for i := range q.tiers {
		if f := q.tiers[i].first(a); f != none && (best == none || q.precedes(a, f, best)) {
			best = f
		}
	}
	return best
}

// firstHeld returns the first ticket whose asker waits for the answer.
func (q *queue) firstHeld(a *arena[ticket]) int32 {
	if len(q.tiers) == 1 {
		return q.tiers[0].firstHeld(a)
	}
	best, bestKey := none, noRank
	for i := range q.tiers {
		f := q.tiers[i].firstHeld(a)
		if f == none {
			continue
		}
		key := q.effective(a, a.at(f).place())
		if best == none || key.less(bestKey) || key == bestKey && q.tiers[i].base < q.tiers[a.at(best).tier].base {
			best, bestKey = f, key
		}
	}
	return best
}

// precedes reports whether i, first of its tier, goes before j, first of another.
func (q *queue) precedes(a *arena[ticket], i, j int32) bool {
	t, o := a.at(i), a.at(j)
	if t.key != o.key {
		return t.key.less(o.key)
	}
	if b, ob := q.tiers[t.tier].base, q.tiers[o.tier].base; b != ob {
		return b < ob
	}
	return t.tier < o.tier
}

func (t *ticket) place() place { return place{t.tier, t.tag, t.seq, t.key} }

// waiting returns what waits in the class and counts.
func (q *queue) waiting(a *arena[ticket]) sums {
	out := sums{key: noRank}
	for i := range q.tiers {
		s := q.tiers[i].total(a)
		out.add(&s)
	}
	return out
}

// granted moves the fair order on after a grant at tag to a tenant whose finish
// tag is now fin.
func (q *queue) granted(tier int32, tag, fin int64) {
	t := &q.tiers[tier]
	t.v = max(t.v, tag)
	t.maxFin = max(t.maxFin, fin)
	q.settleIdle()
}

// settleIdle ends a busy period: with nobody waiting there is no unfairness to
// remember, so every tenant's finish tag is made past. It is what lets a million
// tenant names leave nothing behind.
func (q *queue) settleIdle() {
	if q.tickets > 0 {
		return
	}
	q.bookedKey = noKey
	for i := range q.tiers {
		t := &q.tiers[i]
		t.v, t.booked = max(t.v, t.maxFin), 0
	}
}

// demand tells the rule what waits in class c.
func (b *Broker) demand(c int32) {
	q := &b.queues[c]
	if q.tickets == 0 {
		b.rule.SetDemand(int(c), classes.Demand{})
		return
	}
	w := q.waiting(&b.tickets)
	d := classes.Demand{Count: int(w.count), Queued: w.need}
	if h := q.head(&b.tickets); h != none {
		t := b.tickets.at(h)
		d.Head, d.HeadSince, d.HeadTried = t.need, t.since, t.tried
	}
	b.rule.SetDemand(int(c), d)
}
