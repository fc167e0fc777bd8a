package client_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"quotabroker/brokertest"
	"quotabroker/client"
	"quotabroker/wire"
)

// BenchmarkAcquireSettle is a grant, its confirmation and a settlement over TCP on
// this machine; BenchmarkMessages is what the same messages cost without the client.
func BenchmarkAcquireSettle(b *testing.B) {
	s := brokertest.New(b, brokertest.WithTCP())
	c, err := client.Connect(b.Context(), client.Options{URL: s.URL, Source: "eval"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		l, err := c.Acquire(b.Context(), client.Request{InputTokens: client.Tokens(1), MaxOutputTokens: client.Tokens(1)})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.Settle(b.Context(), client.Used(1, 0)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMessages(b *testing.B) {
	s := brokertest.New(b, brokertest.WithTCP())
	nc, err := nats.Connect(s.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	acquire := []byte(`{"input_tokens":1,"max_output_tokens":1,"wait_ms":60000,"confirm":true}`)
	b.ReportAllocs()
	for b.Loop() {
		m, err := nc.RequestWithContext(b.Context(), "quota.v1.acquire.eval.default", acquire)
		if err != nil {
			b.Fatal(err)
		}
		var d wire.Decision
		if err := wire.DecodeDecision(m.Data, &d); err != nil {
			b.Fatal(err)
		}
		if err := nc.Publish(m.Reply, nil); err != nil {
			b.Fatal(err)
		}
		settle := wire.AppendSettle(nil, &wire.SettleRequest{Lease: d.Lease, Usage: &wire.Usage{InputTokens: 1}})
		if _, err := nc.RequestWithContext(b.Context(), "quota.v1.settle.eval.default", settle); err != nil {
			b.Fatal(err)
		}
	}
}
