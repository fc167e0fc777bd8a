package service

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"quotabroker/broker"
	"quotabroker/classes"
	"quotabroker/wire"
)

// Every cause of protocol §2 as a producer sees it. Each case is a pool, what
// happens in it first, and the ask whose answer has the cause.
func TestCauses(t *testing.T) {
	share := func(p classes.Portion) *classes.Portion { return &p }
	grant := func(r *rig, source, body string) wire.Decision {
		r.t.Helper()
		d := r.acquire(source, body)
		if d.Verdict != wire.Grant {
			r.t.Fatalf("%s: got %+v, want a grant", body, d)
		}
		return d
	}
	for _, c := range []struct {
		cause   wire.Cause
		verdict wire.Verdict
		cfg     broker.Config
		change  func(*broker.Config)
		before  func(*rig)
		source  string
		body    string
	}{
		{
			cause: wire.CauseQuota, verdict: wire.Defer, cfg: oneClass(1000),
			before: func(r *rig) { grant(r, "api", `{"input_tokens":950}`) },
			body:   `{"input_tokens":100}`,
		}, {
			cause: wire.CauseReserved, verdict: wire.Defer, cfg: tpm(60_000),
			change: func(c *broker.Config) { c.Classes[2].Pace = 0 },
			before: func(r *rig) { grant(r, "eval", `{"input_tokens":50000}`) },
			source: "eval", body: `{"input_tokens":8000}`,
		}, {
			cause: wire.CauseOrder, verdict: wire.Defer, cfg: oneClass(1000),
			before: func(r *rig) {
				grant(r, "api", `{"input_tokens":500}`)
				r.acquire("api", `{"input_tokens":600}`)
			},
			body: `{"input_tokens":100}`,
		}, {
			cause: wire.CausePace, verdict: wire.Defer, cfg: tpm(60_000),
			before: func(r *rig) { grant(r, "eval", `{"input_tokens":10000}`) },
			source: "eval", body: `{"input_tokens":1000}`,
		}, {
			cause: wire.CauseTenantLimit, verdict: wire.Defer, cfg: oneClass(1000),
			change: func(c *broker.Config) { c.Concurrency, c.TenantShare = 10, share(10*classes.Percent) },
			before: func(r *rig) { grant(r, "api", `{"input_tokens":1,"tenant":"acme"}`) },
			body:   `{"input_tokens":1,"tenant":"acme"}`,
		}, {
			cause: wire.CauseTenantLimit, verdict: wire.Refuse, cfg: oneClass(1000),
			change: func(c *broker.Config) {
				c.Classes[0].MaxWait = 5 * time.Second
				c.TenantLimits = []classes.Limit{{Metric: classes.Tokens, Amount: 100, Span: time.Minute}}
			},
			before: func(r *rig) { grant(r, "api", `{"input_tokens":100,"tenant":"acme"}`) },
			body:   `{"input_tokens":1,"tenant":"acme"}`,
		}, {
			cause: wire.CauseConcurrency, verdict: wire.Defer, cfg: oneClass(1000),
			change: func(c *broker.Config) { c.Concurrency = 1 },
			before: func(r *rig) { grant(r, "api", `{"input_tokens":1}`) },
			body:   `{"input_tokens":1}`,
		}, {
			cause: wire.CauseProviderPause, verdict: wire.Defer, cfg: oneClass(1000),
			before: func(r *rig) {
				d := grant(r, "api", `{"input_tokens":1}`)
				r.ask(wire.VerbSettle, "api", fmt.Sprintf(
					`{"lease":%q,"outcome":"throttled","provider":{"status":429,"retry_after_ms":10000}}`, d.Lease))
			},
			body: `{"input_tokens":1}`,
		}, {
			cause: wire.CauseClassSaturated, verdict: wire.Refuse, cfg: oneClass(1000),
			change: func(c *broker.Config) { c.Classes[0].MaxWait = 5 * time.Second },
			before: func(r *rig) { grant(r, "api", `{"input_tokens":1000}`) },
			body:   `{"input_tokens":1}`,
		}, {
			cause: wire.CauseQueueFull, verdict: wire.Refuse, cfg: oneClass(1000),
			change: func(c *broker.Config) { c.Classes[0].MaxWaiting = 1 },
			before: func(r *rig) {
				grant(r, "api", `{"input_tokens":1000}`)
				r.acquire("api", `{"input_tokens":1}`)
			},
			body: `{"input_tokens":1}`,
		}, {
			cause: wire.CauseDeadline, verdict: wire.Refuse, cfg: oneClass(1000),
			before: func(r *rig) { grant(r, "api", `{"input_tokens":1000}`) },
			body:   `{"input_tokens":1,"deadline_ms":1000}`,
		}, {
			cause: wire.CauseTooLarge, verdict: wire.Refuse, cfg: oneClass(1000),
			body: `{"input_tokens":1001}`,
		}, {
			cause: wire.CauseNoQuota, verdict: wire.Refuse, cfg: oneClass(0),
			body: `{"input_tokens":1}`,
		}, {
			cause: wire.CauseAccountExhausted, verdict: wire.Refuse, cfg: oneClass(1000),
			before: func(r *rig) {
				d := grant(r, "api", `{"input_tokens":1}`)
				r.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"exhausted"}`, d.Lease))
			},
			body: `{"input_tokens":1}`,
		}, {
			cause: wire.CauseDraining, verdict: wire.Refuse, cfg: oneClass(1000),
			before: func(r *rig) {
				grant(r, "api", `{"input_tokens":1}`) // it keeps the drain from ending
				p := r.svc.pools()["default"]
				ctx, cancel := context.WithCancel(r.t.Context())
				cancel()
				_ = p.drain(ctx)
				if err := p.call(r.t.Context(), func(*loop, time.Time) {}); err != nil {
					r.t.Fatal(err)
				}
			},
			body: `{"input_tokens":1}`,
		},
	} {
		t.Run(fmt.Sprintf("%s %s", c.verdict, c.cause), func(t *testing.T) {
			if c.change != nil {
				c.change(&c.cfg)
			}
			if c.source == "" {
				c.source = "api"
			}
			bubble(t, c.cfg, func(t *testing.T, r *rig) {
				if c.before != nil {
					c.before(r)
				}
				used := r.used()
				m := r.ask(wire.VerbAcquire, c.source, c.body)
				d := r.decision(m)
				if d.Verdict != c.verdict || d.Cause != c.cause {
					t.Fatalf("got %s, want %s for %s", m.Data, c.verdict, c.cause)
				}
				checkShape(t, &d, string(m.Data))
				if now := r.used(); now != used {
					t.Errorf("it was charged %d tokens", now-used)
				}
			})
		})
	}
}

// checkShape checks what protocol §2 promises of every deferral and refusal.
func checkShape(t testing.TB, d *wire.Decision, text string) {
	t.Helper()
	retries := strings.Contains(text, `"retry_after_ms":`)
	switch {
	case d.Verdict == wire.Defer:
		if d.RetryAfterMS < 1 || d.RetryAfterMS > 30_000 || d.EtaMS < 1 || d.Ticket.IsZero() || d.Position < 1 {
			t.Errorf("a deferral of another shape: %s", text)
		}
	case d.Message == "":
		t.Errorf("a refusal without a sentence: %s", text)
	case d.Cause.Permanent() && retries:
		t.Errorf("a permanent refusal says when to come back: %s", text)
	case !d.Cause.Permanent() && d.RetryAfterMS < 1:
		t.Errorf("a refusal does not say when to come back: %s", text)
	case d.Cause == wire.CauseTooLarge && (d.LimitTokens != 1000 || d.Limit != "tokens/60s"):
		t.Errorf("too_large does not say what would be right: %s", text)
	}
}
