package mockprovider

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func BenchmarkMeter(b *testing.B) {
	m := NewMeter(Limits{TokensPerMinute: 600_000, RequestsPerMinute: 5000})
	b.ReportAllocs()
	var now time.Duration
	for b.Loop() {
		now += 10 * ms
		if c, refusal := m.Admit(now, 1500); refusal == nil {
			m.Settle(now, c, 300)
		}
	}
}

// BenchmarkHandler is the server without a network.
func BenchmarkHandler(b *testing.B) {
	for _, tt := range []struct{ name, body string }{
		{"chat", chatOf(`,"max_tokens":200`)},
		{"stream", chatOf(`,"max_tokens":200,"stream":true,"stream_options":{"include_usage":true}`)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s := newTestServer(b, Options{})
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(tt.body)))
				if w.Code != 200 {
					b.Fatal(w.Body.String())
				}
			}
		})
	}
}

// BenchmarkTCP is 64 callers per core over loopback, client and server sharing the
// machine, answers of 64 tokens.
func BenchmarkTCP(b *testing.B) {
	for _, tt := range []struct {
		name, extra string
		limits      Limits
		status      int
	}{
		{"chat", `,"max_tokens":200`, Limits{maxLimitPerMinute, maxLimitPerMinute}, 200},
		{"stream", `,"max_tokens":200,"stream":true`, Limits{maxLimitPerMinute, maxLimitPerMinute}, 200},
		{"refused", `,"max_tokens":200`, Limits{TokensPerMinute: 100}, 429},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s, err := Start("127.0.0.1:0", Options{Limits: tt.limits})
			if err != nil {
				b.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
			b.SetParallelism(64)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, err := client.Post(s.URL()+"/v1/chat/completions", "application/json", strings.NewReader(chatOf(tt.extra)))
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					_ = r.Body.Close()
					if r.StatusCode != tt.status {
						b.Errorf("status %d", r.StatusCode)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
			client.CloseIdleConnections()
			if err := s.Close(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}
