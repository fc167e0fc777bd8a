package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"quotabroker/client"
	"quotabroker/wire"
)

// inBubble runs f in virtual time, in a world of its own: a NATS server and a
// scripted broker. The bubble ends when every goroutine has, so a leaked one
// fails the test.
func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	// A reconnect leaves a timer of this bubble in a pool that nats.go keeps for
	// the whole process, and a later bubble may not touch it. Two collections
	// empty a sync.Pool.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, start: time.Now()}
		w.startServer(nil)
		w.broker = w.startBroker()
		defer func() {
			w.broker.stop()
			w.stopServer()
		}()
		f(t, w)
	})
}

type world struct {
	t      *testing.T
	start  time.Time
	broker *fakeBroker

	mu struct {
		sync.Mutex
		server *server.Server // nil while it is down
	}
}

func (w *world) since() time.Duration { return time.Since(w.start) }

// startServer starts NATS; change, which may be nil, edits its options.
func (w *world) startServer(change func(*server.Options)) {
	w.t.Helper()
	opts := &server.Options{DontListen: true, NoLog: true, NoSigs: true}
	if change != nil {
		change(opts)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		w.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		w.t.Fatal("the NATS server does not start")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.server = s
}

func (w *world) stopServer() {
	w.mu.Lock()
	s := w.mu.server
	w.mu.server = nil
	w.mu.Unlock()
	if s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// InProcessConn implements nats.InProcessConnProvider over whichever server runs.
func (w *world) InProcessConn() (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.server == nil {
		return nil, errors.New("connection refused")
	}
	return w.mu.server.InProcessConn()
}

// client connects a client of source eval; change, which may be nil, edits its
// options.
func (w *world) client(change func(*client.Options)) *client.Client {
	w.t.Helper()
	opts := client.Options{Source: "eval", NATS: []nats.Option{nats.InProcessServer(w)}}
	if testing.Verbose() {
		opts.Logger = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	}
	if change != nil {
		change(&opts)
	}
	c, err := client.Connect(w.t.Context(), opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// heard is one message that the broker was sent.
type heard struct {
	at     time.Duration // since the world's start
	verb   wire.Verb
	source string
	msg    *nats.Msg
	ask    wire.AcquireRequest // of an acquire
}

// fakeBroker answers as a test tells it. Where nothing is told it grants every
// acquire and says yes to the rest.
type fakeBroker struct {
	w  *world
	nc *nats.Conn

	mu struct {
		sync.Mutex
		answer    map[wire.Verb]func(h heard)
		log       []heard
		confirmed []wire.LeaseID
		leases    uint64
		sub       *nats.Subscription
	}
}

func (w *world) startBroker(opts ...nats.Option) *fakeBroker {
	w.t.Helper()
	b := &fakeBroker{w: w}
	b.mu.answer = make(map[wire.Verb]func(heard))
	opts = append(opts, nats.InProcessServer(w), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { w.t.Errorf("broker: %v", err) }))
	nc, err := nats.Connect("", opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	b.nc = nc
	b.serve()
	if _, err := nc.Subscribe("confirm.*", b.confirm); err != nil {
		w.t.Fatal(err)
	}
	b.flush()
	return b
}

// serve makes the broker lead the pool; leave makes it stop.
func (b *fakeBroker) serve() {
	sub, err := b.nc.Subscribe("quota.v1.*.*.default", b.hear)
	if err != nil {
		b.w.t.Fatal(err)
	}
	b.mu.Lock()
	b.mu.sub = sub
	b.mu.Unlock()
	b.flush()
}

func (b *fakeBroker) leave() {
	b.mu.Lock()
	sub := b.mu.sub
	b.mu.Unlock()
	if err := sub.Unsubscribe(); err != nil {
		b.w.t.Fatal(err)
	}
	b.flush()
}

func (b *fakeBroker) flush() {
	ctx, cancel := withTimeout(b.w.t.Context(), time.Second)
	defer cancel()
	if err := b.nc.FlushWithContext(ctx); err != nil {
		b.w.t.Fatal(err)
	}
}

// stop ends the broker once it has answered what is under way.
func (b *fakeBroker) stop() {
	synctest.Wait()
	b.nc.Close()
}

// on sets the answer to a verb.
func (b *fakeBroker) on(verb wire.Verb, answer func(h heard)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.answer[verb] = answer
}

func (b *fakeBroker) hear(m *nats.Msg) {
	verb, source, _, ok := wire.SplitSubject("quota", m.Subject)
	if !ok {
		b.w.t.Errorf("broker: heard on %q", m.Subject)
		return
	}
	if !strings.HasPrefix(m.Reply, "_INBOX."+source+".") {
		b.w.t.Errorf("broker: %s wants its reply at %q, which is not under its own inbox", m.Subject, m.Reply)
	}
	h := heard{at: b.w.since(), verb: verb, source: source, msg: m}
	if verb == wire.VerbAcquire {
		if err := wire.DecodeAcquire(m.Data, &h.ask); err != nil {
			b.w.t.Errorf("broker: %v", err)
		}
	}
	b.mu.Lock()
	b.mu.log = append(b.mu.log, h)
	answer := b.mu.answer[verb]
	b.mu.Unlock()
	if answer == nil {
		answer = b.yes
	}
	answer(h)
}

// yes is the answer to everything that nothing else was told about.
func (b *fakeBroker) yes(h heard) {
	switch h.verb {
	case wire.VerbAcquire:
		b.grant(h)
	case wire.VerbSettle:
		var ask wire.SettleRequest
		if err := wire.DecodeSettle(h.msg.Data, &ask); err != nil {
			b.w.t.Errorf("broker: %v", err)
		}
		b.reply(h, wire.SettleReply{Settled: true, Lease: ask.Lease, DeltaTokens: -1})
	case wire.VerbRenew:
		var ask wire.RenewRequest
		if err := wire.DecodeRenew(h.msg.Data, &ask); err != nil {
			b.w.t.Errorf("broker: %v", err)
		}
		b.reply(h, wire.RenewReply{Lease: ask.Lease, TTLMS: 120_000})
	case wire.VerbCancel:
		b.reply(h, wire.CancelReply{Cancelled: true})
	default:
		b.reply(h, struct{}{})
	}
}

// grant grants a lease of two minutes and asks for its confirmation.
func (b *fakeBroker) grant(h heard) wire.LeaseID {
	b.mu.Lock()
	b.mu.leases++
	id := wire.LeaseID{Epoch: 7, N: b.mu.leases}
	b.mu.Unlock()
	b.grantAs(h, id, 2*time.Minute)
	return id
}

func (b *fakeBroker) grantAs(h heard, id wire.LeaseID, ttl time.Duration) {
	if !h.ask.Confirm {
		b.w.t.Errorf("broker: an acquire without confirm")
	}
	b.decide(h, wire.Decision{
		Verdict: wire.Grant, Lease: id, Class: "batch", Pool: "default", TTLMS: ttl.Milliseconds(), Epoch: 7,
		Cost: wire.Cost{Requests: 1, InputTokens: 800, OutputTokens: 200, Tokens: 1000},
	})
}

func (b *fakeBroker) decide(h heard, d wire.Decision) {
	reply := ""
	if d.Verdict == wire.Grant {
		reply = "confirm." + d.Lease.String()
	}
	b.send(&nats.Msg{Subject: h.msg.Reply, Reply: reply, Data: wire.AppendDecision(nil, &d)})
}

// deferFor answers an acquire with a ticket.
func (b *fakeBroker) deferFor(h heard, ticket uint64, retryAfter time.Duration) {
	b.decide(h, wire.Decision{
		Verdict: wire.Defer, Class: "batch", Pool: "default", Ticket: wire.TicketID{Epoch: 7, N: ticket},
		RetryAfterMS: retryAfter.Milliseconds(), EtaMS: retryAfter.Milliseconds(),
		Position: 12, Cause: wire.CauseQuota, Limit: "tokens/60s",
	})
}

func (b *fakeBroker) reply(h heard, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		b.w.t.Error(err)
	}
	b.send(&nats.Msg{Subject: h.msg.Reply, Data: data})
}

// fails answers with an error of the protocol.
func (b *fakeBroker) fails(h heard, e *wire.Error) {
	b.send(&nats.Msg{
		Subject: h.msg.Reply,
		Data:    wire.AppendError(nil, e),
		Header: nats.Header{
			"Nats-Service-Error-Code": {fmt.Sprint(e.Code.Status())},
			"Nats-Service-Error":      {e.Message},
		},
	})
}

func (b *fakeBroker) send(m *nats.Msg) {
	if err := b.nc.PublishMsg(m); err != nil {
		b.w.t.Errorf("broker: %v", err)
	}
}

func (b *fakeBroker) confirm(m *nats.Msg) {
	var id wire.LeaseID
	if err := id.UnmarshalText([]byte(strings.TrimPrefix(m.Subject, "confirm."))); err != nil || len(m.Data) > 0 {
		b.w.t.Errorf("broker: confirmed with %q on %s", m.Data, m.Subject)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.confirmed = append(b.mu.confirmed, id)
}

// heard returns what the broker was sent under a verb, once everything that is
// under way has arrived.
func (b *fakeBroker) heard(verb wire.Verb) []heard {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var log []heard
	for _, h := range b.mu.log {
		if h.verb == verb {
			log = append(log, h)
		}
	}
	return log
}

func (b *fakeBroker) confirmed() []wire.LeaseID {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.confirmed
}

// cancelled returns the request ids that were cancelled.
func (b *fakeBroker) cancelled() []string {
	var ids []string
	for _, h := range b.heard(wire.VerbCancel) {
		var ask wire.CancelRequest
		if err := wire.DecodeCancel(h.msg.Data, &ask); err != nil {
			b.w.t.Error(err)
		}
		ids = append(ids, ask.RequestID)
	}
	return ids
}

// settlements returns what was settled.
func (b *fakeBroker) settlements() []wire.SettleRequest {
	var all []wire.SettleRequest
	for _, h := range b.heard(wire.VerbSettle) {
		var ask wire.SettleRequest
		if err := wire.DecodeSettle(h.msg.Data, &ask); err != nil {
			b.w.t.Error(err)
		}
		all = append(all, ask)
	}
	return all
}
