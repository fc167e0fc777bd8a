package broker

import (
	"time"

	"quotabroker/classes"
	"quotabroker/window"
	"quotabroker/wire"
)

// tenant is whose work it is, within a source. A tenant with nothing waiting,
// nothing in flight and no unfairness to remember is forgotten.
type tenant struct {
	key      tenantKey
	hash     uint32
	class    int32
	tier     int32
	tickets  int32 // waiting, parked included
	inFlight int32
	fin      int64 // finish tag of the last ask

	parked     int32 // tickets in the chain
	parkedNeed classes.Vec
	first      int32 // of the chain, linked by ticket.chain
	last       int32

	spent []window.Sparse // one for each of the pool's tenant limits; nil: none
}

// tenantKey is the identity of a tenant: names are within a source, so that no
// source can speak for the tenant of another.
type tenantKey struct {
	source int32
	name   string
}

// sweepStep is how many tenants every ask looks at to forget idle ones: more than
// the one it may add, so that the idle never outnumber the busy for long.
const sweepStep = 2

func (b *Broker) findTenant(source int32, name string) int32 {
	if i, ok := b.tenantIndex[tenantKey{source, name}]; ok {
		return i
	}
	return none
}

// tenantOf finds or makes the tenant.
func (b *Broker) tenantOf(source, class int32, name string) int32 {
	key := tenantKey{source, name}
	if i, ok := b.tenantIndex[key]; ok {
		return i
	}
	b.sweep(sweepStep)
	i, _, t := b.tenants.add()
	*t = tenant{key: key, hash: key.hash(), class: class, tier: b.tierOf(name), first: none, last: none}
	b.tenantIndex[key] = i
	return i
}

func (b *Broker) tierOf(tenant string) int32 {
	if len(b.cfg.Tiers) == 0 {
		return 0
	}
	name, ok := b.cfg.Tenants[tenant]
	if !ok {
		name = b.cfg.Tenants[DefaultTenant]
	}
	return int32(max(0, tierIndex(b.cfg.Tiers, name)))
}

// sweep looks at n tenants in turn and forgets those that are idle.
func (b *Broker) sweep(n int) {
	for range min(n, int(b.tenants.next)) {
		if b.hand >= b.tenants.next {
			b.hand = 0
		}
		i := b.hand
		b.hand++
		if t := b.tenants.at(i); t.first == none && b.idle(t) {
			delete(b.tenantIndex, t.key)
			b.tenants.drop(i)
		}
	}
}

// idle reports whether t is a tenant that may be forgotten. A dropped place in
// the arena is none: its first is 0, not none.
func (b *Broker) idle(t *tenant) bool {
	if t.tickets > 0 || t.inFlight > 0 || t.fin > b.queues[t.class].tiers[t.tier].v {
		return false
	}
	for i := range t.spent {
		t.spent[i].Advance(b.spans[i], b.now)
		if t.spent[i].Total() > 0 {
			return false
		}
	}
	return true
}

// tenantCap returns how many leases a tenant of the tier may have in flight, and
// whether there is such a cap. A share above 0 allows one lease at least.
func (b *Broker) tenantCap(tier int32) (most int32, capped bool) {
	share := b.cfg.TenantShare
	if t := b.cfg.tiers()[tier].TenantShare; t != nil {
		share = t
	}
	if share == nil || b.cfg.Concurrency == 0 {
		return 0, false
	}
	if *share == 0 {
		return 0, true
	}
	return int32(max(1, share.Of(int64(b.cfg.Concurrency)))), true
}

// tenantNever reports whether the tenant can never be given the job.
func (b *Broker) tenantNever(tier int32, need *classes.Vec) (cause wire.Cause, limit int) {
	if most, capped := b.tenantCap(tier); capped && most == 0 {
		return wire.CauseNoQuota, noLimit
	}
	for i, l := range b.cfg.TenantLimits {
		switch x := need[l.Metric]; {
		case x > 0 && l.Amount == 0:
			return wire.CauseNoQuota, i
		case x > l.Amount:
			return wire.CauseTooLarge, i
		}
	}
	return wire.CauseNone, noLimit
}

// noLimit is the index of no limit.
const noLimit = -1

// tenantWait returns how long the tenant's own caps keep a job from being tried,
// 0 if they do not. ahead is what the tenant's chain holds before it.
func (b *Broker) tenantWait(ti, tier int32, need, ahead *classes.Vec, before int32) time.Duration {
	var t *tenant
	if ti != none {
		t = b.tenants.at(ti)
	} else {
		t = &tenant{}
	}
	var wait time.Duration
	if most, capped := b.tenantCap(tier); capped {
		if short := t.inFlight + before + 1 - most; short > 0 {
			wait = max(time.Millisecond, b.leaseTime*time.Duration(short)/time.Duration(max(most, 1)))
		}
	}
	for i := range t.spent {
		l := b.cfg.TenantLimits[i]
		if need[l.Metric] == 0 {
			continue
		}
		t.spent[i].Advance(b.spans[i], b.now)
		n := need[l.Metric] + ahead[l.Metric]
		at := t.spent[i].FreeAt(b.spans[i], b.now, l.Amount, n)
		wait = max(wait, at-b.now)
	}
	return wait
}

// spend counts a grant against the tenant's own limits.
func (b *Broker) spend(t *tenant, need *classes.Vec) {
	if len(b.spans) == 0 {
		return
	}
	if t.spent == nil {
		t.spent = make([]window.Sparse, len(b.spans))
	}
	for i := range t.spent {
		t.spent[i].Charge(b.spans[i], b.now, need[b.cfg.TenantLimits[i].Metric])
	}
}

// park takes ticket i out of its class's order: work that may not start holds
// nothing back. The chain keeps the order of the class; the newest ticket and one
// that was tried and goes back find their places at its ends.
func (b *Broker) park(i int32) {
	tk := b.tickets.at(i)
	t := b.tenants.at(tk.tenant)
	q := &b.queues[tk.class]
	q.tiers[tk.tier].remove(&b.tickets, i)
	tk.parked, tk.chain = true, none
	q.parked++
	t.parked++
	t.parkedNeed = t.parkedNeed.Add(tk.need)
	after := t.last
	if after != none && !b.tickets.at(after).before(tk.tag, tk.seq) {
		after = none
		for at := t.first; b.tickets.at(at).before(tk.tag, tk.seq); at = b.tickets.at(at).chain {
			after = at
		}
	}
	if after == none {
		tk.chain, t.first = t.first, i
	} else {
		tk.chain, b.tickets.at(after).chain = b.tickets.at(after).chain, i
	}
	if tk.chain == none {
		t.last = i
	}
	b.demand(tk.class)
}

// unpark puts ticket i back in its old place.
func (b *Broker) unpark(i int32) {
	tk := b.tickets.at(i)
	t := b.tenants.at(tk.tenant)
	q := &b.queues[tk.class]
	b.unchain(t, i)
	tk.parked = false
	q.parked--
	t.parked--
	t.parkedNeed = t.parkedNeed.Sub(tk.need)
	q.tiers[tk.tier].insert(&b.tickets, i)
	b.demand(tk.class)
}

func (b *Broker) unchain(t *tenant, i int32) {
	before := none
	for at := t.first; at != i; at = b.tickets.at(at).chain {
		before = at
	}
	next := b.tickets.at(i).chain
	if before == none {
		t.first = next
	} else {
		b.tickets.at(before).chain = next
	}
	if t.last == i {
		t.last = before
	}
	b.tickets.at(i).chain = none
}

// ahead returns what is parked before a place: all of the chain if its first is, so
// that nothing of a tenant passes older work of its own that may not start.
func (t *tenant) ahead(a *arena[ticket], p place) (need classes.Vec, count int32) {
	if t.first == none || p.before(a.at(t.first)) {
		return need, 0
	}
	return t.parkedNeed, t.parked
}

// chained returns what the chain holds before ticket i.
func (b *Broker) chained(t *tenant, i int32) (need classes.Vec, count int32) {
	for at := t.first; at != i && at != none; at = b.tickets.at(at).chain {
		need = need.Add(b.tickets.at(at).need)
		count++
	}
	return need, count
}

// release lets the first of a tenant's chain return, as far as its caps allow.
func (b *Broker) release(ti int32) {
	t := b.tenants.at(ti)
	var released classes.Vec
	for n := int32(0); t.first != none; n++ {
		tk := b.tickets.at(t.first)
		if b.tenantWait(ti, t.tier, &tk.need, &released, n) > 0 {
			return
		}
		released = released.Add(tk.need)
		b.unpark(t.first)
		if _, capped := b.tenantCap(t.tier); capped {
			return // one lease that ends lets one ticket return; it is parked again if it is too late
		}
	}
}
