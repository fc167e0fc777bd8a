package service

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"quotabroker/classes"
	"quotabroker/wire"
)

func TestSettleRenewCancel(t *testing.T) {
	bubble(t, oneClass(10_000), func(t *testing.T, r *rig) {
		first, second := r.acquire("api", `{"input_tokens":900}`).Lease, r.acquire("api", `{"input_tokens":100}`).Lease
		for _, step := range []struct {
			verb       wire.Verb
			source     string
			body, want string
		}{
			{wire.VerbRenew, "api", fmt.Sprintf(`{"lease":%q,"ttl_ms":5000}`, first), fmt.Sprintf(`{"lease":%q,"ttl_ms":5000}`, first)},
			{
				wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"ok","usage":{"input_tokens":300,"output_tokens":200}}`, first),
				fmt.Sprintf(`{"settled":true,"lease":%q,"charged":{"requests":1,"input_tokens":300,"output_tokens":200,"tokens":500,"method":"counted"},"delta_tokens":-400}`, first),
			},
			{
				wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"ok","usage":{"input_tokens":300,"output_tokens":200}}`, first),
				fmt.Sprintf(`{"settled":true,"lease":%q,"charged":{"requests":1,"input_tokens":300,"output_tokens":200,"tokens":500,"method":"counted"},"delta_tokens":-400}`, first),
			},
			{wire.VerbCancel, "eval", fmt.Sprintf(`{"lease":%q}`, second), `{"cancelled":false}`},
			{wire.VerbCancel, "api", fmt.Sprintf(`{"lease":%q}`, second), `{"cancelled":true}`},
			{wire.VerbCancel, "api", fmt.Sprintf(`{"lease":%q}`, second), `{"cancelled":false}`},
		} {
			if m := r.ask(step.verb, step.source, step.body); string(m.Data) != step.want {
				t.Errorf("%s %s: got  %s\nwant %s", step.verb, step.body, m.Data, step.want)
			}
		}
		if used := r.used(); used != 500 {
			t.Errorf("%d tokens are charged, want 500", used)
		}
	})
}

func TestEstimate(t *testing.T) {
	bubble(t, oneClass(10_000), func(t *testing.T, r *rig) {
		m := r.ask(wire.VerbEstimate, "api", `{"model":"m1","request":{"messages":[]},"max_output_tokens":7}`)
		want := `{"cost":{"requests":1,"input_tokens":3,"output_tokens":7,"tokens":10,"method":"fallback"},` +
			`"model_known":true,"encoding":"quarter","learned":{"input_ratio":1,"output_p85":0,"samples":0}}`
		if string(m.Data) != want {
			t.Errorf("got  %s\nwant %s", m.Data, want)
		}
		if used := r.used(); used != 0 {
			t.Errorf("an estimate charged %d tokens", used)
		}
	})
}

func TestExplain(t *testing.T) {
	bubble(t, oneClass(10_000), func(t *testing.T, r *rig) {
		var e wire.Explanation
		m := r.ask(wire.VerbExplain, "api", `{"input_tokens":100}`)
		if err := json.Unmarshal(m.Data, &e); err != nil {
			t.Fatal(err)
		}
		if e.Decision.Verdict != wire.Grant || e.Why == "" || len(e.Limits) != 1 || len(e.Classes) != 1 {
			t.Errorf("got %s", m.Data)
		}
		if used := r.used(); used != 0 {
			t.Errorf("an explanation charged %d tokens", used)
		}
	})
}

func TestStatus(t *testing.T) {
	bubble(t, tpm(60_000), func(t *testing.T, r *rig) {
		r.acquire("api", `{"input_tokens":100,"tenant":"acme"}`)
		time.Sleep(90 * time.Second)
		r.acquire("eval", `{"input_tokens":50}`)
		s := r.status()
		if s.Pool != "default" || s.Version != "1.2.3" || s.Leader != "a" || s.ConfigHash != "h1" || s.Epoch != 7 || s.UptimeMS != 90_000 {
			t.Errorf("got %+v", s)
		}
		if s.Limits[0].Used != 50 || s.Leases.InFlight != 2 || len(s.Classes) != 3 || s.Classes[0].Grants != 1 {
			t.Errorf("got %+v", s)
		}
		// An operator is no source.
		m := r.ask(wire.VerbStatus, "top", `{}`)
		if m.Header.Get(micro.ErrorCodeHeader) != "" {
			t.Errorf("an operator was refused: %s", m.Data)
		}
	})
}

// A body is counted by the estimator; a large one too, past the handler.
func TestBodies(t *testing.T) {
	bubble(t, oneClass(10_000_000), func(t *testing.T, r *rig) {
		for _, size := range []int{100, inlineBytes + 1, 500_000} {
			text := make([]byte, size)
			for i := range text {
				text[i] = 'x'
			}
			body := fmt.Sprintf(`{"input":%q}`, text)
			d := r.acquire("api", fmt.Sprintf(`{"model":"m","request":%s,"max_output_tokens":10}`, body))
			if d.Verdict != wire.Grant || d.Cost.InputTokens != int64(len(body)/4) || d.Cost.Method != wire.MethodFallback {
				t.Errorf("%d bytes: got %+v", size, d)
			}
		}
		r.acquire("api", `{"model":"llama","request":{}}`)
		r.acquire("api", `{"request":{}}`)
		r.acquire("api", `{"model":"llama","input_tokens":1}`) // nothing was to be known
		if n := r.svc.Counts().UnknownModels; n != 2 {
			t.Errorf("%d unknown models were counted, want 2", n)
		}
	})
}

// The wait and the deadline of a held ask, to the millisecond.
func TestHeldAsk(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		r.acquire("api", `{"input_tokens":1000}`)
		start := time.Now()
		d := r.acquire("api", `{"input_tokens":400,"wait_ms":2500}`)
		if took := time.Since(start); d.Verdict != wire.Defer || took != 2500*time.Millisecond {
			t.Errorf("after %s: %+v", took, d)
		}
		d = r.acquire("api", fmt.Sprintf(`{"input_tokens":400,"wait_ms":70000,"ticket":%q}`, d.Ticket))
		took := time.Since(start)
		if d.Verdict != wire.Grant || took < 60*time.Second || took > 61*time.Second || d.WaitedMS != took.Milliseconds() {
			t.Errorf("after %s: %+v", took, d)
		}
	})
}

// What waits is answered when something makes room, not at the next look.
func TestSettlementAnswersTheNext(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		lease := r.acquire("api", `{"input_tokens":1000}`).Lease
		start, waits := time.Now(), make(chan wire.Decision)
		go func() { waits <- r.acquire("eval", `{"input_tokens":400,"wait_ms":30000}`) }()
		time.Sleep(time.Second)
		r.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"unsent"}`, lease))
		if d := <-waits; d.Verdict != wire.Grant || time.Since(start) != time.Second {
			t.Errorf("after %s: %+v", time.Since(start), d)
		}
	})
}

func TestRequestIDIsIdempotent(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		first := r.acquire("api", `{"request_id":"x","input_tokens":400}`)
		again := r.acquire("api", `{"request_id":"x","input_tokens":400}`)
		other := r.acquire("eval", `{"request_id":"x","input_tokens":400}`)
		if first.Lease != again.Lease || first.Lease == other.Lease || r.used() != 800 {
			t.Errorf("got %s, %s, %s with %d charged", first.Lease, again.Lease, other.Lease, r.used())
		}
	})
}

// RPC-09: names that are no subject tokens work, and none sees another's state.
func TestTenantNames(t *testing.T) {
	cfg := oneClass(100_000)
	cfg.TenantLimits = []classes.Limit{{Metric: classes.Tokens, Amount: 100, Span: time.Minute}}
	bubble(t, cfg, func(t *testing.T, r *rig) {
		for _, tenant := range []string{"acme.eu", "user@x.com", "a b", "a:b", "ü", "*", ">", "a..b", "A", "a"} {
			body := fmt.Sprintf(`{"input_tokens":100,"tenant":%q}`, tenant)
			if d := r.acquire("api", body); d.Verdict != wire.Grant {
				t.Errorf("%q: got %+v", tenant, d)
			}
			if d := r.acquire("api", body); d.Cause != wire.CauseTenantLimit {
				t.Errorf("%q again: got %+v", tenant, d)
			}
		}
	})
}

func TestDiscovery(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		r.acquire("api", `{"input_tokens":1}`)
		var info micro.Info
		if err := json.Unmarshal(r.askOn(r.conn, "$SRV.INFO.quotabroker", "").Data, &info); err != nil {
			t.Fatal(err)
		}
		if info.Name != "quotabroker" || info.Version != "1.2.3" || info.Metadata["pool"] != "default" || len(info.Endpoints) != len(wire.Verbs()) {
			t.Errorf("got %+v", info)
		}
		for _, e := range info.Endpoints {
			request, response := wire.SchemaFor(wire.Verb(e.Name))
			if e.Subject != "quota.v1."+e.Name+".*.default" || e.Metadata["schema_request"] != request || e.Metadata["schema_response"] != response {
				t.Errorf("got %+v", e)
			}
		}
		var stats micro.Stats
		if err := json.Unmarshal(r.askOn(r.conn, "$SRV.STATS.quotabroker", "").Data, &stats); err != nil {
			t.Fatal(err)
		}
		if stats.Endpoints[0].NumRequests != 1 {
			t.Errorf("got %+v", stats.Endpoints[0])
		}
	})
}
