package broker_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"quotabroker/broker"
	"quotabroker/wire"
)

// A million tenants, one small request each over ten minutes, then two minutes of
// nothing: what they took is free again, and no tenant is remembered.
func TestMillionTenantsLeaveNothingBehind(t *testing.T) {
	pool, now := benchPool(1_000_000_000)
	before := heap()
	const tenants, step = 1_000_000, 600 * time.Microsecond
	peak := int64(0)
	for i := range tenants {
		now = now.Add(step)
		tenant := fmt.Sprintf("tenant-%d", i)
		effects, err := pool.Acquire(now, broker.Ask{Source: "api", Tenant: tenant, Deadline: -1, Cost: cost(1)})
		if err != nil || effects[0].Decision.Verdict != wire.Grant {
			t.Fatalf("tenant %d: %v %+v", i, err, effects)
		}
		s := wire.SettleRequest{Lease: effects[0].Decision.Lease, Outcome: wire.OutcomeOK}
		if _, _, err := pool.Settle(now, "api", s); err != nil {
			t.Fatal(err)
		}
		if i%250_000 == 249_999 {
			peak = max(peak, heap()-before)
		}
	}
	if peak > 64<<20 {
		t.Errorf("at its peak the pool held %d MiB more than before; it may hold 64", peak>>20)
	}
	for end := now.Add(2 * time.Minute); ; {
		at, ok := pool.Next()
		if !ok || at.After(end) {
			break
		}
		now = at
		pool.Tick(now)
	}
	if _, ok := pool.Next(); ok {
		t.Error("two minutes after the last request the pool still has something to forget")
	}
	runtime.KeepAlive(pool)
}

// 100 000 waiting requests of 100 000 tenants stay within 100 MiB.
func TestWaitingRequestsFitInMemory(t *testing.T) {
	pool, now := benchPool(1_000_000)
	before := heap()
	const waiting = 100_000
	for i := range waiting {
		a := broker.Ask{
			Source: "eval", Tenant: fmt.Sprintf("tenant-%d", i), RequestID: fmt.Sprintf("request-%d", i),
			Deadline: -1, Wait: time.Hour, Cost: cost(10_000),
		}
		if _, err := pool.Acquire(now, a); err != nil {
			t.Fatal(err)
		}
	}
	took := heap() - before
	var held int64
	for _, c := range pool.Status(now).Classes {
		held += c.WaitingRequests
	}
	if held < waiting-100 {
		t.Fatalf("%d are waiting", held)
	}
	if took > 100<<20 {
		t.Errorf("%d waiting requests took %d MiB; they may take 100", held, took>>20)
	}
	t.Logf("%d waiting requests took %d MiB", held, took>>20)
	runtime.KeepAlive(pool)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
