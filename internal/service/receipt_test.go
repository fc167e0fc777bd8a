package service

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/wire"
)

const ask100 = `{"input_tokens":100}`

// A grant whose asker has gone is taken back, and its tokens go to the next.
func TestAbandoned(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		lease := r.acquire("api", `{"input_tokens":1000}`).Lease
		dies := r.connect()
		if err := dies.PublishRequest("quota.v1.acquire.eval.default", dies.NewInbox(), []byte(`{"input_tokens":600,"wait_ms":60000}`)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		next := make(chan wire.Decision)
		go func() { next <- r.acquire("eval", `{"input_tokens":700,"wait_ms":60000}`) }()
		synctest.Wait()
		dies.Close()
		r.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"unsent"}`, lease))
		if d := <-next; d.Verdict != wire.Grant {
			t.Errorf("got %+v", d)
		}
		s := r.status()
		if n := s.Classes[0].Abandoned; n != 1 || r.svc.Counts().Abandoned != 1 || s.Limits[0].Used != 700 || s.Leases.InFlight != 1 {
			t.Errorf("%d abandoned, %+v", n, s)
		}
	})
}

// The whole way of one that dies between its ask and its grant, when it confirms:
// the first message of the kind that comes decides.
func TestConfirm(t *testing.T) {
	for _, c := range []struct {
		name     string
		do       func(*rig, *nats.Msg)
		inFlight int64
	}{
		{"in time", func(r *rig, m *nats.Msg) { respond(r, m.Reply) }, 1},
		{"twice", func(r *rig, m *nats.Msg) { respond(r, m.Reply); respond(r, m.Reply) }, 1},
		{"not at all", func(*rig, *nats.Msg) {}, 0},
		{"with another seal", func(r *rig, m *nats.Msg) { respond(r, m.Reply+"0") }, 0},
		{"without its seal", func(r *rig, m *nats.Msg) { respond(r, m.Reply[:strings.LastIndexByte(m.Reply, '_')]) }, 0},
		{"by a renewal", func(r *rig, m *nats.Msg) {
			r.ask(wire.VerbRenew, "api", fmt.Sprintf(`{"lease":%q}`, r.decision(m).Lease))
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
				m := r.ask(wire.VerbAcquire, "api", `{"input_tokens":100,"confirm":true}`)
				time.Sleep(1900 * time.Millisecond)
				c.do(r, m)
				synctest.Wait()
				if s := r.status(); s.Leases.InFlight != 1 || s.Leases.Unconfirmed != 1-c.inFlight {
					t.Errorf("before the time: %+v", s.Leases)
				}
				time.Sleep(200 * time.Millisecond)
				if s := r.status(); s.Leases.InFlight != c.inFlight || s.Limits[0].Used != 100*c.inFlight || s.Classes[0].Abandoned != uint64(1-c.inFlight) {
					t.Errorf("after the time: %+v with %d tokens charged", s.Leases, s.Limits[0].Used)
				}
			})
		})
	}
}

func respond(r *rig, subject string) {
	r.t.Helper()
	if err := r.conn.Publish(subject, nil); err != nil {
		r.t.Fatal(err)
	}
}

// A producer cannot say of another's grant that it reached nobody.
func TestForgedReceipt(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		mine, other := r.ask(wire.VerbAcquire, "eval", ask100), r.ask(wire.VerbAcquire, "api", ask100)
		inbox := mine.Reply[:strings.LastIndexByte(mine.Reply, '.')+1]
		seal := mine.Reply[strings.LastIndexByte(mine.Reply, '_'):]
		for _, subject := range []string{inbox + r.decision(other).Lease.String() + seal, inbox + "_", inbox + "x" + seal, inbox + "7-0" + seal} {
			forged := nats.NewMsg(subject)
			forged.Header.Set("Status", "503")
			if err := r.conn.PublishMsg(forged); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if s := r.status(); s.Leases.InFlight != 2 || s.Limits[0].Used != 200 {
			t.Errorf("%+v with %d tokens charged", s.Leases, s.Limits[0].Used)
		}
	})
}

// A confirmation that came in time counts, however late the loop gets to it.
func TestConfirmedWhileTheLoopWasStuck(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		m := r.ask(wire.VerbAcquire, "api", `{"input_tokens":100,"confirm":true}`)
		p := r.svc.pools()["default"]
		go p.call(t.Context(), func(*loop, time.Time) { time.Sleep(4 * time.Second) }) //nolint:errcheck // it is the loop that counts
		synctest.Wait()
		time.Sleep(time.Second)
		respond(r, m.Reply)
		time.Sleep(5 * time.Second)
		if s := r.status(); s.Leases.InFlight != 1 || s.Limits[0].Used != 100 {
			t.Errorf("%+v with %d tokens charged", s.Leases, s.Limits[0].Used)
		}
	})
}

// What the asks spend in the broker's own queues counts.
func TestStale(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		p := r.svc.pools()["default"]
		go p.call(t.Context(), func(*loop, time.Time) { time.Sleep(4 * time.Second) }) //nolint:errcheck // it is the loop that counts
		synctest.Wait()
		start := time.Now()
		var all sync.WaitGroup
		for body, want := range map[string]wire.Cause{
			`{"input_tokens":100,"deadline_ms":3000}`: wire.CauseDeadline,
			`{"input_tokens":100,"deadline_ms":0}`:    wire.CauseDeadline,
			`{"input_tokens":100,"deadline_ms":5000}`: wire.CauseNone,
		} {
			all.Go(func() {
				if d := r.acquire("api", body); d.Cause != want || d.Verdict == wire.Defer {
					t.Errorf("%s: got %+v, want the cause %q", body, d, want)
				}
			})
		}
		all.Wait()
		if n := r.svc.Counts().StaleDropped; n != 2 || time.Since(start) != 4*time.Second || r.used() != 100 {
			t.Errorf("%d stale after %s, %d tokens charged", n, time.Since(start), r.used())
		}
		// A hold that ran out in the queue is over.
		r.acquire("api", `{"input_tokens":900}`)
		go p.call(t.Context(), func(*loop, time.Time) { time.Sleep(4 * time.Second) }) //nolint:errcheck // it is the loop that counts
		synctest.Wait()
		start = time.Now()
		if d := r.acquire("api", `{"input_tokens":100,"wait_ms":3000}`); d.Verdict != wire.Defer || time.Since(start) != 4*time.Second {
			t.Errorf("after %s: %+v", time.Since(start), d)
		}
	})
}

// RPC-03: a late ask of one that asks no more is granted to nobody, and taken back.
func TestLateAsk(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		inbox := r.conn.NewInbox()
		if _, err := r.conn.SubscribeSync(inbox); err != nil { // it listens, but nobody reads
			t.Fatal(err)
		}
		if err := r.conn.PublishRequest("quota.v1.acquire.api.default", inbox, []byte(`{"input_tokens":100,"deadline_ms":500,"confirm":true}`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if s := r.status(); s.Leases.InFlight != 0 || s.Limits[0].Used != 0 {
			t.Errorf("%+v with %d tokens charged", s.Leases, s.Limits[0].Used)
		}
	})
}
