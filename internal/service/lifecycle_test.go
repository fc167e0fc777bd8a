package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/broker"
	"quotabroker/wire"
)

// A drain runs in real time: giving endpoints up uses timers of nats.go that
// the whole process shares.
func TestDrain(t *testing.T) {
	r := newRig(t, oneClass(1000))
	lease := r.acquire("api", `{"input_tokens":1000}`).Lease
	waits := make(chan wire.Decision)
	go func() { waits <- r.acquire("eval", `{"input_tokens":1,"wait_ms":60000}`) }()
	for r.status().Classes[0].WaitingRequests == 0 {
	}
	drained := make(chan error)
	go func() { drained <- r.svc.Drain(t.Context()) }()
	if d := <-waits; d.Cause != wire.CauseDraining {
		t.Errorf("one that waited: %+v", d)
	}
	if d := r.acquire("api", `{"input_tokens":1}`); d.Cause != wire.CauseDraining {
		t.Errorf("one that asks: %+v", d)
	}
	if err := r.svc.Ready(t.Context()); err == nil || r.svc.Live() != nil {
		t.Errorf("ready: %v; live: %v", err, r.svc.Live())
	}
	r.ask(wire.VerbRenew, "api", fmt.Sprintf(`{"lease":%q}`, lease))
	r.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"ok"}`, lease))
	if err := <-drained; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.conn.RequestWithContext(ctx, "quota.v1.acquire.api.default", []byte(`{}`)); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after the end: %v, want no responders", err)
	}
	if err := r.svc.Drain(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("drained again: %v", err)
	}
	select {
	case err := <-r.svc.Err():
		t.Errorf("an end that was wanted is called a failure: %v", err)
	default:
	}
}

func TestDrainLimit(t *testing.T) {
	r := newRig(t, oneClass(1000))
	r.acquire("api", `{"input_tokens":1000}`)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the limit has passed"))
	err := r.svc.Drain(ctx)
	if err == nil || !strings.Contains(err.Error(), "pool default still has leases in flight: the limit has passed") {
		t.Errorf("got %v", err)
	}
}

// Whoever waits when the service is closed is told.
func TestClose(t *testing.T) {
	r := newRig(t, oneClass(1000))
	r.acquire("api", `{"input_tokens":1000}`)
	waits := make(chan *nats.Msg)
	go func() { waits <- r.ask(wire.VerbAcquire, "eval", `{"input_tokens":1,"wait_ms":60000}`) }()
	for r.status().Classes[0].WaitingRequests == 0 {
	}
	r.svc.Close()
	failed(t, <-waits, wire.CodeUnavailable)
	r.svc.Close()
	if _, err := r.svc.Status(t.Context(), "default"); err == nil || r.svc.Live() == nil || r.svc.Ready(t.Context()) == nil {
		t.Error("a closed service has a status, or says that it is well")
	}
}

func TestConnectionClosed(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		r.svc.opts.Conn.Close()
		select {
		case err := <-r.svc.Err():
			if err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("got %v", err)
			}
		case <-time.After(time.Second):
			t.Error("nobody is told")
		}
		if r.svc.Ready(t.Context()) == nil || r.svc.Live() != nil {
			t.Errorf("ready: %v; live: %v", r.svc.Ready(t.Context()), r.svc.Live())
		}
	})
}

func TestReload(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		lease := r.acquire("api", `{"input_tokens":1000}`).Lease
		waits := make(chan wire.Decision)
		go func() { waits <- r.acquire("eval", `{"input_tokens":500,"wait_ms":60000}`) }()
		synctest.Wait()

		bad := oneClass(2000)
		bad.Classes[0].Share--
		err := r.svc.Reload(t.Context(), Config{Pools: []broker.Config{bad}, Hash: "h2"})
		if err == nil || !strings.Contains(err.Error(), "pool default: classes: the shares sum to") {
			t.Errorf("a bad configuration: %v", err)
		}
		if c := r.svc.Counts(); c.ReloadsFailed != 1 || !c.ReloadFailed || c.Reloads != 0 || r.status().ConfigHash != "h1" {
			t.Errorf("after a bad configuration: %+v", c)
		}

		more := oneClass(2000)
		more.Sources["judge"] = "only"
		delete(more.Sources, "api")
		if err := r.svc.Reload(t.Context(), Config{Pools: []broker.Config{more}, Hash: "h2"}); err != nil {
			t.Fatal(err)
		}
		if d := <-waits; d.Verdict != wire.Grant {
			t.Errorf("one that waited: %+v", d)
		}
		if d := r.acquire("judge", `{"input_tokens":500}`); d.Verdict != wire.Grant {
			t.Errorf("a new source: %+v", d)
		}
		failed(t, r.ask(wire.VerbAcquire, "api", ask100), wire.CodeUnknownSource)
		s := r.status()
		if s.ConfigHash != "h2" || s.Limits[0].Quota != 2000 || s.Limits[0].Used != 2000 || s.Leases.InFlight != 3 || s.Classes[0].Grants != 3 {
			t.Errorf("after the reload: %+v", s)
		}
		if c := r.svc.Counts(); c.ReloadsFailed != 1 || c.ReloadFailed || c.Reloads != 1 {
			t.Errorf("after the reload: %+v", c)
		}
		_ = lease
	})
}

// A reload may add pools and take some away, whose leases may end first.
func TestReloadPools(t *testing.T) {
	r := newRig(t, oneClass(1000))
	lease := r.acquire("api", `{"input_tokens":1000}`).Lease
	other := oneClass(5000)
	other.Pool = "other"
	if err := r.svc.Reload(t.Context(), Config{Pools: []broker.Config{other}}); err != nil {
		t.Fatal(err)
	}
	m := r.askOn(r.conn, "quota.v1.acquire.api.other", `{"input_tokens":5000}`)
	granted := r.decision(m)
	if granted.Verdict != wire.Grant || granted.Pool != "other" {
		t.Errorf("the new pool: %+v", granted)
	}
	// No two pools have the same ids: a settlement that goes astray settles nothing.
	failed(t, r.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"unsent"}`, granted.Lease)), wire.CodeUnknownLease)
	if d := r.acquire("api", ask100); d.Cause != wire.CauseDraining {
		t.Errorf("the old pool: %+v", d)
	}
	r.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"ok"}`, lease))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		m, err := r.conn.RequestWithContext(ctx, "quota.v1.acquire.api.default", []byte(ask100))
		if errors.Is(err, nats.ErrNoResponders) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get("Nats-Service-Error-Code") == "" {
			if d := r.decision(m); d.Cause != wire.CauseDraining {
				t.Fatalf("the old pool: %+v", d)
			}
		}
	}
	if all := r.svc.Statuses(ctx); len(all) != 1 || all[0].Pool != "other" {
		t.Errorf("got %+v", all)
	}
}

// A loop that is stuck makes the service unwell, and it recovers by itself.
func TestStuck(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		p := r.svc.pools()["default"]
		go p.call(t.Context(), func(*loop, time.Time) { time.Sleep(10 * time.Second) }) //nolint:errcheck // it is the loop that counts
		synctest.Wait()
		for _, well := range []bool{true, false, true} {
			if err := r.svc.Live(); (err == nil) != well {
				t.Errorf("at %s: live: %v", time.Since(p.origin), err)
			}
			if err := r.svc.Ready(t.Context()); (err == nil) != well {
				t.Errorf("at %s: ready: %v", time.Since(p.origin), err)
			}
			time.Sleep(6 * time.Second)
		}
	})
}

// What settlements teach reaches whoever learns, once.
func TestLearn(t *testing.T) {
	var learned []Lesson
	bubble(t, oneClass(100_000), func(t *testing.T, r *rig) {
		settle := func(lease wire.LeaseID, outcome string) {
			r.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":%q,"usage":{"input_tokens":120,"output_tokens":30}}`, lease, outcome))
		}
		body := `{"model":"m1","kind":"judge","input_tokens":100,"max_output_tokens":50}`
		first := r.acquire("api", body)
		settle(first.Lease, "ok")
		settle(first.Lease, "ok")
		settle(r.acquire("api", body).Lease, "failed")
		// One that is held, and renewed over and over.
		long := r.acquire("api", body).Lease
		for range 60 {
			time.Sleep(time.Minute)
			r.ask(wire.VerbRenew, "api", fmt.Sprintf(`{"lease":%q}`, long))
			r.acquire("api", body)
		}
		settle(long, "ok")
		want := Lesson{
			Job: Job{"default", "api"}, Model: "m1", Kind: "judge", Estimated: first.Cost, InputRatio: 1,
			Used: wire.Usage{InputTokens: 120, OutputTokens: 30},
		}
		if len(learned) != 2 || learned[0] != want || learned[1] != want {
			t.Errorf("learned %+v", learned)
		}
		if err := r.svc.pools()["default"].call(t.Context(), func(l *loop, _ time.Time) {
			if n := len(l.lessons.young) + len(l.lessons.old); n > 40 {
				t.Errorf("%d leases are remembered, of 60 that nobody settled", n)
			}
		}); err != nil {
			t.Error(err)
		}
	}, func(o *Options) { o.Learn = func(l Lesson) { learned = append(learned, l) } })
}
