package broker

import (
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// lease is a grant: in flight until it is settled, cancelled, taken back or
// expired, then remembered for late settlements.
type lease struct {
	n         uint64 // the number in its id
	class     int32
	source    int32
	tenant    int32 // none once it has ended
	state     leaseState
	requestID string // "" once it has ended for good
	reserved  wire.Cost
	charged   wire.Cost // what stays charged; reserved until it has ended
	waited    time.Duration
	granted   time.Duration
	expires   time.Duration
	ttl       time.Duration
	confirmBy time.Duration // never once confirmed
	held      bool          // its producer has it: it confirmed, or was answered more than once
	forgetAt  time.Duration // once it has ended
	borrowed  bool

	// What it was settled with, to tell a repetition from a contradiction.
	outcome  wire.Outcome
	usage    wire.Usage
	hasUsage bool
	late     bool
}

type leaseState uint8

const (
	inFlight  leaseState = iota
	settled              // the producer said how it ended
	expired              // nobody renewed it: its tokens stay charged
	takenBack            // the grant reached nobody, or was not confirmed: nothing is charged
)

const (
	minTTL      = 100 * time.Millisecond
	minRemember = time.Minute
	maxRemember = 10 * time.Minute
)

// grantee is what a grant is made of.
type grantee struct {
	to        uint64
	class     int32
	tier      int32
	source    int32
	tenant    int32
	tag       int64
	weight    int64
	cost      wire.Cost
	need      classes.Vec
	requestID string
	born      time.Duration
	ttl       time.Duration
	confirm   bool
}

// grant charges the job, makes its lease and says so.
func (b *Broker) grant(g *grantee) {
	i, gen, l := b.leases.add()
	ttl := g.ttl
	if ttl == 0 {
		ttl = b.cfg.LeaseTTL
	}
	ttl = min(max(ttl, minTTL), b.cfg.MaxTTL)
	*l = lease{
		n: number(i, gen), class: g.class, source: g.source, tenant: g.tenant, requestID: g.requestID,
		reserved: g.cost, charged: g.cost, waited: b.now - g.born,
		granted: b.now, expires: b.now + ttl, ttl: ttl, confirmBy: never,
	}
	if g.confirm {
		l.confirmBy = b.now + b.cfg.Confirm
		b.unconfirmed++
	}
	b.inFlight++
	b.stats[g.class].inFlight++
	b.leaseDue.set(i, min(l.expires, l.confirmBy))
	if g.requestID != "" {
		b.byRequest[requestKey{g.source, g.requestID}] = requestRef{lease: true, i: i}
	}
	b.rule.Charge(int(g.class), g.need)
	l.borrowed = b.rule.Borrowing(int(g.class))
	t := b.tenants.at(g.tenant)
	t.inFlight++
	t.fin = max(t.fin, g.tag+g.weight)
	b.queues[g.class].granted(g.tier, g.tag, t.fin)
	b.spend(t, &g.need)
	b.provider.granted(b.now, l)
	b.stats[g.class].granted(l.waited, &g.cost)
	b.top.add(t.key, t.hash, g.cost.Tokens)
	b.emit(Effect{To: g.to, Confirm: g.confirm, Decision: b.grantDecision(l)})
}

func (b *Broker) grantDecision(l *lease) wire.Decision {
	return wire.Decision{
		Verdict: wire.Grant, Class: b.cfg.Classes[l.class].Name, Pool: b.cfg.Pool, Cost: l.reserved,
		Lease: wire.LeaseID{Epoch: b.epoch, N: l.n}, TTLMS: (l.expires - b.now).Milliseconds(),
		Borrowed: l.borrowed, WaitedMS: l.waited.Milliseconds(), Epoch: b.epoch,
	}
}

// findLease returns the lease of this id if this source owns it. To another
// source it does not exist.
func (b *Broker) findLease(source string, id wire.LeaseID) (int32, *wire.Error) {
	i := slot(id.N)
	s, known := b.sources[source]
	if known && id.Epoch == b.epoch && i >= 0 && i < b.leases.next {
		if l := b.leases.at(i); l.n == id.N && l.source == s.index {
			return i, nil
		}
	}
	return none, &wire.Error{Code: wire.CodeUnknownLease, Field: "lease", Message: "lease " + id.String() +
		" is not known here: it was granted to another source, by another broker, or it ended too long ago to be corrected"}
}

// Settle takes the producer's word on what a granted call took. What was not used
// goes back to where it was charged; what was used above the estimate is charged
// now. The same settlement again has the same answer; another one for the same
// lease is already_settled. One for an expired lease, or for one that was taken
// back unconfirmed, is taken as a correction (Late).
func (b *Broker) Settle(now time.Time, source string, s wire.SettleRequest) (wire.SettleReply, []Effect, *wire.Error) {
	b.start(now)
	i, err := b.findLease(source, s.Lease)
	if err != nil {
		return wire.SettleReply{}, b.finish(), err
	}
	l := b.leases.at(i)
	usage, has := wire.Usage{}, s.Usage != nil
	if has {
		usage = *s.Usage
	}
	if l.state == settled {
		if l.outcome != s.Outcome || l.hasUsage != has || l.usage != usage {
			return wire.SettleReply{}, b.finish(), wire.Errorf(wire.CodeAlreadySettled,
				"lease %s was settled before as %s with other figures; the first settlement stands", s.Lease, l.outcome)
		}
		return b.settleReply(l), b.finish(), nil
	}
	l.late = l.state != inFlight
	b.correct(l, actual(l, s.Outcome, s.Usage))
	l.outcome, l.usage, l.hasUsage = s.Outcome, usage, has
	b.end(i, settled)
	b.hear(l, s.Outcome, s.Provider)
	reply := b.settleReply(l)
	return reply, b.finish(), nil
}

func (b *Broker) settleReply(l *lease) wire.SettleReply {
	return wire.SettleReply{
		Settled: true, Late: l.late, Lease: wire.LeaseID{Epoch: b.epoch, N: l.n},
		Charged: l.charged, DeltaTokens: l.charged.Tokens - l.reserved.Tokens,
	}
}

// actual returns what a lease took in the end. Without figures the reservation
// stands: a call whose usage nobody saw is never free.
func actual(l *lease, outcome wire.Outcome, u *wire.Usage) wire.Cost {
	switch {
	case outcome == wire.OutcomeUnsent:
		return wire.Cost{Method: l.reserved.Method}
	case u == nil:
		return l.reserved
	}
	return wire.Cost{
		Requests: l.reserved.Requests, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		Tokens: u.InputTokens + u.OutputTokens, Method: l.reserved.Method,
	}
}

// correct brings what is charged for a lease to what it took.
func (b *Broker) correct(l *lease, took wire.Cost) {
	was, is := classes.VecOf(l.charged), classes.VecOf(took)
	more, less := is.Sub(was), was.Sub(is)
	for m := range more {
		more[m], less[m] = max(0, more[m]), max(0, less[m])
	}
	b.rule.Refund(int(l.class), l.granted, less)
	b.rule.Overrun(int(l.class), more)
	if t := l.tenant; t != none && b.tenants.at(t).spent != nil {
		spent := b.tenants.at(t).spent
		for i := range spent {
			m := b.cfg.TenantLimits[i].Metric
			spent[i].Refund(b.spans[i], l.granted, less[m])
			spent[i].Charge(b.spans[i], b.now, more[m])
		}
	}
	b.stats[l.class].corrected(less[classes.Tokens], more[classes.Tokens])
	l.charged = took
}

// end takes a lease out of flight, if it still is, and keeps it for late words.
func (b *Broker) end(i int32, state leaseState) {
	l := b.leases.at(i)
	was := l.state
	l.state = state
	if was != inFlight {
		return
	}
	l.forgetAt = b.now + b.remember
	b.leaseDue.drop(i)
	b.ended.push(dueAt{l.forgetAt, i})
	if l.confirmBy != never {
		b.unconfirmed--
		l.confirmBy = never
	}
	b.inFlight--
	b.stats[l.class].inFlight--
	b.rule.Release(int(l.class))
	key := requestKey{l.source, l.requestID}
	if ref, ok := b.byRequest[key]; ok && ref.lease && ref.i == i {
		delete(b.byRequest, key)
	}
	if state != takenBack {
		l.requestID = ""
	}
	if state == settled {
		b.leaseTime += (b.now - l.granted - b.leaseTime) / 16
		b.rule.SetLeaseTime(b.leaseTime)
	}
	if state != settled {
		b.provider.ended(l)
	}
	if t := l.tenant; t != none {
		l.tenant = none
		b.tenants.at(t).inFlight--
		b.release(t)
	}
}

// Renew prolongs a lease in flight; it also counts as a confirmation.
func (b *Broker) Renew(now time.Time, source string, r wire.RenewRequest) (wire.RenewReply, []Effect, *wire.Error) {
	b.start(now)
	i, err := b.findLease(source, r.Lease)
	if err == nil && b.leases.at(i).state != inFlight {
		err = &wire.Error{Code: wire.CodeUnknownLease, Field: "lease", Message: "lease " + r.Lease.String() + " has ended; ask for a new grant"}
	}
	if err != nil {
		return wire.RenewReply{}, b.finish(), err
	}
	l := b.leases.at(i)
	b.confirm(l)
	if ttl := time.Duration(r.TTLMS) * time.Millisecond; ttl > 0 {
		l.ttl = min(max(ttl, minTTL), b.cfg.MaxTTL)
	}
	l.expires = b.now + l.ttl
	b.leaseDue.set(i, l.expires)
	return wire.RenewReply{Lease: r.Lease, TTLMS: l.ttl.Milliseconds()}, b.finish(), nil
}

// Confirm says that the producer has the grant. One that was taken back meanwhile,
// because the word took too long, is given again: the producer will spend it.
func (b *Broker) Confirm(now time.Time, id wire.LeaseID) []Effect {
	b.start(now)
	switch l := b.own(id); {
	case l == nil:
	case l.state == inFlight:
		b.confirm(l)
		b.leaseDue.set(slot(id.N), l.expires)
	case l.state == takenBack:
		b.reinstate(slot(id.N))
	}
	return b.finish()
}

func (b *Broker) confirm(l *lease) {
	l.held = true
	if l.confirmBy != never {
		l.confirmBy = never
		b.unconfirmed--
	}
}

// reinstate puts a lease that was taken back in flight again and charges it now, like
// an overrun: there may be no room for it. Its tenant's cap no longer counts it.
func (b *Broker) reinstate(i int32) {
	l := b.leases.at(i)
	l.state, l.held, l.charged, l.granted = inFlight, true, l.reserved, b.now
	l.expires = b.now + l.ttl
	if key := (requestKey{l.source, l.requestID}); l.requestID != "" {
		if _, taken := b.byRequest[key]; !taken {
			b.byRequest[key] = requestRef{lease: true, i: i}
		}
	}
	b.rule.Charge(int(l.class), classes.VecOf(l.reserved))
	b.inFlight++
	b.stats[l.class].inFlight++
	b.leaseDue.set(i, l.expires)
}

// Abandon says that a reply with the grant reached nobody: it is taken back as if it
// had never been, and counted. Once its producer is known to have it, from a
// confirmation or because it was answered more than once, it stays.
func (b *Broker) Abandon(now time.Time, id wire.LeaseID) []Effect {
	b.start(now)
	if l := b.own(id); l != nil && l.state == inFlight && !l.held {
		b.abandon(slot(id.N))
	}
	return b.finish()
}

func (b *Broker) abandon(i int32) {
	l := b.leases.at(i)
	b.correct(l, wire.Cost{Method: l.reserved.Method})
	b.stats[l.class].abandoned++
	b.end(i, takenBack)
}

// own returns the lease of this id, whoever asked for it.
func (b *Broker) own(id wire.LeaseID) *lease {
	if i := slot(id.N); id.Epoch == b.epoch && i >= 0 && i < b.leases.next {
		if l := b.leases.at(i); l.n == id.N {
			return l
		}
	}
	return nil
}

// leaseFell acts on a lease in flight whose time has come: it was not confirmed, or
// it expires.
func (b *Broker) leaseFell(i int32) {
	if l := b.leases.at(i); l.confirmBy <= b.now {
		b.abandon(i)
	} else {
		b.stats[l.class].expired++
		b.end(i, expired)
	}
}

// forget drops the leases that have been remembered long enough.
func (b *Broker) forget() {
	for {
		d, ok := b.ended.first()
		if !ok || d.at > b.now {
			return
		}
		b.ended.pop()
		if l := b.leases.at(d.ref); l.state != inFlight && l.forgetAt == d.at { // else it was given again
			b.leases.drop(d.ref)
		}
	}
}
