package service

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"quotabroker/wire"
)

// The canary: NATS, the service and a producer work in a bubble, twice in one
// process. If it fails after an upgrade of nats.go, look for timers that are
// shared by the process.
func TestBubble(t *testing.T) {
	for range 2 {
		bubble(t, oneClass(10_000), func(t *testing.T, r *rig) {
			d := r.acquire("api", `{"input_tokens":100}`)
			if d.Verdict != wire.Grant {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// LEA-01: everybody asks at the same moment; exactly what there is is granted.
func TestConcurrentAsks(t *testing.T) {
	bubble(t, oneClass(10_000), func(t *testing.T, r *rig) {
		var granted atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			c := r.connect()
			for range 50 {
				all.Go(func() {
					m := r.askOn(c, "quota.v1.acquire.api.default", `{"input_tokens":100}`)
					if r.decision(m).Verdict == wire.Grant {
						granted.Add(1)
					}
				})
			}
		}
		all.Wait()
		if granted.Load() != 100 || r.used() != 10_000 {
			t.Errorf("granted %d asks, charged %d; want 100 and 10000", granted.Load(), r.used())
		}
	})
}

func TestGrantWire(t *testing.T) {
	bubble(t, tpm(60_000), func(t *testing.T, r *rig) {
		m := r.ask(wire.VerbAcquire, "eval", `{"input_tokens":812,"max_output_tokens":600}`)
		want := `{"decision":"grant","lease":"7-%x","class":"batch","pool":"default","ttl_ms":120000,` +
			`"cost":{"requests":1,"input_tokens":812,"output_tokens":600,"tokens":1412,"method":"counted"},` +
			`"borrowed":false,"waited_ms":0,"epoch":7}`
		if want = fmt.Sprintf(want, r.decision(m).Lease.N); string(m.Data) != want {
			t.Errorf("got  %s\nwant %s", m.Data, want)
		}
		if m.Reply == "" {
			t.Error("a grant has no reply subject")
		}
	})
}
