package broker

import (
	"fmt"
	"testing"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// crowdOfTenants is a pool with caps on each tenant and producers of many of them.
type crowdOfTenants struct {
	*loop
	cfg      Config
	asked    int
	ended    map[string]int // how asks ended
	spent    map[string]*exactWindow
	inFlight map[string]int
	last     map[string]int // newest ask of a tenant that was granted
	passed   int            // grants of an older ask after a newer one of the same tenant
	parked   int            // most tickets parked at once
	jobs     map[string]int // asks of a tenant
}

func newCrowdOfTenants(t testing.TB, seed uint64, edit func(*loop, *Config)) *crowdOfTenants {
	l := newLoop(t, seed, burstPool(600_000, true, 60))
	cfg := burstPool(600_000, l.IntN(2) == 0, 60)
	edit(l, &cfg)
	if problems := cfg.Validate(); len(problems) > 0 {
		t.Fatal(problems)
	}
	l.b = New(cfg, 7, origin)
	k := &crowdOfTenants{
		loop: l, cfg: cfg, ended: map[string]int{}, spent: map[string]*exactWindow{}, inFlight: map[string]int{},
		last: map[string]int{}, jobs: map[string]int{},
	}
	n := 0
	l.after = func() {
		if n++; n%32 == 0 {
			k.look()
		}
	}
	return k
}

// look checks the books of every tenant.
func (k *crowdOfTenants) look() {
	parked := 0
	for key, i := range k.b.tenantIndex {
		tn := k.b.tenants.at(i)
		parked += int(tn.parked)
		var n int32
		var need classes.Vec
		var before *ticket
		for at := tn.first; at != none; at = k.b.tickets.at(at).chain {
			tk := k.b.tickets.at(at)
			if !tk.parked || tk.tenant != i {
				k.t.Fatalf("at %s: ticket %x stands in the chain of %s", k.now, tk.n, key.name)
			}
			if before != nil && !before.before(tk.tag, tk.seq) {
				k.t.Fatalf("at %s: the chain of %s is out of order", k.now, key.name)
			}
			before = tk
			n++
			need = need.Add(tk.need)
		}
		if n != tn.parked || need != tn.parkedNeed {
			k.t.Fatalf("at %s: the chain of %s holds %d tickets with %v, it says %d with %v", k.now, key.name, n, need, tn.parked, tn.parkedNeed)
		}
		if most, capped := k.b.tenantCap(tn.tier); capped && tn.inFlight > most {
			k.t.Fatalf("at %s: %s has %d leases in flight, its cap is %d", k.now, key.name, tn.inFlight, most)
		}
	}
	k.parked = max(k.parked, parked)
}

// produce lets a tenant ask at random until the given time; mean is between asks.
func (k *crowdOfTenants) produce(source, tenant string, mean time.Duration, hold time.Duration, size func() int64, until time.Duration) {
	var next func()
	next = func() {
		if k.now >= until {
			return
		}
		k.asked++
		k.jobs[tenant]++
		k.job(source, tenant, hold, size(), wire.TicketID{}, k.jobs[tenant])
		k.in(time.Duration(k.ExpFloat64()*float64(mean)), next)
	}
	k.in(time.Duration(k.ExpFloat64()*float64(mean)), next)
}

func (k *crowdOfTenants) job(source, tenant string, hold time.Duration, x int64, ticket wire.TicketID, n int) {
	k.ask(Ask{Source: source, Tenant: tenant, Cost: tokens(x), Wait: hold, Deadline: -1, Ticket: ticket}, func(d wire.Decision) {
		switch d.Verdict {
		case wire.Grant:
			k.ended["granted"]++
			if n < k.last[tenant] {
				k.passed++
			}
			k.last[tenant] = max(k.last[tenant], n)
			k.charge(tenant, x)
			k.in(time.Duration(k.ExpFloat64()*float64(4*time.Second)), func() {
				k.settle(source, d, wire.OutcomeOK, &wire.Usage{InputTokens: d.Cost.InputTokens, OutputTokens: d.Cost.OutputTokens})
			})
		case wire.Refuse:
			k.ended["refused for "+d.Cause.String()]++
		default:
			switch {
			case k.Float64() < 0.02:
				k.ended["vanished"]++
			case k.Float64() < 0.02:
				reply, effects, err := k.b.Cancel(k.time(), source, wire.CancelRequest{Ticket: d.Ticket})
				if err != nil || !reply.Cancelled {
					k.t.Fatalf("at %s: a ticket cannot be taken back: %v", k.now, err)
				}
				k.deliver(effects)
				k.ended["cancelled"]++
			default:
				retry := time.Duration(d.RetryAfterMS)*time.Millisecond + time.Duration(k.Int64N(int64(100*time.Millisecond)))
				k.in(retry, func() { k.job(source, tenant, hold, x, d.Ticket, n) })
			}
		}
	})
}

// charge counts a grant against the tenant's own token limit, exactly.
func (k *crowdOfTenants) charge(tenant string, x int64) {
	if len(k.cfg.TenantLimits) == 0 {
		return
	}
	limit := k.cfg.TenantLimits[0]
	w := k.spent[tenant]
	if w == nil {
		w = &exactWindow{window: limit.Span + k.cfg.Guard}
		k.spent[tenant] = w
	}
	if sum := w.add(k.now, x); sum > limit.Amount {
		k.t.Fatalf("at %s: %s was granted %d within a window, its limit is %s of %d", k.now, tenant, sum, limit, limit.Amount)
	}
}

// leavesNothing lets everything end and checks that every ask did, once, and that
// the broker holds nothing any more.
func (k *crowdOfTenants) leavesNothing() {
	t := k.t
	k.run(k.now + 6*time.Hour)
	ended := 0
	for _, n := range k.ended {
		ended += n
	}
	if ended != k.asked || len(k.loop.asked) > 0 {
		t.Errorf("%d asks, %d ended, %d never answered: %v", k.asked, ended, len(k.loop.asked), k.ended)
	}
	b := k.b
	if b.tickets.live() != 0 || b.leases.live() != 0 || len(b.byRequest) != 0 || len(b.tenantIndex) != 0 || b.tenants.live() != 0 {
		t.Errorf("left behind: %d tickets, %d leases, %d request ids, %d tenants (%d)", b.tickets.live(), b.leases.live(), len(b.byRequest), len(b.tenantIndex), b.tenants.live())
	}
	for c := range b.queues {
		if q := &b.queues[c]; q.tickets != 0 || q.tokens != 0 || q.late != 0 || q.parked != 0 || b.rule.StandingAt(0, c).Waiting != 0 {
			t.Errorf("class %d is left with %+v", c, q)
		}
	}
	if _, ok := b.Next(); ok {
		t.Errorf("an idle broker still asks for ticks")
	}
}

// TestTenantCaps floods a pool in which each tenant may hold so many leases: nobody
// passes its cap, what is parked returns, and every ask ends in exactly one way.
func TestTenantCaps(t *testing.T) {
	t.Parallel()
	parked, passed, ended := 0, 0, map[string]int{}
	for seed := range uint64(histories(25)) {
		k := newCrowdOfTenants(t, seed, func(l *loop, cfg *Config) {
			cfg.Concurrency = 8 + l.IntN(40)
			share := classes.Portion(1+l.IntN(30)) * classes.Percent
			cfg.TenantShare = &share
		})
		hold := time.Duration(k.IntN(2)) * 24 * time.Hour
		for i := range 6 {
			mean := 3 * time.Second
			if i == 0 {
				mean = 200 * time.Millisecond
			}
			k.produce(sourceOf[i%3], fmt.Sprint("tenant ", i), mean, hold, func() int64 { return k.lognormal(2000, 1, 100, 40_000) }, 3*time.Minute)
		}
		k.run(3 * time.Minute)
		k.leavesNothing()
		if hold > 0 {
			passed += k.passed
		}
		parked = max(parked, k.parked)
		for how, n := range k.ended {
			ended[how] += n
		}
	}
	t.Logf("up to %d parked; ended: %v", parked, ended)
	if passed > 0 {
		t.Errorf("%d asks passed an older one of their tenant", passed)
	}
	if parked < 10 || ended["granted"] < 1000 || ended["vanished"] == 0 || ended["cancelled"] == 0 {
		t.Error("the loops test nothing")
	}
}

// TestTenantLimits gives each tenant a rolling limit of its own.
func TestTenantLimits(t *testing.T) {
	t.Parallel()
	parked, passed, ended := 0, 0, map[string]int{}
	for seed := range uint64(histories(25)) {
		k := newCrowdOfTenants(t, 100+seed, func(l *loop, cfg *Config) {
			cfg.TenantLimits = []classes.Limit{{Metric: classes.Tokens, Amount: 40_000 + l.Int64N(60_000), Span: time.Minute}}
			if l.IntN(2) == 0 {
				cfg.TenantLimits = append(cfg.TenantLimits, classes.Limit{Metric: classes.Requests, Amount: 5 + l.Int64N(30), Span: 20 * time.Second})
			}
		})
		hold := time.Duration(k.IntN(2)) * 24 * time.Hour
		for i := range 6 {
			k.produce(sourceOf[i%3], fmt.Sprint("tenant ", i), time.Duration(200+k.IntN(1500))*time.Millisecond, hold,
				func() int64 { return k.lognormal(2000, 1, 100, 50_000) }, 3*time.Minute)
		}
		k.run(3 * time.Minute)
		k.leavesNothing()
		if hold > 0 {
			passed += k.passed
		}
		parked = max(parked, k.parked)
		for how, n := range k.ended {
			ended[how] += n
		}
	}
	t.Logf("up to %d parked; ended: %v", parked, ended)
	if passed > 0 {
		t.Errorf("%d asks passed an older one of their tenant", passed)
	}
	if parked < 10 || ended["granted"] < 1000 {
		t.Error("the loops test nothing")
	}
}

// TestTenantsShareFairly lets one tenant with 40 workers and large jobs compete with
// three that have 4 workers and small ones: each gets a quarter of the tokens.
func TestTenantsShareFairly(t *testing.T) {
	t.Parallel()
	for _, hold := range []time.Duration{0, time.Hour} {
		cfg := burstPool(600_000, true, 240)
		for i := range cfg.Classes {
			cfg.Classes[i].Book = 0 // while a booking lasts, fairness rests
		}
		l := newLoop(t, 4, cfg)
		got := map[string]int64{}
		for _, tenant := range []string{"hog", "b", "c", "d"} {
			workers, x := 4, int64(2000)
			if tenant == "hog" {
				workers, x = 40, 8000
			}
			for range workers {
				w := &worker{
					l: l, source: "eval", tenant: tenant, hold: hold,
					size:    func() int64 { return x/2 + l.Int64N(x) },
					service: func() time.Duration { return 100 * time.Millisecond },
					granted: func(x int64, _ time.Duration) {
						if l.now > 2*time.Minute {
							got[tenant] += x
						}
					},
				}
				l.in(time.Duration(l.Int64N(int64(time.Second))), w.start)
			}
		}
		l.run(17 * time.Minute)
		total := got["hog"] + got["b"] + got["c"] + got["d"]
		t.Logf("held %v: %v", hold > 0, got)
		for tenant, n := range got {
			part := 100 * float64(n) / float64(total)
			if part < 24 || part > 26 {
				t.Errorf("held %v: %s got %.1f %% of the tokens, want a quarter", hold > 0, tenant, part)
			}
		}
	}
}
