package broker

import (
	"time"

	"quotabroker/classes"
	"quotabroker/window"
	"quotabroker/wire"
)

// Broker is the state machine of one pool. Every method takes now first, brings
// everything that is due up to it, and returns the decisions to send; the slice
// is valid until the next call. A now before the last one is taken as the last.
//
// A Broker is not safe for concurrent use; it locks nothing, starts nothing and
// reads no clock.
type Broker struct {
	cfg    Config
	epoch  uint64
	origin time.Time
	now    time.Duration // since origin

	rule     *classes.Rule
	queues   []queue // by class
	stats    []classStats
	sources  map[string]source
	provider provider
	draining bool

	tickets   arena[ticket]
	leases    arena[lease]
	tenants   arena[tenant]
	seq       int64
	ticketDue schedule
	leaseDue  schedule // of leases in flight
	ended     fifo     // leases that are remembered, in the order they ended

	tenantIndex map[tenantKey]int32
	byRequest   map[requestKey]requestRef
	spans       []window.Span // of the tenant limits
	hand        int32         // of the sweep over tenants
	top         topTenants

	limitNames  []string
	sourceNames string

	inFlight    int
	unconfirmed int
	leaseTime   time.Duration // how long leases last, smoothed
	remember    time.Duration // how long an ended lease is kept

	effects []Effect
	turnAt  time.Duration // the next whole minute
	wake    time.Duration // when held asks are tried again at the latest; never if not by time
}

type source struct {
	index int32
	class int32
}

type requestKey struct {
	source int32
	id     string
}

type requestRef struct {
	lease bool
	i     int32
}

// New returns a pool in which nothing was charged yet. cfg must be valid (see
// [Config.Validate]). epoch is part of every lease and ticket: a number that no
// earlier broker of this pool had. origin is the moment that counts as time 0;
// no now may lie before it.
func New(cfg Config, epoch uint64, origin time.Time) *Broker {
	b := &Broker{
		epoch: epoch, origin: origin, wake: never, turnAt: time.Minute, leaseTime: 2 * time.Second,
		tenantIndex: map[tenantKey]int32{}, byRequest: map[requestKey]requestRef{},
		sources: map[string]source{},
	}
	b.adopt(cfg)
	return b
}

// Class returns the class of a source.
func (b *Broker) Class(sourceName string) (class string, ok bool) {
	s, ok := b.sources[sourceName]
	if !ok || s.class == none {
		return "", false
	}
	return b.cfg.Classes[s.class].Name, true
}

// Tick brings everything that is due up to now.
func (b *Broker) Tick(now time.Time) []Effect {
	b.start(now)
	b.sweep(1024)
	return b.finish()
}

// Next returns when Tick must be called next; ok is false when nothing is due.
func (b *Broker) Next() (at time.Time, ok bool) {
	next := b.wake
	if _, at, ok := b.ticketDue.first(); ok {
		next = min(next, at)
	}
	if _, at, ok := b.leaseDue.first(); ok {
		next = min(next, at)
	}
	if d, ok := b.ended.first(); ok {
		next = min(next, d.at)
	}
	if len(b.tenantIndex) > 0 {
		next = min(next, b.now+time.Second)
	}
	if next == never {
		return time.Time{}, false
	}
	return b.origin.Add(next), true
}

// Drain refuses everything that waits, and everything that asks from now on.
// Settlements, renewals and cancellations go on.
func (b *Broker) Drain(now time.Time) []Effect {
	b.start(now)
	b.draining = true
	for i := range b.tickets.next {
		if t := b.tickets.at(i); t.n != 0 {
			b.refuseTicket(i, &outlook{verdict: wire.Refuse, cause: wire.CauseDraining, wait: time.Second, limit: noLimit})
		}
	}
	return b.finish()
}

// start brings the pool up to now; every method begins with it.
func (b *Broker) start(now time.Time) {
	b.effects = b.effects[:0]
	b.advance(now)
	if b.now >= b.turnAt {
		b.turn()
	}
	b.forget()
	for {
		ticketRef, t1, ok1 := b.ticketDue.first()
		leaseRef, t2, ok2 := b.leaseDue.first()
		switch {
		case ok2 && t2 <= b.now && (!ok1 || t2 <= t1):
			b.leaseFell(leaseRef)
		case ok1 && t1 <= b.now:
			b.ticketFell(ticketRef)
		default:
			return
		}
	}
}

// turn lets what is kept for reading age, at every whole minute.
func (b *Broker) turn() {
	const perPeriod = int64(percentilePeriod / time.Minute)
	now, last := int64(b.now/time.Minute), int64(b.turnAt/time.Minute)-1
	if period := now / perPeriod; period != last/perPeriod {
		for i := range b.stats {
			b.stats[i].turn(period == last/perPeriod+1)
		}
	}
	b.top.age(now - last)
	b.turnAt = time.Duration(now+1) * time.Minute
}

// advance moves the meters to now.
func (b *Broker) advance(now time.Time) {
	b.now = max(b.now, now.Sub(b.origin))
	b.rule.Advance(b.now)
	b.provider.advance(b.now)
}

// finish gives the room there is to those who wait for it, and returns what there
// is to send; every method ends with it.
func (b *Broker) finish() []Effect {
	b.pump()
	return b.effects
}

func (b *Broker) emit(e Effect) { b.effects = append(b.effects, e) }

// slotBits is how many bits of an id's number say where in its arena the thing is.
const slotBits = 24

// maxLeases is how many leases may be in flight or remembered at once.
const maxLeases = 1<<slotBits - 2

// number makes the number of an id from its place in the arena, so that it is
// found without a search, and its generation, so that no two are the same.
func number(i int32, generation uint64) uint64 { return uint64(i) + 1 | generation<<slotBits }

// slot returns the place of the thing with this number.
func slot(n uint64) int32 { return int32(n&(1<<slotBits-1)) - 1 }
