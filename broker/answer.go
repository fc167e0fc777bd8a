package broker

import (
	"fmt"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// deferral tells the holder of ticket i when to come back, and remembers what was
// told. A near wait is told as it is; of a far one, which is only an estimate,
// a third, so that the ticket is there when room comes earlier, and spread, so
// that tickets do not come back together.
func (b *Broker) deferral(i int32, o *outlook) wire.Decision {
	t := b.tickets.at(i)
	q := &b.queues[t.class]
	told, eta := b.tellWait(t, o)
	t.due = b.now + told
	b.ticketDue.set(i, t.due+b.cfg.Claim)
	booked := o.exact && o.wait <= b.cfg.Classes[t.class].Book && told >= o.wait
	if booked {
		t.booked = true
		tr := &q.tiers[t.tier]
		tr.booked = max(tr.booked, t.tag)
		q.bookedKey = max(q.bookedKey, q.effective(&b.tickets, t.place()).key)
	}
	b.stats[t.class].defers[o.cause]++
	return wire.Decision{
		Verdict: wire.Defer, Class: b.cfg.Classes[t.class].Name, Pool: b.cfg.Pool, Cost: t.cost, Cause: o.cause,
		Ticket: wire.TicketID{Epoch: b.epoch, N: t.n}, RetryAfterMS: told.Milliseconds(), EtaMS: eta.Milliseconds(),
		Booked: booked, Position: int64(o.ahead.count) + 1, TokensAhead: o.ahead.need[classes.Tokens],
		Limit: b.limitName(o), WaitedMS: (b.now - t.born).Milliseconds(),
	}
}

// deferTicket defers a ticket as it stands now, whatever could be done with it.
func (b *Broker) deferTicket(i int32) wire.Decision {
	t := b.tickets.at(i)
	j := job{
		class: t.class, tier: t.tier, source: t.source, tenant: t.tenant, ticket: i, at: t.place(),
		cost: t.cost, need: t.need, weight: t.weight, born: t.born, deadline: never, due: t.booked && b.now >= t.due,
	}
	o := b.look(&j)
	if o.verdict != wire.Defer {
		o.cause, o.wait, o.exact = wire.CauseOrder, time.Millisecond, false
	}
	return b.deferral(i, &o)
}

// tellWait returns how long a ticket is told to stay away, and how long it is
// expected to wait, both in whole milliseconds. A pause is known, not estimated: it
// is told in full, and a moment more, so that tickets do not come back together.
func (b *Broker) tellWait(t *ticket, o *outlook) (told, eta time.Duration) {
	h := hash32(t.n ^ uint64(t.asks)<<40)
	told, eta = o.wait, o.wait
	switch {
	case o.cause == wire.CauseProviderPause:
		eta += time.Second * time.Duration(h&0xffff) / 0xffff
		told = eta
	case told > b.cfg.Near:
		low := b.cfg.Near/2 + b.cfg.Near/2*time.Duration(h&0xffff)/0xffff
		far := min(b.cfg.MaxDefer, told/3)
		far -= far / 4 * time.Duration(h>>16) / 0xffff
		told = max(low, far)
	}
	return ceilMS(min(told, b.cfg.MaxDefer)), ceilMS(eta)
}

// refuse answers an ask that has no ticket.
func (b *Broker) refuse(to uint64, j *job, o *outlook) {
	b.stats[j.class].refusals[o.cause]++
	b.emit(Effect{To: to, Decision: b.refusal(j, o)})
}

// refuseTicket ends a ticket, and answers its holder if one waits for the answer.
func (b *Broker) refuseTicket(i int32, o *outlook) {
	t := b.tickets.at(i)
	if t.hold {
		j := job{class: t.class, tier: t.tier, cost: t.cost, need: t.need, born: t.born, deadline: t.deadline, tenant: t.tenant}
		b.refuse(t.holder, &j, o)
	}
	b.dropTicket(i)
}

func (b *Broker) refusal(j *job, o *outlook) wire.Decision {
	d := wire.Decision{
		Verdict: wire.Refuse, Class: b.cfg.Classes[j.class].Name, Pool: b.cfg.Pool, Cost: j.cost, Cause: o.cause,
		Limit: b.limitName(o), Message: b.sentence(j, o),
	}
	if !o.cause.Permanent() {
		d.RetryAfterMS = ceilMS(o.wait).Milliseconds()
	}
	if o.cause == wire.CauseTooLarge {
		d.LimitTokens = b.largest(j, o)
	}
	return d
}

func (b *Broker) largest(j *job, o *outlook) int64 {
	if o.own {
		return b.cfg.TenantLimits[o.limit].Amount
	}
	return b.rule.StandingAt(o.limit, int(j.class)).Largest
}

// limitOf returns the limit that binds, if one does.
func (b *Broker) limitOf(o *outlook) (classes.Limit, bool) {
	switch {
	case o.limit == noLimit:
		return classes.Limit{}, false
	case o.own:
		return b.cfg.TenantLimits[o.limit], true
	}
	return b.rule.LimitAt(o.limit).Limit, true
}

func (b *Broker) limitName(o *outlook) string {
	if o.limit == noLimit {
		return ""
	}
	if !o.own {
		return b.limitNames[o.limit]
	}
	return b.cfg.TenantLimits[o.limit].String()
}

// sentence says why a job is refused, and what would help.
func (b *Broker) sentence(j *job, o *outlook) string {
	class := b.cfg.Classes[j.class].Name
	wait := ceilMS(o.wait)
	switch o.cause {
	case wire.CauseClassSaturated:
		if paused, _ := b.provider.closed(b.now); paused > 0 {
			return fmt.Sprintf("the provider told the account to wait: it would be %s, and the max_wait of %s is %s", wait, class, o.bound)
		}
		return fmt.Sprintf("%s is full: the wait would be %s, its max_wait is %s", class, wait, o.bound)
	case wire.CauseDeadline:
		return fmt.Sprintf("the wait would be %s, and the work's own deadline is in %s", wait, max(0, ceilMS(j.deadline-b.now)))
	case wire.CauseQueueFull:
		return fmt.Sprintf("%s holds its maximum of waiting requests; a place should be free in about %s", class, wait)
	case wire.CauseTenantLimit:
		return fmt.Sprintf("this tenant is at its cap: the wait would be %s, and the max_wait of %s is %s", wait, class, o.bound)
	case wire.CauseTooLarge:
		l, _ := b.limitOf(o)
		whose := "a job of " + class
		if o.own {
			whose = "a job of one tenant"
		}
		return fmt.Sprintf("it needs %d of %s and %s can be given %d at most; split it", j.need[l.Metric], l, whose, b.largest(j, o))
	case wire.CauseNoQuota:
		if l, ok := b.limitOf(o); ok {
			return fmt.Sprintf("%s is limited to 0", l)
		}
		return "this tenant's share of the leases is 0%"
	case wire.CauseAccountExhausted:
		return "the provider says that the account is out of money; it is tried again once a minute"
	case wire.CauseDraining:
		return "this broker is going away; ask again"
	default: // no refusal has another cause
		return ""
	}
}

// ceilMS rounds up to whole milliseconds, and nothing to 1.
func ceilMS(d time.Duration) time.Duration {
	if d <= time.Millisecond {
		return time.Millisecond
	}
	return (d + time.Millisecond - 1) / time.Millisecond * time.Millisecond
}

func (b *Broker) unknownSource(name string) *wire.Error {
	return &wire.Error{Code: wire.CodeUnknownSource, Field: "source", Message: fmt.Sprintf(
		"source %q is not configured for pool %s; it has %s", name, b.cfg.Pool, b.sourceNames)}
}
