package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/classes"
	"quotabroker/wire"
)

// QUE-03: twenty thousand ask at once; as many as may wait
// do, the others are told at once that the queue is full, and the other class is
// not disturbed.
func TestQueueFull(t *testing.T) {
	cfg := tpm(600_000)
	for i := range cfg.Classes {
		cfg.Classes[i].MaxWaiting, cfg.Classes[i].Pace = 1000, 0
	}
	bubble(t, cfg, func(t *testing.T, r *rig) {
		if d := r.acquire("eval", `{"input_tokens":520000}`); d.Verdict != wire.Grant { // what is left is held
			t.Fatalf("got %+v", d)
		}
		var full, other atomic.Int64
		start := time.Now()
		for range 4 {
			c := r.connect()
			inbox := c.NewInbox()
			if _, err := c.Subscribe(inbox, func(m *nats.Msg) {
				d := r.decision(m)
				if d.Cause == wire.CauseQueueFull && d.RetryAfterMS > 0 && time.Since(start) == 0 {
					full.Add(1)
				} else {
					other.Add(1)
				}
			}); err != nil {
				t.Fatal(err)
			}
			for range 5000 {
				if err := c.PublishRequest("quota.v1.acquire.eval.default", inbox, []byte(`{"input_tokens":50000,"wait_ms":30000}`)); err != nil {
					t.Fatal(err)
				}
			}
		}
		synctest.Wait()
		s := r.status()
		if full.Load() != 19_000 || other.Load() != 0 || s.Classes[2].WaitingRequests != 1000 {
			t.Errorf("%d are told that it is full, %d something else, %d wait", full.Load(), other.Load(), s.Classes[2].WaitingRequests)
		}
		if d := r.acquire("api", `{"input_tokens":1000}`); d.Verdict != wire.Grant || d.WaitedMS != 0 {
			t.Errorf("the other class: %+v", d)
		}
		time.Sleep(31 * time.Second) // every hold has run out
		if other.Load() != 1000 || waiting(t, r) != 0 {
			t.Errorf("%d of 1000 were answered, %d are kept", other.Load(), waiting(t, r))
		}
	})
}

// waiting returns how many askers the loop keeps.
func waiting(t *testing.T, r *rig) (n int) {
	t.Helper()
	err := r.svc.pools()["default"].call(t.Context(), func(l *loop, _ time.Time) { n = len(l.askers.slots) - len(l.askers.free) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// LEA-03: what producers that died held comes back, whatever others do meanwhile.
func TestProducersDie(t *testing.T) {
	cfg := oneClass(1_000_000)
	cfg.Concurrency = 100
	bubble(t, cfg, func(t *testing.T, r *rig) {
		for range 100 {
			c := r.connect()
			r.askOn(c, "quota.v1.acquire.api.default", `{"input_tokens":1,"ttl_ms":30000}`)
			c.Close()
		}
		if s := r.status(); s.Leases.InFlight != 100 {
			t.Fatalf("got %+v", s.Leases)
		}
		for range 310 {
			time.Sleep(100 * time.Millisecond)
			r.acquire("eval", `{"input_tokens":1,"tenant":"other","ttl_ms":100}`)
		}
		time.Sleep(time.Second)
		if s := r.status(); s.Leases.InFlight != 0 || s.Classes[0].Expired < 100 {
			t.Errorf("got %+v", s.Leases)
		}
	})
}

// A held ask that is cancelled is answered, and nobody is kept.
func TestCancelHeld(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		r.acquire("api", `{"input_tokens":1000}`)
		held := make(chan wire.Decision)
		go func() { held <- r.acquire("api", `{"request_id":"x","input_tokens":1,"wait_ms":60000}`) }()
		synctest.Wait()
		if m := r.ask(wire.VerbCancel, "api", `{"request_id":"x"}`); string(m.Data) != `{"cancelled":true}` {
			t.Errorf("got %s", m.Data)
		}
		if d := <-held; d.Verdict == wire.Grant || waiting(t, r) != 0 {
			t.Errorf("got %+v, %d are kept", d, waiting(t, r))
		}
	})
}

// RPC-07: the largest status there can be fits into half a message.
func TestLargestStatus(t *testing.T) {
	cfg := tpm(1_000_000_000)
	cfg.Classes = nil
	for i := range classes.MaxClasses {
		cfg.Classes = append(cfg.Classes, classes.Class{Name: strings.Repeat("c", 30) + fmt.Sprintf("%02d", i), Share: classes.Whole / classes.MaxClasses})
	}
	cfg.Classes[0].Share += classes.Whole - classes.MaxClasses*cfg.Classes[0].Share
	cfg.Sources = map[string]string{"api": cfg.Classes[0].Name}
	for i := 1; i < classes.MaxLimits-1; i++ {
		cfg.Limits = append(cfg.Limits, classes.Limit{Metric: classes.Tokens, Amount: 1_000_000_000, Span: time.Minute + time.Duration(i)*time.Second})
	}
	cfg.Concurrency = 100_000
	bubble(t, cfg, func(t *testing.T, r *rig) {
		for i := range 60 {
			tenant, err := json.Marshal(strings.Repeat("\x01", 254) + fmt.Sprintf("%02d", i))
			if err != nil {
				t.Fatal(err)
			}
			r.acquire("api", fmt.Sprintf(`{"input_tokens":1000,"tenant":%s}`, tenant))
		}
		m := r.ask(wire.VerbStatus, "api", `{}`)
		var s wire.Status
		if err := json.Unmarshal(m.Data, &s); err != nil || len(s.Tenants) != 20 || len(s.Classes) != classes.MaxClasses || len(s.Limits) != classes.MaxLimits {
			t.Errorf("%v: got %+v", err, s)
		}
		if len(m.Data) > 512<<10 {
			t.Errorf("a status is %d bytes long", len(m.Data))
		}
		if m := r.ask(wire.VerbExplain, "api", `{"input_tokens":1}`); len(m.Data) > 512<<10 || m.Header.Get("Nats-Service-Error-Code") != "" {
			t.Errorf("an explanation is %d bytes long", len(m.Data))
		}
	})
}
