package broker

import (
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// job is an ask as it is judged: a new one, or one that holds a ticket.
type job struct {
	class  int32
	tier   int32
	source int32
	tenant int32 // none where it is not known yet and nothing may be changed
	ticket int32 // none for a new ask
	at     place
	cost   wire.Cost
	need   classes.Vec
	weight int64

	born     time.Duration
	deadline time.Duration
	due      bool // booked, and its time has come
}

// outlook is what can be said of a job now.
type outlook struct {
	verdict wire.Verdict
	cause   wire.Cause
	wait    time.Duration // how long it would be
	limit   int           // the limit that binds, noLimit for none
	own     bool          // limit is one of the tenant's own
	parked  bool          // its tenant's own caps keep it from being tried
	exact   bool          // the wait follows from the meters, not from a guess: it may be booked
	bound   time.Duration // the max_wait that it would pass
	ahead   sums
}

// Acquire decides an ask, or keeps it waiting: then the answer comes with the
// effects of a later call. The only error is a source that is not configured.
func (b *Broker) Acquire(now time.Time, a Ask) ([]Effect, *wire.Error) {
	b.start(now)
	src, ok := b.sources[a.Source]
	if !ok || src.class == none {
		return b.finish(), b.unknownSource(a.Source)
	}
	b.stats[src.class].asks++
	ticket := b.findTicket(src, a.Ticket)
	if a.RequestID != "" {
		if ref, ok := b.byRequest[requestKey{src.index, a.RequestID}]; ok {
			if ref.lease { // asked again before the answer arrived: the same lease, nothing is charged
				l := b.leases.at(ref.i)
				l.held = true
				b.emit(Effect{To: a.To, Confirm: a.Confirm, Decision: b.grantDecision(l)})
				return b.finish(), nil
			}
			ticket = ref.i
		}
	}
	b.ask(src, &a, ticket)
	return b.finish(), nil
}

// findTicket returns the ticket of this id if this source holds it. An unknown
// one is no error: it may be of an earlier broker, and the ask is then a new one.
func (b *Broker) findTicket(src source, id wire.TicketID) int32 {
	if i := slot(id.N); id.Epoch == b.epoch && i >= 0 && i < b.tickets.next {
		if t := b.tickets.at(i); t.n == id.N && t.source == src.index {
			return i
		}
	}
	return none
}

// ask judges one ask and acts on it.
func (b *Broker) ask(src source, a *Ask, ticket int32) {
	need := classes.VecOf(a.Cost)
	if ticket != none {
		ticket = b.resume(ticket, &need, a)
	}
	tenant := none
	if ticket == none {
		tenant = b.tenantOf(src.index, src.class, a.Tenant)
	}
	j := b.job(src, a, ticket, tenant, &need)
	o := b.look(&j)
	if j.ticket != none {
		b.tryHead(j.ticket, &o)
	}
	switch o.verdict {
	case wire.Grant:
		b.take(&j, a)
		return
	case wire.Defer:
		if j.ticket == none && !o.parked {
			b.rule.Learn(int(j.class), o.ahead.need, j.need)
		}
		b.wait(&j, a, &o)
	case wire.Refuse:
		if j.ticket == none && o.cause == wire.CauseClassSaturated {
			b.rule.Learn(int(j.class), o.ahead.need, j.need) // a shortage teaches, whoever gives up
		}
		if j.ticket != none {
			b.refuseTicket(j.ticket, &o)
		}
		b.refuse(a.To, &j, &o)
	}
}

// resume takes up a ticket whose holder asks again: it counts again, and whoever
// waited for its answer before gets a plain deferral. Work that has grown is new
// work: it gives up its place.
func (b *Broker) resume(i int32, need *classes.Vec, a *Ask) int32 {
	t := b.tickets.at(i)
	t.asks++
	if t.hold {
		b.emit(Effect{To: t.holder, Decision: b.deferTicket(i)})
		t.hold = false
		b.touch(i)
	}
	for m := range need {
		if need[m] > t.need[m] {
			b.dropTicket(i)
			return none
		}
	}
	if t.late || *need != t.need {
		q := &b.queues[t.class]
		q.tokens += need[classes.Tokens] - t.need[classes.Tokens]
		if t.parked {
			tn := b.tenants.at(t.tenant)
			tn.parkedNeed = tn.parkedNeed.Sub(t.need).Add(*need)
		}
		if t.late {
			q.late--
		}
		t.cost, t.need, t.late = a.Cost, *need, false
		b.touch(i)
	}
	return i
}

// touch tells the order and the rule that ticket i changed.
func (b *Broker) touch(i int32) {
	t := b.tickets.at(i)
	if !t.parked {
		b.queues[t.class].tiers[t.tier].refresh(&b.tickets, i)
	}
	b.demand(t.class)
}

// job puts an ask into the form in which it is judged: of a ticket, or of a tenant,
// none for one that is not known here. It changes nothing.
func (b *Broker) job(src source, a *Ask, ticket, tenant int32, need *classes.Vec) job {
	j := job{
		class: src.class, source: src.index, tenant: tenant, ticket: ticket, cost: a.Cost, need: *need,
		weight: b.rule.Weight(need), born: b.now, deadline: never,
	}
	if a.Deadline >= 0 {
		j.deadline = b.now + a.Deadline
	}
	if ticket != none {
		t := b.tickets.at(ticket)
		j.tenant, j.tier, j.at, j.born = t.tenant, t.tier, t.place(), t.born
		j.due = t.booked && b.now >= t.due
		return j
	}
	fin := int64(0)
	if tenant != none {
		t := b.tenants.at(tenant)
		j.tier, fin = t.tier, t.fin
	} else {
		j.tier = b.tierOf(a.Tenant)
	}
	j.at = b.queues[j.class].newcomer(b.now, j.tier, fin, b.seq+1)
	return j
}

// look judges a job. It changes nothing.
func (b *Broker) look(j *job) outlook {
	if o, refused := b.gate(j); refused {
		return o
	}
	o := outlook{verdict: wire.Grant, limit: noLimit}
	b.lookAtTenant(j, &o)
	if !o.parked {
		o.ahead = b.queues[j.class].ahead(&b.tickets, j.at)
		b.lookAtRule(j, &o)
	}
	if wait, _ := b.provider.closed(b.now); wait > 0 {
		o.verdict, o.cause, o.exact = wire.Defer, wire.CauseProviderPause, false
		o.wait = max(o.wait, wait)
	}
	if o.verdict == wire.Defer {
		b.bound(j, &o)
	} else if b.now > j.deadline {
		o.verdict, o.cause = wire.Refuse, wire.CauseDeadline
	}
	return o
}

// gate refuses what no waiting helps.
func (b *Broker) gate(j *job) (o outlook, refused bool) {
	o = outlook{verdict: wire.Refuse, limit: noLimit}
	if b.draining {
		o.cause, o.wait = wire.CauseDraining, time.Second
		return o, true
	}
	if limit, empty := b.rule.Empty(j.need); empty {
		o.cause, o.limit = wire.CauseNoQuota, limit
		return o, true
	}
	if limit, tooLarge := b.rule.TooLarge(int(j.class), j.need); tooLarge {
		o.cause, o.limit = wire.CauseTooLarge, limit
		return o, true
	}
	if cause, limit := b.tenantNever(j.tier, &j.need); cause != wire.CauseNone {
		o.cause, o.limit, o.own = cause, limit, true
		return o, true
	}
	if wait, exhausted := b.provider.closed(b.now); exhausted {
		o.cause, o.wait = wire.CauseAccountExhausted, wait
		return o, true
	}
	return o, false
}

// lookAtTenant judges the job against its tenant's own caps. Behind others of its
// tenant that are parked it is parked too.
func (b *Broker) lookAtTenant(j *job, o *outlook) {
	var ahead classes.Vec
	var before int32
	if j.tenant != none {
		if t := b.tenants.at(j.tenant); j.ticket != none && b.tickets.at(j.ticket).parked {
			ahead, before = b.chained(t, j.ticket)
		} else {
			ahead, before = t.ahead(&b.tickets, j.at)
		}
	}
	if wait := b.tenantWait(j.tenant, j.tier, &j.need, &ahead, before); wait > 0 {
		o.verdict, o.cause, o.wait, o.parked = wire.Defer, wire.CauseTenantLimit, wait, true
		o.ahead.need, o.ahead.count = ahead, before
	}
}

func (p place) before(t *ticket) bool { return p.tag < t.tag || p.tag == t.tag && p.seq < t.seq }

// lookAtRule judges the job by the rule of the classes.
func (b *Broker) lookAtRule(j *job, o *outlook) {
	if b.leases.live() >= maxLeases {
		o.verdict, o.cause, o.wait = wire.Defer, wire.CauseConcurrency, b.leaseTime
		return
	}
	head := j.ticket != none && o.ahead.count == 0
	ask := classes.Ask{Class: int(j.class), Cost: j.need, Ahead: o.ahead.need, Due: j.due, Head: head}
	check := b.rule.May(&ask)
	if check.Go {
		return
	}
	w := b.rule.When(&ask, &check)
	o.verdict, o.cause, o.wait, o.limit = wire.Defer, w.Cause, w.Wait, w.Limit
	o.exact = w.Cause != wire.CauseConcurrency
}

// bound refuses a job that would wait for too long, or that finds the queue full.
func (b *Broker) bound(j *job, o *outlook) {
	until := b.now + o.wait
	maxWait := b.maxWait(j.class, j.tier)
	switch {
	case until > j.deadline && (maxWait == 0 || j.deadline <= j.born+maxWait):
		o.verdict, o.cause = wire.Refuse, wire.CauseDeadline
	case maxWait > 0 && until > j.born+maxWait:
		o.verdict, o.bound = wire.Refuse, maxWait
		if o.cause != wire.CauseTenantLimit {
			o.cause = wire.CauseClassSaturated
		}
	case j.ticket == none && b.full(j):
		o.verdict, o.cause = wire.Refuse, wire.CauseQueueFull
	}
}

// maxWait returns how long a job of the class and tier may wait; 0 for ever.
func (b *Broker) maxWait(class, tier int32) time.Duration {
	w, t := b.cfg.Classes[class].MaxWait, b.cfg.tiers()[tier].MaxWait
	if w == 0 || t > 0 && t < w {
		return t
	}
	return w
}

// full reports whether the class may hold no further ticket.
func (b *Broker) full(j *job) bool {
	c, q := &b.cfg.Classes[j.class], &b.queues[j.class]
	most := c.MaxWaiting
	if most == 0 {
		most = classes.DefaultMaxWaiting
	}
	return q.tickets >= most || c.MaxWaitingTokens > 0 && q.tokens+j.need[classes.Tokens] > c.MaxWaitingTokens
}

// take grants a job that may go now.
func (b *Broker) take(j *job, a *Ask) {
	g := grantee{
		to: a.To, class: j.class, tier: j.tier, source: j.source, tenant: j.tenant, tag: j.at.tag, weight: j.weight,
		cost: j.cost, need: j.need, requestID: a.RequestID, born: j.born, ttl: a.TTL, confirm: a.Confirm,
	}
	if j.ticket != none {
		b.dropTicket(j.ticket)
	}
	b.grant(&g)
}

// wait gives a job that may not go now a ticket, and holds the answer back or
// defers.
func (b *Broker) wait(j *job, a *Ask, o *outlook) {
	if j.ticket == none {
		b.addTicket(j, a)
	}
	t := b.tickets.at(j.ticket)
	t.deadline, t.ttl, t.confirm = j.deadline, a.TTL, a.Confirm
	if o.parked != t.parked {
		if o.parked {
			b.park(j.ticket)
		} else {
			b.unpark(j.ticket)
		}
	}
	if a.Wait <= 0 {
		b.emit(Effect{To: a.To, Decision: b.deferral(j.ticket, o)})
		return
	}
	t.hold, t.holder = true, a.To
	t.holdUntil = min(b.now+a.Wait, t.deadline)
	if w := b.maxWait(t.class, t.tier); w > 0 {
		t.holdUntil = min(t.holdUntil, t.born+w)
	}
	b.ticketDue.set(j.ticket, t.holdUntil)
	if o.parked {
		b.ticketDue.set(j.ticket, min(t.holdUntil, b.now+o.wait))
	}
	b.touch(j.ticket)
}

func (b *Broker) addTicket(j *job, a *Ask) {
	i, gen, t := b.tickets.add()
	b.seq++
	*t = ticket{
		n: number(i, gen), class: j.class, tier: j.tier, source: j.source, tenant: j.tenant, requestID: a.RequestID,
		cost: j.cost, need: j.need, weight: j.weight, born: j.born, asks: 1, chain: none,
		tag: j.at.tag, seq: j.at.seq, key: j.at.key,
	}
	j.ticket = i
	q := &b.queues[j.class]
	q.tickets++
	q.tokens += j.need[classes.Tokens]
	q.tiers[j.tier].insert(&b.tickets, i)
	tn := b.tenants.at(j.tenant)
	tn.tickets++
	tn.fin = t.tag + t.weight
	q.tiers[j.tier].maxFin = max(q.tiers[j.tier].maxFin, tn.fin)
	if a.RequestID != "" {
		b.byRequest[requestKey{j.source, a.RequestID}] = requestRef{i: i}
	}
	b.demand(j.class)
}

// dropTicket takes a ticket out of the queue for good.
func (b *Broker) dropTicket(i int32) {
	t := b.tickets.at(i)
	q := &b.queues[t.class]
	tn := b.tenants.at(t.tenant)
	if t.parked {
		b.unchain(tn, i)
		q.parked--
		tn.parked--
		tn.parkedNeed = tn.parkedNeed.Sub(t.need)
	} else {
		q.tiers[t.tier].remove(&b.tickets, i)
	}
	if t.late {
		q.late--
	}
	if t.requestID != "" {
		delete(b.byRequest, requestKey{t.source, t.requestID})
	}
	q.tickets--
	q.tokens -= t.need[classes.Tokens]
	tn.tickets--
	class := t.class
	b.ticketDue.drop(i)
	b.tickets.drop(i)
	q.settleIdle()
	b.demand(class)
}
