package mockprovider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Limits: Limits{TokensPerMinute: 60_000}, DefaultAnswer: paced})
		defer c.stop()
		for _, tt := range []struct {
			extra  string
			output int64 // produced when the caller leaves after 600 ms
		}{
			{`,"max_tokens":200,"stream":true`, 11},
			{`,"max_tokens":200`, 50},
		} {
			before := c.server.Stats()
			ctx, cancel := context.WithTimeout(t.Context(), 605*ms)
			r, err := c.do(ctx, http.MethodPost, "/v1/chat/completions", chatOf(tt.extra))
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, %v", tt.extra, err, r.err)
			}
			cancel()
			synctest.Wait()
			st := c.server.Stats()
			if st.Aborted != before.Aborted+1 || st.InFlight != 0 || st.OutputTokens-before.OutputTokens != tt.output || st.WindowTokens-before.WindowTokens != 12+tt.output {
				t.Errorf("%s: %+v", tt.extra, st)
			}
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{DefaultAnswer: paced})
		replies := make(chan reply, 1)
		go func() { replies <- c.post("/v1/chat/completions", chatOf("")) }()
		time.Sleep(100 * ms)
		c.stop()
		if r := <-replies; r.status != 200 || r.err != nil {
			t.Errorf("the answer under way: %d, %v", r.status, r.err)
		}
		if _, err := c.do(t.Context(), http.MethodPost, "/v1/chat/completions", chatOf("")); err == nil {
			t.Error("answered after Close")
		}
		w := httptest.NewRecorder()
		if c.server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/mock/stats", nil)); w.Code != 503 {
			t.Errorf("the handler answers %d after Close", w.Code)
		}
		if err := c.server.Close(t.Context()); err != nil {
			t.Errorf("second close: %v", err)
		}
	})
}

func TestCloseWithoutPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{DefaultAnswer: Answer{OutputTokens: 1, FirstToken: time.Hour}})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if r, err := c.do(t.Context(), http.MethodPost, "/v1/chat/completions", chatOf("")); err == nil {
					t.Errorf("answered: %+v", r)
				}
			})
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.server.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		if err := <-c.served; err != nil {
			t.Errorf("serve: %v", err)
		}
		wg.Wait()
		if st := c.server.Stats(); st.Aborted != 20 || st.InFlight != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// TestThousandAtOnce: 1000 answers under way together are each on time, and leave
// nothing behind.
func TestThousandAtOnce(t *testing.T) {
	const callers = 1000
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Limits: Limits{TokensPerMinute: 62 * callers}, DefaultAnswer: paced})
		defer c.stop()
		begun := time.Now()
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				r, err := c.do(t.Context(), http.MethodPost, "/v1/chat/completions", chatOf(`,"max_tokens":50`))
				if took := time.Since(begun); err != nil || r.status != 200 || r.err != nil || took != pacedLatency {
					t.Errorf("%v, %d after %v", err, r.status, took)
				}
			})
		}
		wg.Wait()
		if st := c.server.Stats(); st.PeakInFlight != callers || st.Peak.Tokens != 62*callers || st.Completed != callers || st.InFlight != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// TestStart is the one test over TCP, and so in real time: whatever the machine does,
// what is admitted is what the limits allow in the time it took.
func TestStart(t *testing.T) {
	const callers, each = 100, 5
	s, err := Start("127.0.0.1:0", Options{Limits: Limits{RequestsPerMinute: 300}, Profile: profile(t, "openai-max")})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				r, err := client.Post(s.URL()+"/v1/chat/completions", "application/json", strings.NewReader(chatOf(`,"stream":true`)))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					t.Error(err)
				}
				_ = r.Body.Close()
			}
		})
	}
	wg.Wait()
	client.CloseIdleConnections()
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	st := s.Stats()
	refilled := int64(300 * st.Now / time.Minute)
	if st.Sent != callers*each || st.Admitted < 300 || st.Admitted > 300+refilled || st.Admitted+st.RefusedRequests != st.Sent || st.Completed != st.Admitted {
		t.Errorf("stats %+v", st)
	}
	if _, err := Start("256.0.0.1:0", Options{}); err == nil {
		t.Error("started on an address that does not exist")
	}
}
