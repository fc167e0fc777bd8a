package broker_test

import (
	"fmt"
	"testing"
	"time"

	"quotabroker/broker"
	"quotabroker/classes"
	"quotabroker/wire"
)

// benchPool is a pool with the three default classes and one limit so large that
// the benchmark decides what binds.
func benchPool(tpm int64) (*broker.Broker, time.Time) {
	cfg := broker.DefaultConfig()
	cfg.Limits = []classes.Limit{{Metric: classes.Tokens, Amount: tpm, Span: time.Minute}}
	for i := range cfg.Classes {
		cfg.Classes[i].MaxWaiting = 2_000_000
		cfg.Classes[i].MaxWait = 0
	}
	origin := time.Unix(1_700_000_000, 0)
	return broker.New(cfg, 1, origin), origin
}

func cost(tokens int64) wire.Cost {
	return wire.Cost{Requests: 1, InputTokens: tokens, Tokens: tokens, Method: wire.MethodCounted}
}

func tenantNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-%d", i)
	}
	return names
}

// BenchmarkGrant is an ask that is granted at once, and its settlement, which keeps
// the number of leases flat.
func BenchmarkGrant(b *testing.B) {
	for _, tenants := range []int{1, 100, 100_000} {
		for _, waiting := range []int{0, 10, 1_000, 10_000, 1_000_000} {
			b.Run(fmt.Sprintf("tenants=%d/waiting=%d", tenants, waiting), func(b *testing.B) {
				grants(b, tenants, waiting)
			})
		}
	}
}

// grants times interactive asks that are granted while batch waits.
func grants(b *testing.B, tenants, waiting int) {
	pool, now := benchPool(1_000_000_000)
	names := tenantNames(tenants)
	fill(pool, now, waiting)
	for i := range 100_000 { // warm up for longer than a lease is remembered
		now = now.Add(time.Millisecond)
		acquireAndSettle(b, pool, now, names[i%tenants])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		now = now.Add(time.Millisecond)
		acquireAndSettle(b, pool, now, names[i%tenants])
	}
}

// fill queues batch work behind a job that will not fit for as long as the
// benchmark runs.
func fill(pool *broker.Broker, now time.Time, waiting int) {
	for range waiting {
		_, _ = pool.Acquire(now, broker.Ask{Source: "eval", Deadline: -1, Cost: cost(500_000_000)})
	}
}

func acquireAndSettle(tb testing.TB, pool *broker.Broker, now time.Time, tenant string) {
	effects, err := pool.Acquire(now, broker.Ask{Source: "api", Tenant: tenant, Deadline: -1, Cost: cost(1)})
	if err != nil || len(effects) != 1 || effects[0].Decision.Verdict != wire.Grant {
		tb.Fatalf("not granted: %v %+v", err, effects)
	}
	lease := effects[0].Decision.Lease
	if _, _, err := pool.Settle(now, "api", wire.SettleRequest{Lease: lease, Outcome: wire.OutcomeUnsent}); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkDefer is a ticket that asks again and is deferred again, with a scan of
// the whole window: what a polling producer costs.
func BenchmarkDefer(b *testing.B) {
	for _, tenants := range []int{1, 100, 100_000} {
		for _, waiting := range []int{10, 1_000, 10_000, 1_000_000} {
			b.Run(fmt.Sprintf("tenants=%d/waiting=%d", tenants, waiting), func(b *testing.B) {
				defers(b, tenants, waiting)
			})
		}
	}
}

func defers(b *testing.B, tenants, waiting int) {
	pool, now := benchPool(1_000_000)
	names := tenantNames(tenants)
	tickets := make([]wire.TicketID, waiting)
	for i := range tickets {
		effects, err := pool.Acquire(now, broker.Ask{Source: "eval", Tenant: names[i%tenants], Deadline: -1, Cost: cost(10_000)})
		if err != nil {
			b.Fatal(err)
		}
		tickets[i] = effects[0].Decision.Ticket
		if effects[0].Decision.Verdict == wire.Grant {
			effects, _ = pool.Acquire(now, broker.Ask{Source: "eval", Tenant: names[i%tenants], Deadline: -1, Cost: cost(800_000)})
			tickets[i] = effects[0].Decision.Ticket
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		k := i * 7919 % waiting
		effects, err := pool.Acquire(now, broker.Ask{Source: "eval", Tenant: names[k%tenants], Deadline: -1, Cost: cost(10_000), Ticket: tickets[k]})
		if err != nil || effects[0].Decision.Verdict != wire.Defer {
			b.Fatalf("not deferred: %v %+v", err, effects)
		}
	}
}
