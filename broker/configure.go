package broker

import (
	"maps"
	"slices"
	"strings"
	"time"

	"quotabroker/classes"
	"quotabroker/window"
	"quotabroker/wire"
)

// Configure puts another configuration in force, which must be valid. What was
// charged, leases, waiting work with its age, and learned reserves are kept. A
// class that is gone leaves its charges and leases to the last class; waiting work
// follows its source to the class that the source has now, and is refused as
// draining where the source is gone.
func (b *Broker) Configure(now time.Time, cfg Config) []Effect {
	b.start(now)
	b.adopt(cfg)
	return b.finish()
}

// adopt makes cfg the configuration, at the start of a broker's life or later.
func (b *Broker) adopt(cfg Config) {
	old := b.cfg
	b.cfg = cfg
	classOf := make([]int, len(old.Classes)) // old number → new
	for i, c := range old.Classes {
		classOf[i] = classIndex(cfg.Classes, c.Name)
	}
	inFlight := b.moveLeases(classOf)
	b.adoptRule(classOf, inFlight)
	b.adoptStats(&old, classOf, inFlight)
	b.adoptSources()
	waiting := b.unqueue()
	b.queues = make([]queue, len(cfg.Classes))
	for i := range b.queues {
		b.queues[i] = newQueue(&b.cfg)
	}
	b.adoptTenants(&old)
	b.requeue(waiting)
}

// moveLeases puts every lease into what became of its class, the last one where
// that is gone, and counts those in flight.
func (b *Broker) moveLeases(classOf []int) (inFlightBy []int64) {
	inFlightBy = make([]int64, len(b.cfg.Classes))
	for i := range b.leases.next {
		l := b.leases.at(i)
		if l.n == 0 {
			continue
		}
		if l.class = int32(classOf[l.class]); l.class < 0 {
			l.class = int32(len(b.cfg.Classes) - 1)
		}
		if l.state == inFlight {
			inFlightBy[l.class]++
		}
	}
	return inFlightBy
}

func (b *Broker) adoptRule(classOf []int, inFlight []int64) {
	cfg := &b.cfg
	rule := classes.NewRule(classes.Settings{
		Classes: cfg.Classes, Limits: cfg.Limits, Concurrency: cfg.Concurrency,
		Margin: cfg.Margin, Guard: cfg.Guard, Buckets: cfg.Buckets, HalfLife: cfg.HalfLife,
	})
	rule.SetLeaseTime(b.leaseTime)
	if b.rule != nil {
		rule.Adopt(b.rule, classOf)
		rule.CountLeases(inFlight)
		for i := range b.leases.next { // only the leases know what was charged of a metric that had no limit
			if l := b.leases.at(i); l.n != 0 {
				rule.Backfill(int(l.class), l.granted, classes.VecOf(l.charged))
			}
		}
	}
	b.rule = rule
	b.remember = min(max(rule.LongestWindow(), minRemember), maxRemember)
	b.limitNames = b.limitNames[:0]
	for i := range rule.Limits() {
		b.limitNames = append(b.limitNames, rule.LimitAt(i).String())
	}
}

func (b *Broker) adoptStats(old *Config, classOf []int, inFlight []int64) {
	was := b.stats
	b.stats = make([]classStats, len(b.cfg.Classes))
	for i := range old.Classes {
		if to := classOf[i]; to >= 0 {
			b.stats[to] = was[i]
		}
	}
	for c := range b.stats {
		b.stats[c].inFlight = inFlight[c]
	}
}

// adoptSources keeps the number of every source that was ever named, so that its
// leases and tenants stay its own, and gives new ones the next numbers.
func (b *Broker) adoptSources() {
	for name, s := range b.sources {
		b.sources[name] = source{s.index, none}
	}
	names := slices.Sorted(maps.Keys(b.cfg.Sources))
	for _, name := range names {
		s, known := b.sources[name]
		if !known {
			s.index = int32(len(b.sources))
		}
		s.class = int32(classIndex(b.cfg.Classes, b.cfg.Sources[name]))
		b.sources[name] = s
	}
	b.sourceNames = strings.Join(names, ", ")
}

// sourceClass returns the class that the source of this number has now.
func (b *Broker) sourceClass(index int32) int32 {
	for _, s := range b.sources {
		if s.index == index {
			return s.class
		}
	}
	return none
}

// unqueue takes every ticket out of the order, oldest place first.
func (b *Broker) unqueue() []int32 {
	var all []int32
	for i := range b.tickets.next {
		if t := b.tickets.at(i); t.n != 0 {
			all = append(all, i)
			t.parked, t.chain = false, none
		}
	}
	slices.SortFunc(all, func(x, y int32) int {
		if b.tickets.at(x).before(b.tickets.at(y).tag, b.tickets.at(y).seq) {
			return -1
		}
		return 1
	})
	return all
}

// adoptTenants brings the tenants under the new tiers, classes and caps.
func (b *Broker) adoptTenants(old *Config) {
	same := slices.Equal(old.TenantLimits, b.cfg.TenantLimits) && old.Guard == b.cfg.Guard
	if !same {
		b.spans = nil
		for _, l := range b.cfg.TenantLimits {
			b.spans = append(b.spans, window.NewSpan(l.Span+b.cfg.Guard, tenantBuckets))
		}
	}
	for key, i := range b.tenantIndex {
		t := b.tenants.at(i)
		t.tier = b.tierOf(key.name)
		if c := b.sourceClass(key.source); c != none {
			t.class = c
		} else {
			t.class = int32(len(b.cfg.Classes) - 1)
		}
		t.tickets, t.parked, t.parkedNeed, t.first, t.last, t.fin = 0, 0, classes.Vec{}, none, none, 0
		if !same {
			t.spent = b.respent(t.spent, old)
		}
	}
}

// tenantBuckets is how finely a tenant's own window is cut: an idle one keeps
// nothing, a busy one this many cells at most.
const tenantBuckets = 60

// respent carries a tenant's meters over to limits of another shape: what it spent
// of the metric counts as spent now.
func (b *Broker) respent(was []window.Sparse, old *Config) []window.Sparse {
	if len(b.spans) == 0 || was == nil {
		return nil
	}
	spent := make([]window.Sparse, len(b.spans))
	for i, l := range b.cfg.TenantLimits {
		for k, o := range old.TenantLimits {
			if o.Metric == l.Metric {
				spent[i].Charge(b.spans[i], b.now, min(was[k].Total(), l.Amount))
				break
			}
		}
	}
	return spent
}

// requeue gives every ticket a place in the new order. Age and relative order are
// kept; bookings of the old order are not.
func (b *Broker) requeue(waiting []int32) {
	for _, i := range waiting {
		t := b.tickets.at(i)
		t.class = b.sourceClass(t.source)
		gone := t.class == none
		if gone {
			t.class = int32(len(b.cfg.Classes) - 1)
		}
		tn := b.tenants.at(t.tenant)
		t.tier, t.booked, t.tried = tn.tier, false, false
		t.weight = b.rule.Weight(&t.need)
		q := &b.queues[t.class]
		tr := &q.tiers[t.tier]
		t.tag = max(tr.v, tn.fin)
		t.key = rankAt(t.born, tr.base)
		tn.fin = t.tag + t.weight
		tn.tickets++
		tr.maxFin = max(tr.maxFin, tn.fin)
		q.tickets++
		q.tokens += t.need[classes.Tokens]
		if t.late {
			q.late++
		}
		tr.insert(&b.tickets, i)
		j := job{class: t.class, tier: t.tier, need: t.need}
		if o, refused := b.gate(&j); gone {
			b.refuseTicket(i, &outlook{verdict: wire.Refuse, cause: wire.CauseDraining, wait: time.Second, limit: noLimit})
		} else if refused {
			b.refuseTicket(i, &o)
		}
	}
	for c := range b.queues {
		b.demand(int32(c))
	}
	for i := range b.tenants.next {
		if t := b.tenants.at(i); t.tickets > 0 {
			b.release(i)
		}
	}
}
