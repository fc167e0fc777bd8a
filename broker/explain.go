package broker

import (
	"fmt"
	"strings"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// Explain says what Acquire would answer now, with the sums behind it. It charges
// nothing, queues nothing and teaches nothing.
func (b *Broker) Explain(now time.Time, a Ask) (wire.Explanation, *wire.Error) {
	b.advance(now)
	src, ok := b.sources[a.Source]
	if !ok || src.class == none {
		return wire.Explanation{}, b.unknownSource(a.Source)
	}
	need := classes.VecOf(a.Cost)
	j := b.job(src, &a, b.findTicket(src, a.Ticket), b.findTenant(src.index, a.Tenant), &need)
	o := b.look(&j)
	e := wire.Explanation{Decision: b.wouldBe(&j, &o), Why: b.why(&j, &o)}
	for i := range b.rule.Limits() {
		e.Limits = append(e.Limits, b.limitStatus(i))
	}
	for c := range b.queues {
		w := b.queues[c].waiting(&b.tickets)
		e.Classes = append(e.Classes, wire.ClassExplain{
			Class: b.cfg.Classes[c].Name, Amounts: b.amounts(int32(c)), WaitingRequests: int64(w.count),
		})
	}
	return e, nil
}

// wouldBe is the decision without anything that a decision makes: no lease, no
// ticket.
func (b *Broker) wouldBe(j *job, o *outlook) wire.Decision {
	d := wire.Decision{Verdict: o.verdict, Class: b.cfg.Classes[j.class].Name, Pool: b.cfg.Pool, Cost: j.cost, WaitedMS: (b.now - j.born).Milliseconds()}
	switch o.verdict {
	case wire.Grant:
		d.TTLMS, d.Epoch = b.cfg.LeaseTTL.Milliseconds(), b.epoch
		d.Borrowed = b.wouldBorrow(j)
	case wire.Defer:
		t := ticket{n: uint64(j.at.seq), booked: true}
		told, eta := b.tellWait(&t, o)
		d.Cause, d.Limit = o.cause, b.limitName(o)
		d.RetryAfterMS, d.EtaMS = told.Milliseconds(), eta.Milliseconds()
		d.Booked = o.exact && o.wait <= b.cfg.Classes[j.class].Book && told >= o.wait
		d.Position, d.TokensAhead = int64(o.ahead.count)+1, o.ahead.need[classes.Tokens]
	case wire.Refuse:
		d = b.refusal(j, o)
	}
	return d
}

func (b *Broker) wouldBorrow(j *job) bool {
	for i := range b.rule.Limits() {
		l, s := b.rule.LimitAt(i), b.rule.StandingAt(i, int(j.class))
		if s.Used+j.need[l.Metric] > s.Share {
			return true
		}
	}
	return false
}

// why is the decision in one sentence for an operator.
func (b *Broker) why(j *job, o *outlook) string {
	class := b.cfg.Classes[j.class].Name
	switch o.verdict {
	case wire.Grant:
		return fmt.Sprintf("It may be sent now: %s.", b.standing(j))
	case wire.Refuse:
		return fmt.Sprintf("It is refused: %s.", b.sentence(j, o))
	case wire.Defer:
	}
	when := fmt.Sprintf("It should wait about %s", ceilMS(o.wait))
	l, _ := b.limitOf(o)
	switch o.cause {
	case wire.CauseQuota:
		s := b.rule.LimitAt(o.limit)
		return fmt.Sprintf("%s: %d of %d %s are charged in the window, and it needs %d.", when, s.Used, s.Quota, l, j.need[l.Metric])
	case wire.CauseReserved:
		return fmt.Sprintf("%s: what is left of %s is held for %s.", when, l, b.heldFor(j, o))
	case wire.CausePace:
		s := b.rule.LimitAt(o.limit)
		return fmt.Sprintf("%s: %s, and what is borrowed goes at a level rate, %d %s a minute for the whole account.", when, b.above(j, o), s.LeakPerMinute, l.Metric)
	case wire.CauseOrder:
		return fmt.Sprintf("%s: %d of %s with %d tokens are ahead of it.", when, o.ahead.count, class, o.ahead.need[classes.Tokens])
	case wire.CauseConcurrency:
		if b.inFlight >= b.cfg.Concurrency {
			return fmt.Sprintf("%s: all %d leases that may be in flight are.", when, b.cfg.Concurrency)
		}
		return fmt.Sprintf("%s: %d of %d leases are in flight, and the rest is held for other classes.", when, b.inFlight, b.cfg.Concurrency)
	case wire.CauseTenantLimit:
		return fmt.Sprintf("%s: its tenant is at its own cap.", when)
	case wire.CauseProviderPause:
		return fmt.Sprintf("%s: the provider told the account to wait.", when)
	default: // no deferral has another cause
		return when + "."
	}
}

// standing says how the class stands on the first limit.
func (b *Broker) standing(j *job) string {
	l, s := b.rule.LimitAt(0), b.rule.StandingAt(0, int(j.class))
	class := b.cfg.Classes[j.class].Name
	with := s.Used + j.need[l.Metric]
	switch {
	case with <= s.Floor:
		return fmt.Sprintf("with it %s uses %d of %s, within its floor of %d", class, with, b.limitNames[0], s.Floor)
	case with <= s.Share:
		return fmt.Sprintf("with it %s uses %d of %s, within its share of %d", class, with, b.limitNames[0], s.Share)
	}
	return fmt.Sprintf("with it %s uses %d of %s, %d above its share, which other classes do not need now", class, with, b.limitNames[0], with-s.Share)
}

// above says how far the class would be above its share on the limit that binds.
func (b *Broker) above(j *job, o *outlook) string {
	l, s := b.rule.LimitAt(o.limit), b.rule.StandingAt(o.limit, int(j.class))
	what := "it"
	if o.ahead.count > 0 {
		what = "it and what is ahead of it"
	}
	with := s.Used + o.ahead.need[l.Metric] + j.need[l.Metric]
	return fmt.Sprintf("with %s %s would use %d of %s, %d above its share", what, b.cfg.Classes[j.class].Name, with, b.limitNames[o.limit], with-s.Share)
}

// heldFor names the classes for which room is held, the largest part first.
func (b *Broker) heldFor(j *job, o *outlook) string {
	var names []string
	for c := range b.queues {
		if s := b.rule.StandingAt(o.limit, c); int32(c) != j.class && s.Protected > s.Used {
			names = append(names, fmt.Sprintf("%s (%d protected, %d used)", b.cfg.Classes[c].Name, s.Protected, s.Used))
		}
	}
	if len(names) == 0 {
		return "a class that is served less than its share"
	}
	return strings.Join(names, " and ")
}
