package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/broker"
	"quotabroker/classes"
	"quotabroker/internal/natsnode"
	"quotabroker/internal/service"
	"quotabroker/wire"
)

// rig is a service with its HTTP side, in a bubble.
type rig struct {
	t       testing.TB
	svc     *service.Service
	conn    *nats.Conn
	node    *natsnode.Node
	handler http.Handler
}

func pool(tokens int64) broker.Config {
	cfg := broker.DefaultConfig()
	cfg.Limits = []classes.Limit{{Metric: classes.Tokens, Amount: tokens, Span: time.Minute}}
	return cfg
}

func newRig(t testing.TB) *rig {
	node, err := natsnode.StartEmbedded(natsnode.Embedded{DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	svc, err := service.New(service.Options{
		Conn: node.Conn(), Config: service.Config{Pools: []broker.Config{pool(600_000)}},
		Estimate: func(_ service.Job, r *wire.AcquireRequest) (wire.EstimateReply, *wire.Error) {
			return wire.EstimateReply{Cost: wire.Cost{Requests: 1, InputTokens: r.InputTokens.Value, Tokens: r.InputTokens.Value}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, svc: svc, node: node, handler: Handler(svc, "1.2.3")}
	t.Cleanup(func() {
		node.Close() // first: see the service's own tests
		svc.Close()
	})
	if r.conn, err = node.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.conn.Close)
	return r
}

func (r *rig) get(path string) (int, string) {
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return w.Code, string(body)
}

// value returns a sample of /metrics; -1 if it is not there.
func (r *rig) value(series string) float64 {
	_, text := r.get("/metrics")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				r.t.Fatal(err)
			}
			return v
		}
	}
	return -1
}

func (r *rig) ask(verb wire.Verb, source, body string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	m, err := r.conn.RequestWithContext(ctx, wire.Subject("quota", verb, source, "default"), []byte(body))
	if err != nil {
		r.t.Fatal(err)
	}
	return m.Data
}

func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if code, body := r.get("/readyz"); code != 503 || body != "no pool is served yet\n" {
			t.Errorf("before the start: %d %q", code, body)
		}
		if err := r.svc.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/livez", "/readyz"} {
			if code, body := r.get(path); code != 200 || body != "ok\n" {
				t.Errorf("%s: %d %q", path, code, body)
			}
		}
		r.node.Conn().Close()
		if code, body := r.get("/readyz"); code != 503 || !strings.Contains(body, "connection to NATS is CLOSED") {
			t.Errorf("without a connection: %d %q", code, body)
		}
		if code, _ := r.get("/livez"); code != 200 {
			t.Errorf("not alive without a connection: %d", code)
		}
		if code, _ := r.get("/other"); code != 404 {
			t.Errorf("got %d", code)
		}
	})
}

// OPS-01, OPS-03, OPS-05: names of producers leave no series; refunds are a counter
// of their own; nothing falls across a reload, and a bad one is seen.
func TestScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if err := r.svc.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, text := r.get("/metrics")
		before := strings.Count(text, "\n")
		for i := range 300 {
			r.ask(wire.VerbAcquire, "api", fmt.Sprintf(`{"input_tokens":1,"tenant":"t%d","model":"m%d","kind":"k%d"}`, i, i, i))
			r.ask(wire.VerbEstimate, fmt.Sprint("s", i), `{"input_tokens":1}`)
		}
		_, text = r.get("/metrics")
		if now := strings.Count(text, "\n"); now > before+5 || len(text) > 1<<20 {
			t.Errorf("%d lines became %d", before, now)
		}
		var d struct{ Lease string }
		if err := json.Unmarshal(r.ask(wire.VerbAcquire, "eval", `{"input_tokens":1000}`), &d); err != nil {
			t.Fatal(err)
		}
		r.ask(wire.VerbSettle, "eval", fmt.Sprintf(`{"lease":%q,"outcome":"ok","usage":{"input_tokens":300,"output_tokens":0}}`, d.Lease))
		check := func(when string) {
			t.Helper()
			for series, want := range map[string]float64{
				`quotabroker_granted_tokens_total{class="batch",pool="default"}`:               1000,
				`quotabroker_refunded_tokens_total{class="batch",pool="default"}`:              700,
				`quotabroker_overrun_tokens_total{class="batch",pool="default"}`:               0,
				`quotabroker_grants_total{class="interactive",pool="default"}`:                 300,
				`quotabroker_requests_total{verb="acquire"}`:                                   301,
				`quotabroker_request_errors_total{code="unknown_source",verb="estimate"}`:      300,
				`quotabroker_refusals_total{cause="too_large",class="batch",pool="default"}`:   0,
				`quotabroker_build_info{goversion="` + goVersion(text) + `",version="1.2.3"}`:  1,
				`quotabroker_leader{pool="default"}`:                                           1,
				`quotabroker_class_used{class="batch",limit="tokens/60s",pool="default"}`:      300,
				`quotabroker_in_flight_leases{class="interactive",pool="default"}`:             300,
				`quotabroker_wait_seconds_count{class="interactive",pool="default"}`:           300,
				`quotabroker_limit_configured{limit="tokens/60s",pool="default"}`:              600_000,
				`quotabroker_wait_seconds_bucket{class="interactive",pool="default",le="0.1"}`: 300,
			} {
				if got := r.value(series); got != want {
					t.Errorf("%s: %s is %v, want %v", when, series, got, want)
				}
			}
		}
		check("at first")
		if err := r.svc.Reload(t.Context(), service.Config{Pools: []broker.Config{pool(600_000)}}); err != nil {
			t.Fatal(err)
		}
		check("after a reload")
		if err := r.svc.Reload(t.Context(), service.Config{}); err == nil {
			t.Error("a configuration without pools is in force")
		}
		if r.value("quotabroker_config_reload_failed") != 1 || r.value("quotabroker_config_reloads_total") != 1 || r.value("quotabroker_config_reload_failures_total") != 1 {
			t.Error("a bad reload does not show")
		}
		check("after a bad reload")
	})
}

func goVersion(text string) string {
	_, rest, _ := strings.Cut(text, `goversion="`)
	v, _, _ := strings.Cut(rest, `"`)
	return v
}
