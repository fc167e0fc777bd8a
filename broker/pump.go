package broker

import (
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// pump tries the first held ask of each class, the classes by rank, starting over
// after each grant, until none may go; then it notes when to try again. The rule
// itself refuses a head that another class precedes, so the order of trying
// decides nothing but who is asked first.
func (b *Broker) pump() {
	b.wake = never
	for again := true; again; {
		again = false
		for c := range b.queues {
			if b.pumpClass(int32(c)) {
				again = true
				break
			}
		}
	}
	if b.wake != never {
		b.wake = min(b.wake, b.nextAged())
	}
}

// nextAged returns when the next head will have waited so long that the order
// between the classes changes; never if none will.
func (b *Broker) nextAged() time.Duration {
	next := never
	for c := range b.queues {
		after := b.cfg.Classes[c].AgeAfter
		if after == 0 || b.queues[c].tickets == 0 {
			continue
		}
		if h := b.queues[c].head(&b.tickets); h != none {
			if t := b.tickets.at(h); t.tried && t.since+after > b.now {
				next = min(next, t.since+after)
			}
		}
	}
	return next
}

// pumpClass tries the first held ask of class c and reports whether something was
// granted, refused or parked, so that the next may be tried.
func (b *Broker) pumpClass(c int32) (moved bool) {
	q := &b.queues[c]
	if q.tickets == 0 {
		return false
	}
	i := q.firstHeld(&b.tickets)
	if i == none {
		return false
	}
	if wait, _ := b.provider.closed(b.now); wait > 0 {
		b.wake = min(b.wake, b.now+wait)
		return false
	}
	t := b.tickets.at(i)
	parked, before := b.tenants.at(t.tenant).ahead(&b.tickets, t.place())
	if wait := b.tenantWait(t.tenant, t.tier, &t.need, &parked, before); wait > 0 {
		b.park(i)
		b.ticketDue.set(i, min(t.holdUntil, b.now+wait))
		return true
	}
	ahead := q.ahead(&b.tickets, t.place())
	ask := classes.Ask{Class: int(c), Cost: t.need, Ahead: ahead.need, Due: t.booked && b.now >= t.due, Head: ahead.count == 0}
	check := b.rule.May(&ask)
	if check.Go {
		b.grantTicket(i)
		return true
	}
	if wait, ok := b.rule.PaceWait(&ask, &check); ok && wait > 0 {
		b.wake = min(b.wake, b.now+wait)
	}
	b.wake = min(b.wake, b.rule.NextChange())
	if t.booked && t.due > b.now {
		b.wake = min(b.wake, t.due)
	}
	if ahead.count == 0 {
		return b.tried(i)
	}
	return false
}

// tried notes that ticket i was tried with nothing ahead of it. A job whose wait
// has no bound may block its own class for so long only: then it moves to the back,
// which is reported.
func (b *Broker) tried(i int32) (moved bool) {
	t := b.tickets.at(i)
	q := &b.queues[t.class]
	if !t.tried {
		t.tried, t.since = true, b.now
		b.demand(t.class)
		return false
	}
	window, bounded := b.rule.Blocks(int(t.class), t.need)
	if bounded || q.waiting(&b.tickets).count < 2 {
		return false
	}
	if moves := t.since + 2*window; b.now < moves {
		b.wake = min(b.wake, moves)
		return false
	}
	tr := &q.tiers[t.tier]
	tr.remove(&b.tickets, i)
	b.seq++
	t.tag, t.seq, t.tried = max(tr.maxFin, t.tag), b.seq, false
	t.key = rankAt(b.now, tr.base)
	tr.maxFin = max(tr.maxFin, t.tag+t.weight)
	b.tenants.at(t.tenant).fin = max(b.tenants.at(t.tenant).fin, t.tag+t.weight)
	tr.insert(&b.tickets, i)
	b.demand(t.class)
	return true
}

// tryHead is tried for a ticket that asked: only a head is tried.
func (b *Broker) tryHead(i int32, o *outlook) {
	if o.verdict == wire.Defer && !o.parked && o.ahead.count == 0 && o.cause != wire.CauseProviderPause {
		b.tried(i)
	}
}

// grantTicket grants a ticket whose asker waits for the answer.
func (b *Broker) grantTicket(i int32) {
	t := b.tickets.at(i)
	g := grantee{
		to: t.holder, class: t.class, tier: t.tier, source: t.source, tenant: t.tenant, tag: t.tag, weight: t.weight,
		cost: t.cost, need: t.need, requestID: t.requestID, born: t.born, ttl: t.ttl, confirm: t.confirm,
	}
	b.dropTicket(i)
	b.grant(&g)
}

// ticketFell acts on a ticket whose time has come: the hold on its answer ends, or
// it did not come back when it was told to.
func (b *Broker) ticketFell(i int32) {
	t := b.tickets.at(i)
	switch {
	case t.hold:
		b.holdEnds(i)
	case !t.late:
		if t.parked { // it stops holding back the rest of its tenant
			b.unpark(i)
		}
		t.late = true
		b.queues[t.class].late++
		b.touch(i)
		b.ticketDue.set(i, t.due+b.cfg.Grace)
		b.release(t.tenant)
	default:
		b.stats[t.class].vanished++
		b.dropTicket(i)
	}
}

// holdEnds answers a held ask at the last moment: with the grant if it may just go,
// with the refusal whose bound is reached, else with a deferral. A parked one may
// only have been due to be tried: then its tenant's oldest return first, and the
// order of the class decides.
func (b *Broker) holdEnds(i int32) {
	t := b.tickets.at(i)
	if t.parked && b.now < t.holdUntil {
		b.release(t.tenant)
	}
	j := job{
		class: t.class, tier: t.tier, source: t.source, tenant: t.tenant, ticket: i, at: t.place(),
		cost: t.cost, need: t.need, weight: t.weight, born: t.born, deadline: t.deadline, due: t.booked && b.now >= t.due,
	}
	o := b.look(&j)
	switch {
	case o.verdict == wire.Refuse:
		b.refuseTicket(i, &o)
	case b.now < t.holdUntil:
		if t.parked && !o.parked {
			b.unpark(i)
		}
		b.ticketDue.set(i, t.holdUntil)
		if t.parked {
			b.ticketDue.set(i, min(t.holdUntil, b.now+o.wait))
		}
	case o.verdict == wire.Grant:
		if t.parked {
			b.unpark(i)
		}
		b.grantTicket(i)
	default:
		t.hold = false
		if t.parked != o.parked {
			if o.parked {
				b.park(i)
			} else {
				b.unpark(i)
			}
		}
		b.touch(i)
		b.emit(Effect{To: t.holder, Decision: b.deferral(i, &o)})
	}
}
