package client_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"quotabroker/client"
	"quotabroker/wire"
)

// exampleBroker is a NATS server on a free port of this machine with a broker that
// grants what is small, defers what is large for 3 s, and refuses what is larger.
type exampleBroker struct {
	url    string
	server *server.Server
	nc     *nats.Conn
	sub    *nats.Subscription

	mu     sync.Mutex
	leases uint64
	last   string // of the settlements
	used   int64
}

func startExampleBroker() *exampleBroker {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		panic(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		panic("the NATS server does not start")
	}
	b := &exampleBroker{server: s, url: s.ClientURL()}
	if b.nc, err = nats.Connect("", nats.InProcessServer(s)); err != nil {
		panic(err)
	}
	if b.sub, err = b.nc.Subscribe("quota.v1.*.*.default", b.hear); err != nil {
		panic(err)
	}
	b.flush()
	return b
}

func (b *exampleBroker) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := b.nc.FlushWithContext(ctx); err != nil {
		panic(err)
	}
}

func (b *exampleBroker) leave() {
	if err := b.sub.Unsubscribe(); err != nil {
		panic(err)
	}
	b.flush()
}

func (b *exampleBroker) stop() {
	b.nc.Close()
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

func (b *exampleBroker) settled() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

func (b *exampleBroker) hear(m *nats.Msg) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var reply []byte
	switch verb, _, _, _ := wire.SplitSubject("quota", m.Subject); verb {
	case wire.VerbAcquire:
		var ask wire.AcquireRequest
		if err := wire.DecodeAcquire(m.Data, &ask); err != nil {
			panic(err)
		}
		d := b.decide(&ask)
		reply = wire.AppendDecision(nil, &d)
	case wire.VerbSettle:
		var ask wire.SettleRequest
		if err := wire.DecodeSettle(m.Data, &ask); err != nil {
			panic(err)
		}
		b.last = string(m.Data)
		r := wire.SettleReply{Settled: true, Lease: ask.Lease}
		if u := ask.Usage; u != nil {
			r.Charged.Tokens = u.InputTokens + u.OutputTokens
			r.DeltaTokens = r.Charged.Tokens - b.used
		}
		reply = wire.AppendSettleReply(nil, &r)
	default:
		reply = []byte("{}")
	}
	// Fails only when the broker is being stopped and nobody listens any more.
	_ = m.Respond(reply)
}

func (b *exampleBroker) decide(ask *wire.AcquireRequest) wire.Decision {
	in, out := ask.InputTokens.Or(12), ask.MaxOutputTokens.Or(600)
	d := wire.Decision{Class: "batch", Pool: "default", Cost: wire.Cost{Requests: 1, InputTokens: in, OutputTokens: out, Tokens: in + out}}
	switch {
	case in+out > 1_000_000:
		d.Verdict, d.Cause = wire.Refuse, wire.CauseTooLarge
		d.Message = fmt.Sprintf("%d tokens are more than batch can ever be given", in+out)
	case in+out > 100_000:
		d.Verdict, d.Cause, d.Limit = wire.Defer, wire.CauseQuota, "tokens/60s"
		d.Ticket, d.RetryAfterMS, d.EtaMS, d.Position = wire.TicketID{Epoch: 7, N: 66}, 3000, 3000, 12
	default:
		b.leases++
		b.used = d.Cost.Tokens
		d.Verdict, d.Lease, d.TTLMS = wire.Grant, wire.LeaseID{Epoch: 7, N: b.leases}, 120_000
	}
	return d
}

// BenchmarkAcquireSettle is two round trips over TCP on this machine;
// BenchmarkTwoRequests is what the same messages cost without the client.
func BenchmarkAcquireSettle(b *testing.B) {
	broker := startExampleBroker()
	defer broker.stop()
	c, err := client.Connect(b.Context(), client.Options{URL: broker.url, Source: "eval"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		l, err := c.Acquire(b.Context(), smallRequest)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.Settle(b.Context(), client.Used(700, 100)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTwoRequests(b *testing.B) {
	broker := startExampleBroker()
	defer broker.stop()
	nc, err := nats.Connect(broker.url)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	acquire := []byte(`{"request_id":"0123456789abcdefghijklmnop","input_tokens":800,"max_output_tokens":200,"wait_ms":20000,"confirm":true}`)
	settle := []byte(`{"lease":"7-1","outcome":"ok","usage":{"input_tokens":700,"output_tokens":100}}`)
	b.ReportAllocs()
	for b.Loop() {
		for subject, data := range map[string][]byte{"quota.v1.acquire.eval.default": acquire, "quota.v1.settle.eval.default": settle} {
			if _, err := nc.RequestWithContext(b.Context(), subject, data); err != nil {
				b.Fatal(err)
			}
		}
	}
}
