package broker

import (
	"testing"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// tierPool is a pool of one class with three tiers of customers, one tenant each,
// and less quota than they want together.
func tierPool(book time.Duration) Config {
	cfg := burstPool(60_000, true, 60)
	cfg.Classes = []classes.Class{{Name: "all", Share: classes.Whole, Floor: classes.Whole, Book: book}}
	cfg.Sources = map[string]string{"api": "all"}
	cfg.Tiers = []Tier{{Name: "premium"}, {Name: "standard", Base: 10}, {Name: "free", Base: 20}}
	cfg.Tenants = map[string]string{"p": "premium", "s": "standard", DefaultTenant: "free"}
	return cfg
}

var tierBases = map[string]time.Duration{"p": 0, "s": 60 * time.Second, "f": 120 * time.Second}

// TestTierGuarantee is §9: while a job waits, nothing of a tier whose base is lower
// by d points that arrived more than d·ageing after it goes first; nor does
// anything else that the key enqueued + base·ageing puts behind it.
func TestTierGuarantee(t *testing.T) {
	t.Parallel()
	grants, passes := 0, map[string]int{}
	for seed := range uint64(histories(30)) {
		l := newLoop(t, seed, tierPool(0))
		type waiting struct {
			tenant  string
			arrived time.Duration
		}
		queue := map[uint64]waiting{}
		ids := uint64(0)
		for i, tenant := range []string{"p", "s", "f"} {
			mean := time.Duration(3+i) * time.Second
			rush := time.Duration(0)
			var next func()
			next = func() {
				ids++
				id, me := ids, waiting{tenant, l.now}
				queue[id] = me
				l.ask(Ask{Source: "api", Tenant: tenant, Cost: tokens(l.lognormal(2500, 0.5, 100, 20_000)), Wait: 24 * time.Hour, Deadline: -1}, func(d wire.Decision) {
					delete(queue, id)
					if d.Verdict != wire.Grant {
						return
					}
					grants++
					for _, other := range queue {
						mine, theirs := me.arrived+tierBases[me.tenant], other.arrived+tierBases[other.tenant]
						if mine > theirs || mine == theirs && tierBases[other.tenant] < tierBases[me.tenant] {
							t.Fatalf("seed %d, at %s: a job of %s from %s goes before one of %s from %s", seed, l.now, me.tenant, me.arrived, other.tenant, other.arrived)
						}
						if me.arrived > other.arrived {
							passes[me.tenant+" "+other.tenant]++
						}
					}
				})
				if l.IntN(100) == 0 {
					rush = time.Duration(l.Int64N(int64(20 * time.Second)))
				}
				rush = max(0, rush-mean)
				l.in(time.Duration(l.ExpFloat64()*float64(mean))/(1+rush/mean), next)
			}
			l.in(time.Duration(l.Int64N(int64(time.Second))), next)
		}
		l.run(20 * time.Minute)
	}
	t.Logf("%d grants; passed by later arrivals: %v", grants, passes)
	for _, pair := range []string{"p s", "p f", "s f"} {
		if passes[pair] < 100 {
			t.Errorf("%s: %d passes: the loops test nothing", pair, passes[pair])
		}
	}
}

// TestTierOrderAmongBookings lets jobs come back as they are told, some of them
// booked, and looks at the order in which they stand: no newcomer of any tier gets
// before a booking, the guarantee of the tiers holds between all others, and the
// order is total.
func TestTierOrderAmongBookings(t *testing.T) {
	t.Parallel()
	booked, pairs, newcomers := 0, 0, 0
	for seed := range uint64(histories(30)) {
		l := newLoop(t, seed, tierPool(5*time.Second))
		for i, tenant := range []string{"p", "s", "f"} {
			w := &worker{
				l: l, source: "api", tenant: tenant, vanish: 0.02, lag: 50 * time.Millisecond,
				size:    func() int64 { return l.lognormal(2500, 0.5, 100, 20_000) },
				service: func() time.Duration { return time.Second },
			}
			mean := float64(4+2*i) * float64(time.Second)
			var next func()
			next = func() {
				before := bookingsAhead(l.b)
				w.arrive()
				newcomers++
				for n, after := range bookingsAhead(l.b) {
					if was, old := before[n]; old && after > was {
						t.Fatalf("seed %d, at %s: a newcomer of %s gets before a booking: %d are ahead of it, %d were", seed, l.now, tenant, after, was)
					}
				}
				booked = max(booked, len(before))
				if newcomers%4 == 0 {
					pairs += ordered(l)
				}
				l.in(time.Duration(l.ExpFloat64()*mean), next)
			}
			l.in(time.Duration(l.Int64N(int64(time.Second))), next)
		}
		l.run(20 * time.Minute)
	}
	t.Logf("%d newcomers, up to %d bookings at once, %d pairs", newcomers, booked, pairs)
	if booked < 3 || pairs < 10_000 {
		t.Error("the loops test nothing")
	}
}

// arrive asks for one job more, and for no other after it.
func (w *worker) arrive() {
	one := *w
	one.active = func() bool { return false }
	one.think = 100 * time.Hour
	one.ask(w.size(), wire.TicketID{}, w.l.now)
}

// bookingsAhead returns how many tickets are ahead of each live booking.
func bookingsAhead(b *Broker) map[uint64]int32 {
	out := map[uint64]int32{}
	for i := range b.tickets.next {
		if t := b.tickets.at(i); t.n != 0 && t.booked && !t.late {
			out[t.n] = b.queues[t.class].ahead(&b.tickets, t.place()).count
		}
	}
	return out
}

// ordered checks every pair of tickets that are not late, as they stand.
func ordered(l *loop) (pairs int) {
	b := l.b
	q := &b.queues[0]
	at := make([]*ticket, q.waiting(&b.tickets).count)
	for i := range b.tickets.next {
		t := b.tickets.at(i)
		if t.n == 0 || t.late {
			continue
		}
		n := q.ahead(&b.tickets, t.place()).count
		if int(n) >= len(at) || at[n] != nil {
			l.t.Fatalf("at %s: the order is not total: place %d of %d is taken twice", l.now, n, len(at))
		}
		at[n] = t
	}
	for i, first := range at {
		for _, second := range at[i+1:] {
			pairs++
			allowed := time.Duration(q.tiers[second.tier].base - q.tiers[first.tier].base)
			if late := first.born - second.born - allowed; late > 0 && first.born > second.born {
				l.t.Fatalf("at %s: a job of tier %d from %s stands before one of tier %d from %s, %s more than their tiers allow",
					l.now, first.tier, first.born, second.tier, second.born, late)
			}
		}
	}
	return pairs
}

// TestServedBookingOrdersNothing books a job of the last tier, whose key lies two
// minutes ahead, and serves it: who comes later while the class stays busy is ordered
// by what it is, not by that booking.
func TestServedBookingOrdersNothing(t *testing.T) {
	cfg := tierPool(5 * time.Second)
	cfg.Guard, cfg.Buckets = 0, 60
	b := New(cfg, 7, origin)
	must(t, b, 0, Ask{Source: "api", Tenant: "s", Cost: tokens(60_000), Deadline: -1})
	free := must(t, b, 57*time.Second, Ask{Source: "api", Cost: tokens(1000), Deadline: -1})
	if !free.Booked {
		t.Fatalf("the job of the last tier is not booked: %+v", free)
	}
	standing := func(at time.Duration, tenant string, x int64) wire.Decision {
		effects, err := b.Acquire(origin.Add(at), Ask{To: 1, Source: "api", Tenant: tenant, Cost: tokens(x), Wait: 20 * time.Minute, Deadline: -1})
		if err != nil || len(effects) > 0 {
			t.Fatalf("%s is answered at once: %+v", tenant, effects)
		}
		e, err := b.Explain(origin.Add(at), Ask{Source: "api", Tenant: tenant, Cost: tokens(1000), Deadline: -1})
		if err != nil {
			t.Fatal(err)
		}
		return e.Decision
	}
	if d := standing(57*time.Second, "p", 30_000); d.Position != 3 {
		t.Errorf("a newcomer of the first tier stands at %d, want behind the booking and its own tenant's", d.Position)
	}
	standing(57*time.Second, "s", 59_000) // so that the class stays busy
	effects, err := b.Acquire(origin.Add(61*time.Second), Ask{Source: "api", Cost: tokens(1000), Deadline: -1, Ticket: free.Ticket})
	if err != nil || len(effects) != 2 || effects[0].Decision.Verdict != wire.Grant || effects[1].Decision.Verdict != wire.Grant {
		t.Fatalf("the booking and the one behind it are not served: %+v, error %v", effects, err)
	}
	for range 8 {
		standing(62*time.Second, "s", 30_000)
	}
	b.Tick(origin.Add(124 * time.Second))
	e, problem := b.Explain(origin.Add(124*time.Second), Ask{Source: "api", Tenant: "p", Cost: tokens(1000), Deadline: -1})
	if waiting := b.queues[0].tickets; problem != nil || waiting < 5 || e.Decision.Position != int64(waiting)+1 {
		t.Errorf("62 s later one of the first tier would stand at %d of %d; all of the second arrived a minute before it", e.Decision.Position, waiting)
	}
}
