// Package brokertest runs a quotabroker inside a test, as net/http/httptest runs
// an HTTP server: the real broker on a real NATS server, in the test's own process.
//
//	func TestMyProducer(t *testing.T) {
//		s := brokertest.New(t, brokertest.TPM(10_000))
//		runMyProducer(s.Conn(t)) // asks as source "api", "scheduler" or "eval"
//	}
//
// By default nothing listens on a port. Everything is gone when the test ends.
//
// # Virtual time
//
// A server that does not listen works inside a testing/synctest bubble, so that
// a test of minutes takes milliseconds. Make the server and its connections inside
// the bubble, and there use the variants of nats.go that take a context
// (RequestWithContext, FlushWithContext): the others share timers between all
// tests of the process, and end it.
//
// # Invariants
//
//   - [New] returns a server that answers.
//   - The numbers are plain: without [WithConfig] there is no margin and no guard,
//     so what [TPM] names is what is granted in a minute.
//   - What a server was given nobody else sees; tests may run in parallel.
package brokertest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/broker"
	"quotabroker/classes"
	"quotabroker/estimator"
	"quotabroker/internal/natsnode"
	"quotabroker/internal/service"
	"quotabroker/wire"
)

// DefaultTPM is the quota of a server for which no other was named: enough for
// tests that are not about quota.
const DefaultTPM = 1_000_000_000

// Server is a broker that serves one pool.
type Server struct {
	URL  string // what a producer connects to; "" without WithTCP
	Pool string // the pool's name

	node *natsnode.Node
	svc  *service.Service
}

// Option changes what [New] makes.
type Option func(*options)

type options struct {
	listen bool
	cfg    broker.Config
}

// TPM sets the pool's one limit: tokens in any rolling minute.
func TPM(tokens int64) Option {
	return func(o *options) {
		o.cfg.Limits = []classes.Limit{{Metric: classes.Tokens, Amount: tokens, Span: time.Minute}}
	}
}

// WithConfig has change rework the pool's configuration, after what the options
// before it did. It starts from [broker.DefaultConfig] without margin and guard.
func WithConfig(change func(*broker.Config)) Option {
	return func(o *options) { change(&o.cfg) }
}

// WithTCP makes the server listen on a free port of the loopback interface, for
// producers that need a URL. Such a server cannot run in virtual time.
func WithTCP() Option {
	return func(o *options) { o.listen = true }
}

// New starts a broker and returns when it answers. The broker logs to the test
// and ends with it.
func New(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := start(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)), opts)
	if err != nil {
		t.Fatalf("brokertest: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start is [New] where there is no test, as in an example: the caller ends the
// server with [Server.Close], and nothing is logged.
func Start(opts ...Option) (*Server, error) {
	return start(context.Background(), slog.New(slog.DiscardHandler), opts)
}

func start(ctx context.Context, log *slog.Logger, opts []Option) (*Server, error) {
	o := options{cfg: broker.DefaultConfig()}
	o.cfg.Margin, o.cfg.Guard = 0, 0
	for _, opt := range append([]Option{TPM(DefaultTPM)}, opts...) {
		opt(&o)
	}
	node, err := natsnode.StartEmbedded(natsnode.Embedded{DontListen: !o.listen, Port: -1, Logger: log})
	if err != nil {
		return nil, err
	}
	s := &Server{URL: node.URL(), Pool: o.cfg.Pool, node: node}
	if s.svc, err = newService(node, &o, log); err == nil {
		err = s.svc.Start(ctx)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func newService(node *natsnode.Node, o *options, log *slog.Logger) (*service.Service, error) {
	est, err := estimator.New(estimator.Default())
	if err != nil {
		return nil, err
	}
	return service.New(service.Options{
		Conn: node.Conn(), Config: service.Config{Pools: []broker.Config{o.cfg}},
		Estimate: service.NewEstimates(est, nil).Estimate, Instance: "brokertest", Epoch: 1, Logger: log,
	})
}

// Close ends the server, as if its machine were switched off: connections break,
// leases are forgotten. A test that wants to see its producer lose the broker
// calls it; else New does. A second call does nothing.
func (s *Server) Close() {
	// NATS goes first: a broker that gives its endpoints up in good order uses
	// timers that all tests of the process share, see Virtual time.
	s.node.Close()
	if s.svc != nil {
		s.svc.Close()
	}
}

// Conn makes a producer's connection, which ends with the test.
func (s *Server) Conn(t testing.TB, opts ...nats.Option) *nats.Conn {
	t.Helper()
	c, err := s.node.Connect(opts...)
	if err != nil {
		t.Fatalf("brokertest: connecting: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// Status returns the pool's snapshot.
func (s *Server) Status(t testing.TB) wire.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	status, err := s.svc.Status(ctx, s.Pool)
	if err != nil {
		t.Fatalf("brokertest: %v", err)
	}
	return status
}
