package brokertest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/broker"
	"quotabroker/brokertest"
	"quotabroker/classes"
	"quotabroker/wire"
)

func acquire(t testing.TB, c *nats.Conn, pool, body string) wire.Decision {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := c.RequestWithContext(ctx, wire.Subject(wire.DefaultPrefix, wire.VerbAcquire, "api", pool), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	var d wire.Decision
	if err := wire.DecodeDecision(m.Data, &d); err != nil {
		t.Fatalf("%s: %v", m.Data, err)
	}
	return d
}

// The canary: two servers one after the other in bubbles, in one process.
func TestVirtualTime(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			s := brokertest.New(t, brokertest.TPM(1000))
			if s.URL != "" || s.Pool != "default" {
				t.Errorf("got %+v", s)
			}
			c := s.Conn(t)
			for i, want := range []wire.Verdict{wire.Grant, wire.Refuse, wire.Grant} {
				if d := acquire(t, c, s.Pool, `{"input_tokens":700,"max_output_tokens":0}`); d.Verdict != want {
					t.Errorf("ask %d: got %+v", i, d)
				}
				time.Sleep(time.Duration(i) * 61 * time.Second)
			}
		})
	}
}

func TestTCP(t *testing.T) {
	t.Parallel()
	s := brokertest.New(t, brokertest.WithTCP())
	c, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d := acquire(t, c, s.Pool, `{"model":"gpt-4o-mini","request":{"messages":[{"role":"user","content":"hello world"}],"max_tokens":20}}`)
	if d.Verdict != wire.Grant || d.Cost.Method != wire.MethodExact || d.Cost.OutputTokens != 20 || d.Cost.InputTokens < 8 || d.Cost.InputTokens > 12 {
		t.Errorf("got %+v", d)
	}
}

func TestWithConfig(t *testing.T) {
	t.Parallel()
	s := brokertest.New(t, brokertest.WithConfig(func(c *broker.Config) {
		c.Pool = "other"
		c.Limits = append(c.Limits, classes.Limit{Metric: classes.Requests, Amount: 1, Span: time.Minute})
		c.Classes[0].Floor, c.Classes[0].ReserveMin, c.Classes[0].ReserveMax = 0, 0, 0
		c.Classes[1].Floor, c.Classes[1].ReserveMin, c.Classes[1].ReserveMax = 0, 0, 0
		c.Classes[2].Floor = 0
	}))
	c := s.Conn(t)
	if d := acquire(t, c, "other", `{"input_tokens":1,"max_output_tokens":0}`); d.Verdict != wire.Grant || d.Pool != "other" {
		t.Errorf("got %+v", d)
	}
	if d := acquire(t, c, "other", `{"input_tokens":1,"max_output_tokens":0}`); d.Verdict != wire.Refuse || s.Status(t).Pool != "other" {
		t.Errorf("got %+v", d)
	}
}
