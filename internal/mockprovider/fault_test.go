package mockprovider

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Limits: Limits{TokensPerMinute: 60_000}})
		defer c.stop()
		for _, tt := range []struct {
			kind   string
			fault  Fault
			status int
			body   string
		}{
			{"bare_rate_limit", BareRateLimit(), 429, "rate_limit_exceeded"},
			{"unavailable", Unavailable(), 503, "server_error"},
			{"overloaded", Overloaded(), 529, "overloaded_error"},
			{"insufficient_quota", InsufficientQuota(), 429, `"type":"insufficient_quota","param":null,"code":"insufficient_quota"`},
		} {
			tt.fault.Times = 1
			c.server.Inject(tt.fault)
			if r := c.post("/mock/faults", `{"kind":"`+tt.kind+`","times":1}`); r.status != 204 {
				t.Errorf("%s: %d %s", tt.kind, r.status, r.body)
			}
			for range 2 {
				r := c.post("/v1/chat/completions", chatOf(""))
				if r.status != tt.status || !strings.Contains(r.body, tt.body) {
					t.Errorf("%s: %d %s", tt.kind, r.status, r.body)
				}
				for name := range r.header {
					if strings.HasPrefix(name, "X-Ratelimit") || strings.HasPrefix(name, "Retry-After") {
						t.Errorf("%s has the header %s", tt.kind, name)
					}
				}
			}
			if r := c.post("/v1/chat/completions", chatOf("")); r.status != 200 {
				t.Errorf("after %s: %d", tt.kind, r.status)
			}
		}
		if st := c.server.Stats(); st.Failed != 8 || st.Faulted != 8 || st.Admitted != 4 || st.Sent != 12 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestFaultUntilCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{})
		defer c.stop()
		c.server.Inject(Fault{Status: 429, Header: map[string]string{"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, Body: "{}", Delay: time.Second})
		for range 3 {
			begun := time.Now()
			r := c.post("/v1/chat/completions", chatOf(""))
			if r.status != 429 || r.header.Get("Retry-After") != "Wed, 21 Oct 2026 07:28:00 GMT" || time.Since(begun) != time.Second {
				t.Errorf("%+v after %v", r, time.Since(begun))
			}
		}
		if r, err := c.do(t.Context(), http.MethodDelete, "/mock/faults", ""); err != nil || r.status != 204 {
			t.Errorf("%v, %d", err, r.status)
		}
		if r := c.post("/v1/chat/completions", chatOf("")); r.status != 200 {
			t.Errorf("after the fault: %d", r.status)
		}
	})
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{DefaultAnswer: paced, Speed: 2})
		defer c.stop()
		slow := Slow(10 * time.Second)
		slow.Times = 1
		c.server.Inject(slow)
		for _, want := range []time.Duration{(10*time.Second + pacedLatency) / 2, pacedLatency / 2} {
			begun := time.Now()
			if r := c.post("/v1/chat/completions", chatOf("")); r.status != 200 || time.Since(begun) != want {
				t.Errorf("%d after %v, want %v", r.status, time.Since(begun), want)
			}
		}
	})
}

func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Limits: Limits{TokensPerMinute: 60_000}, DefaultAnswer: paced})
		defer c.stop()
		c.server.Inject(Cut(10))
		r := c.post("/v1/chat/completions", chatOf(`,"stream":true`))
		if r.status != 200 || !errors.Is(r.err, io.ErrUnexpectedEOF) {
			t.Errorf("stream: %d, %v", r.status, r.err)
		}
		if all := events(t, r.body); len(all) != 11 { // the role, then ten tokens
			t.Errorf("%d events before the cut", len(all))
		}
		if _, err := c.do(t.Context(), http.MethodPost, "/v1/chat/completions", chatOf("")); err == nil {
			t.Error("answered in spite of the cut")
		}
		if st := c.server.Stats(); st.Aborted != 2 || st.OutputTokens != 20 || st.WindowTokens != 2*(12+10) {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Limits: Limits{TokensPerMinute: 60_000}})
		defer c.stop()
		for _, tt := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"PUT", "/mock/limits", `{"tokens_per_minute":500,"requests_per_minute":2}`, 204, ""},
			{"PUT", "/mock/limits", `{"tokens_per_minute":-1}`, 400, "tokens_per_minute is -1; it must be 0 (no limit) to"},
			{"PUT", "/mock/limits", `{"tpm":1}`, 400, `unknown field "tpm"`},
			{"POST", "/mock/faults", `{"kind":"flood"}`, 400, `no fault of kind "flood"`},
			{"POST", "/mock/faults", `{`, 400, "unexpected EOF"},
			{"GET", "/mock/stats", "", 200, `"limits":{"tokens_per_minute":500,"requests_per_minute":2}`},
		} {
			r, err := c.do(t.Context(), tt.method, tt.path, tt.body)
			if err != nil || r.status != tt.status || !strings.Contains(r.body, tt.want) {
				t.Errorf("%s %s %s: %d %s, %v", tt.method, tt.path, tt.body, r.status, r.body, err)
			}
		}
		if st := c.server.Stats(); st.Sent != 0 || st.InFlight != 0 {
			t.Errorf("admin calls are counted: %+v", st)
		}
	})
}
