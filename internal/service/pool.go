package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"quotabroker/broker"
	"quotabroker/wire"
)

// pool is one pool as it is served: endpoints, an inbox, and a loop.
type pool struct {
	name     string
	opts     *Options
	conn     *nats.Conn
	log      *slog.Logger
	counters *counters
	workers  *turns
	fatal    func(error)

	inbox     *inbox
	receipts  *receipts
	endpoints micro.Service
	origin    time.Time
	epoch     uint64 // of its ids

	access    atomic.Pointer[access]
	busySince atomic.Int64 // since origin; 0: the loop waits for something to do
	broken    atomic.Bool  // the core panicked
	quit      chan struct{}
	done      chan struct{} // closed when the loop has ended
	drained   *gate         // opened when a draining pool has no lease in flight, or the loop has ended
}

// access is who may ask, and how. It is never changed, only replaced.
type access struct {
	classes map[string]string // source → class
	inboxes map[string]string // source → what its reply subjects begin with
	known   string            // the sources, for a sentence
}

func newAccess(cfg *broker.Config, inboxes map[string]string) *access {
	names := slices.Sorted(maps.Keys(cfg.Sources))
	return &access{classes: cfg.Sources, inboxes: inboxes, known: strings.Join(names, ", ")}
}

// inboxItems is the bound of an inbox. A loop decides more than that in a second.
const inboxItems = 1 << 16

var errEnded = errors.New("the pool is not served any more")

// newPool starts the loop of a pool. Its verbs are not subscribed to yet.
func (s *Service) newPool(cfg broker.Config, c *Config) *pool {
	p := &pool{
		name: cfg.Pool, opts: &s.opts, conn: s.opts.Conn, log: s.opts.Logger.With("pool", cfg.Pool),
		counters: &s.counters, workers: s.workers, fatal: s.fatal,
		inbox: newInbox(inboxItems), origin: time.Now(), epoch: s.epoch,
		quit: make(chan struct{}), done: make(chan struct{}), drained: newGate(),
	}
	s.epoch++
	p.access.Store(newAccess(&cfg, c.Inboxes))
	return p
}

// start subscribes and starts the loop.
func (p *pool) start(cfg broker.Config, hash string) error {
	var err error
	if p.receipts, err = openReceipts(p.conn, p.receipt); err != nil {
		return err
	}
	l := &loop{
		pool: p, broker: broker.New(cfg, p.epoch, p.origin), hash: hash,
		lessons: newLessons(p.origin), timer: time.NewTimer(time.Hour),
	}
	go l.run()
	if err := p.subscribe(); err != nil {
		p.stop()
		return err
	}
	return nil
}

// subscribe offers the pool's verbs. Each pool is a micro service of its own, so
// that one can be given up without the others.
func (p *pool) subscribe() error {
	svc, err := micro.AddService(p.conn, micro.Config{
		Name:         "quotabroker",
		Version:      p.opts.Version,
		Description:  "grants tokens of pool " + p.name,
		Metadata:     map[string]string{"pool": p.name, "instance": p.opts.Instance, "protocol": wire.Version},
		ErrorHandler: func(_ micro.Service, err *micro.NATSError) { p.overflowed(err) },
	})
	if err != nil {
		return fmt.Errorf("pool %s: adding the micro service: %w", p.name, err)
	}
	p.endpoints = svc
	for _, e := range []struct {
		verb wire.Verb
		take func(*message)
	}{
		{wire.VerbAcquire, p.onAcquire},
		{wire.VerbSettle, p.onSettle},
		{wire.VerbRenew, p.onRenew},
		{wire.VerbCancel, p.onCancel},
		{wire.VerbEstimate, p.onEstimate},
		{wire.VerbExplain, p.onExplain},
		{wire.VerbStatus, p.onStatus},
	} {
		request, response := wire.SchemaFor(e.verb)
		err := svc.AddEndpoint(string(e.verb), p.handler(e.verb, e.take),
			micro.WithEndpointSubject(wire.Subject(p.opts.Prefix, e.verb, "*", p.name)),
			micro.WithEndpointMetadata(map[string]string{"schema_request": request, "schema_response": response}))
		if err != nil {
			return fmt.Errorf("pool %s: adding the endpoint %s: %w", p.name, e.verb, err)
		}
	}
	return nil
}

func (p *pool) overflowed(err *micro.NATSError) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		p.counters.overflows.Add(1)
	}
}

// call runs f in the loop and returns when it has run.
func (p *pool) call(ctx context.Context, f func(l *loop, now time.Time)) error {
	ran := make(chan struct{})
	it := item{kind: doCall, arrived: time.Now()}
	it.call = func(l *loop, now time.Time) {
		f(l, now)
		close(ran)
	}
	if !p.inbox.put(&it) {
		return errEnded
	}
	select {
	case <-ran:
		return nil
	case <-p.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-ran: // the last thing it did
		return nil
	default:
		return errEnded
	}
}

// configure puts another configuration of the pool in force.
func (p *pool) configure(ctx context.Context, cfg broker.Config, c *Config) error {
	err := p.call(ctx, func(l *loop, now time.Time) {
		l.perform(now, l.broker.Configure(now, cfg))
		l.hash = c.Hash
	})
	if err == nil {
		p.access.Store(newAccess(&cfg, c.Inboxes))
	}
	return err
}

// drain refuses what waits and what comes, and returns when no lease is in flight
// or ctx ends.
func (p *pool) drain(ctx context.Context) error {
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opts.Stall)
	defer cancel()
	err := p.call(soon, func(l *loop, now time.Time) {
		l.draining = true
		l.perform(now, l.broker.Drain(now))
	})
	if err != nil {
		return fmt.Errorf("pool %s: %w", p.name, err)
	}
	select {
	case <-p.drained.opened:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pool %s still has leases in flight: %w", p.name, context.Cause(ctx))
	}
}

// unsubscribe gives the pool's verbs up. What has arrived already is still handled.
func (p *pool) unsubscribe() {
	if p.endpoints == nil {
		return
	}
	if err := p.endpoints.Stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		p.log.Warn("the endpoints did not stop", "error", err)
	}
}

// stop ends the pool, and returns when its loop has ended.
func (p *pool) stop() {
	p.unsubscribe()
	close(p.quit)
	<-p.done
	if err := p.receipts.sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		p.log.Warn("the receipts did not stop", "error", err)
	}
}
