package broker

import (
	"time"

	"quotabroker/classes"
	"quotabroker/window"
	"quotabroker/wire"
)

// Status returns the pool's snapshot. Version, ConfigHash, Leader and UptimeMS are
// the shell's to fill in. It moves the meters to now and changes nothing else.
func (b *Broker) Status(now time.Time) wire.Status {
	b.advance(now)
	s := wire.Status{Pool: b.cfg.Pool, Epoch: b.epoch, Draining: b.draining, Tenants: b.tenantStatus()}
	for i := range b.rule.Limits() {
		s.Limits = append(s.Limits, b.limitStatus(i))
	}
	oldest := b.oldest()
	for c := range b.queues {
		class := b.classStatus(int32(c))
		class.OldestWaitMS = (b.now - oldest[c]).Milliseconds()
		s.Classes = append(s.Classes, class)
	}
	s.Leases = wire.LeaseStatus{
		InFlight: int64(b.inFlight), Concurrency: int64(b.cfg.Concurrency),
		Unconfirmed: int64(b.unconfirmed), Remembered: int64(b.leases.live() - b.inFlight),
	}
	p := &b.provider
	s.Provider = wire.ProviderStatus{
		State: providerStateNames[p.state], Throttled: p.throttled, Overloaded: p.overloaded, Exhausted: p.exhausted,
	}
	if wait, _ := p.closed(b.now); wait > 0 {
		s.Provider.PausedForMS = ceilMS(wait).Milliseconds()
	}
	return s
}

// oldest returns when the longest waiting job of each class that has not been given
// up first asked; now where none waits.
func (b *Broker) oldest() []time.Duration {
	born := make([]time.Duration, len(b.queues))
	for c := range born {
		born[c] = b.now
	}
	for i := range b.tickets.next {
		if t := b.tickets.at(i); t.n != 0 && !t.late {
			born[t.class] = min(born[t.class], t.born)
		}
	}
	return born
}

func (b *Broker) limitStatus(i int) wire.LimitStatus {
	l := b.rule.LimitAt(i)
	return wire.LimitStatus{
		Limit: b.limitNames[i], Configured: l.Amount, Quota: l.Quota, Used: l.Used,
		Level: l.Level, LeakPerMin: l.LeakPerMinute, WindowMS: l.Window.Milliseconds(),
	}
}

func (b *Broker) classStatus(c int32) wire.ClassStatus {
	st, q := &b.stats[c], &b.queues[c]
	w := q.waiting(&b.tickets)
	s := wire.ClassStatus{
		Class: b.cfg.Classes[c].Name, Amounts: b.amounts(c),
		WaitingRequests: int64(w.count), WaitingTokens: w.need[classes.Tokens],
		ParkedRequests: int64(q.parked), LateRequests: int64(q.late), LeasesInFlight: st.inFlight,
		WaitP50MS: window.Quantile(50, &st.recent[0], &st.recent[1]),
		WaitP95MS: window.Quantile(95, &st.recent[0], &st.recent[1]),
		WaitP99MS: window.Quantile(99, &st.recent[0], &st.recent[1]),
		Asks:      st.asks, Grants: st.grants, GrantedTokens: st.grantedTokens,
		RefundedTokens: st.refunded, OverrunTokens: st.extra,
		Abandoned: st.abandoned, Expired: st.expired, Cancelled: st.cancelled, Vanished: st.vanished,
		Defers: byCause(&st.defers), Refusals: byCause(&st.refusals), WaitHistogram: st.waits.wire(),
	}
	return s
}

func (b *Broker) amounts(c int32) []wire.ClassAmounts {
	out := make([]wire.ClassAmounts, b.rule.Limits())
	for i := range out {
		s := b.rule.StandingAt(i, int(c))
		out[i] = wire.ClassAmounts{
			Limit: b.limitNames[i], Used: s.Used, Share: s.Share, Floor: s.Floor, Reserve: s.Reserve,
			Protected: s.Protected, Borrowed: s.Borrowed, Lent: s.Lent, Waiting: s.Waiting, Largest: s.Largest,
		}
	}
	return out
}

func (b *Broker) tenantStatus() []wire.TenantStatus {
	out := []wire.TenantStatus{}
	for _, r := range b.top.largest() {
		t := wire.TenantStatus{Tenant: r.key.name, Source: b.sourceName(r.key.source), Tokens: r.tokens}
		if i, ok := b.tenantIndex[r.key]; ok {
			tn := b.tenants.at(i)
			t.LeasesInFlight, t.Parked = int64(tn.inFlight), int64(tn.parked)
		}
		out = append(out, t)
	}
	return out
}

func (b *Broker) sourceName(index int32) string {
	for name, s := range b.sources {
		if s.index == index {
			return name
		}
	}
	return ""
}

func byCause(counts *[wire.NumCauses]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for c, n := range counts {
		if n > 0 {
			out[wire.Cause(c).String()] = n
		}
	}
	return out
}
