package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/broker"
	"quotabroker/wire"
)

// Service serves pools on NATS. Make one with [New]; its methods may be called
// from any goroutine.
type Service struct {
	opts     Options
	counters counters
	workers  *turns
	broke    chan error
	status   chan nats.Status // of the connection: that it was closed
	draining atomic.Bool
	ended    sync.WaitGroup // of the goroutines that are not a pool's
	quit     context.Context
	cancel   context.CancelFunc

	turn  chan struct{} // held by whoever starts, reloads or ends the service
	epoch uint64        // of the next pool, so that no two have the same ids; under turn

	mu struct {
		sync.Mutex
		pools  map[string]*pool
		closed bool
	}
}

// waitingBytes bounds what waits for a worker, in bytes of messages.
const waitingBytes = 64 << 20

// errClosed is returned by the methods of a service that was closed.
var errClosed = errors.New("the service is closed")

// New returns a service that answers nothing yet.
func New(o Options) (*Service, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Service{opts: o, broke: make(chan error, 1), turn: make(chan struct{}, 1), epoch: o.Epoch}
	s.quit, s.cancel = context.WithCancel(context.Background())
	s.mu.pools = map[string]*pool{}
	return s, nil
}

// Start serves the pools of Options.Config, and returns when NATS knows of it. If
// the connection is down it returns at once; the pools are then served when it is
// up. After an error the service is closed.
func (s *Service) Start(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	s.workers = newTurns(workers(), waitingBytes)
	s.status = s.opts.Conn.StatusChanged(nats.CLOSED)
	s.ended.Go(s.watch)
	err := s.serve(ctx, s.opts.Config.Pools, &s.opts.Config)
	s.release()
	if err != nil {
		s.Close()
	}
	return err
}

// workers is how many goroutines count tokens: one less than there are processors,
// so that NATS and the loops keep one. On two processors a second worker counts
// half as much again, and takes the p99 of a grant that needs no counting, while
// another source floods, from 5 to 21 ms.
func workers() int { return max(1, runtime.GOMAXPROCS(0)-1) }

// watch waits for the connection to end for good.
func (s *Service) watch() {
	for status := range s.status {
		if status == nats.CLOSED && !s.isClosed() {
			s.fatal(errors.New("the connection to NATS was closed"))
			return
		}
	}
}

// fatal keeps the first error that the service cannot live with for Err.
func (s *Service) fatal(err error) {
	select {
	case s.broke <- err:
	default:
	}
}

// Err receives an error once the service can do its work no more: its connection
// was closed for good, or a bug stopped a pool. The process should then end with
// a failure, to be started anew.
func (s *Service) Err() <-chan error { return s.broke }

// serve starts pools. Either all are served or none.
func (s *Service) serve(ctx context.Context, pools []broker.Config, c *Config) error {
	var started []*pool
	for _, cfg := range pools {
		p := s.newPool(cfg, c)
		if err := p.start(cfg, c.Hash); err != nil {
			for _, other := range started {
				other.stop()
			}
			return err
		}
		started = append(started, p)
	}
	err := s.flush(ctx)
	if err != nil && s.opts.Conn.IsConnected() {
		for _, p := range started {
			p.stop()
		}
		return fmt.Errorf("NATS does not answer: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range started {
		s.mu.pools[p.name] = p
	}
	return nil
}

// flush returns when NATS has taken in all that was sent to it.
func (s *Service) flush(ctx context.Context) error {
	if !s.opts.Conn.IsConnected() {
		return nats.ErrDisconnected
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return s.opts.Conn.FlushWithContext(ctx)
}

// Reload puts another configuration in force: it is checked whole first, and
// after an error the old one stands. Waiting work, leases and meters are kept.
// The leases of a pool that is gone may end, up to Options.DrainLimit.
func (s *Service) Reload(ctx context.Context, c Config) error {
	err := s.reload(ctx, &c)
	if err != nil {
		s.ReloadFailed()
		return err
	}
	s.counters.reloads.Add(1)
	s.counters.reloadFailed.Store(false)
	return nil
}

// ReloadFailed counts a configuration that could not even be read.
func (s *Service) ReloadFailed() {
	s.counters.reloadsFailed.Add(1)
	s.counters.reloadFailed.Store(true)
}

func (s *Service) reload(ctx context.Context, c *Config) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	running := s.pools()
	var fresh []broker.Config
	for _, cfg := range c.Pools {
		if running[cfg.Pool] == nil {
			fresh = append(fresh, cfg)
		}
	}
	if err := s.serve(ctx, fresh, c); err != nil {
		return err
	}
	for _, cfg := range c.Pools {
		if p := running[cfg.Pool]; p != nil {
			delete(running, cfg.Pool)
			if err := p.configure(ctx, cfg, c); err != nil {
				return fmt.Errorf("pool %s: %w", cfg.Pool, err)
			}
		}
	}
	for _, p := range running {
		s.retire(p)
	}
	return nil
}

// retire ends a pool that a reload removed, once its leases have ended.
func (s *Service) retire(p *pool) {
	s.mu.Lock()
	delete(s.mu.pools, p.name)
	s.mu.Unlock()
	s.ended.Go(func() {
		ctx, cancel := context.WithTimeout(s.quit, s.opts.DrainLimit)
		defer cancel()
		if err := p.drain(ctx); err != nil {
			s.opts.Logger.Warn("a pool that is gone was given up", "error", err)
		}
		p.stop()
	})
}

// Drain refuses all that waits and all that asks from now on, lets settlements,
// renewals and cancellations go on until no lease is in flight or ctx ends, and
// closes the service. The error says what was still in flight.
func (s *Service) Drain(ctx context.Context) error {
	s.draining.Store(true)
	if err := s.take(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	pools := slices.Collect(maps.Values(s.pools()))
	errs := make([]error, len(pools))
	var all sync.WaitGroup
	for i, p := range pools {
		all.Go(func() { errs[i] = p.drain(ctx) })
	}
	all.Wait()
	s.release()
	s.Close()
	return errors.Join(errs...)
}

// Close ends the service: whoever waits is told that it is unavailable. It returns
// when all its goroutines have ended and NATS has what was answered. A second
// Close does nothing.
func (s *Service) Close() {
	if s.take(context.Background()) != nil {
		return
	}
	defer s.release()
	s.mu.Lock()
	s.mu.closed = true
	pools := s.mu.pools
	s.mu.pools = nil
	s.mu.Unlock()
	s.cancel()
	for _, p := range pools {
		p.unsubscribe()
	}
	if s.workers != nil {
		s.workers.close()
	}
	for _, p := range pools {
		p.stop()
	}
	if s.status != nil {
		s.opts.Conn.RemoveStatusListener(s.status)
	}
	s.ended.Wait()
	if err := s.flush(context.Background()); err != nil && !s.opts.Conn.IsClosed() {
		s.opts.Logger.Warn("the last answers may be lost", "error", err)
	}
}

// take waits for the turn to change the service. It fails once it is closed.
func (s *Service) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.isClosed() {
		s.release()
		return errClosed
	}
	return nil
}

func (s *Service) release() { <-s.turn }

func (s *Service) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.closed
}

// pools returns the pools that are served, by name.
func (s *Service) pools() map[string]*pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mu.pools)
}

// Status returns a pool's snapshot.
func (s *Service) Status(ctx context.Context, pool string) (wire.Status, error) {
	p := s.pools()[pool]
	if p == nil {
		return wire.Status{}, wire.Errorf(wire.CodeUnknownPool, "pool %q is not served here", pool)
	}
	var status wire.Status
	err := p.call(ctx, func(l *loop, now time.Time) { status = l.status(now) })
	if err != nil {
		return wire.Status{}, fmt.Errorf("pool %s: %w", pool, err)
	}
	return status, nil
}

// Statuses returns the snapshots of all pools, by name; those that cannot be had
// until ctx ends are left out.
func (s *Service) Statuses(ctx context.Context) []wire.Status {
	var out []wire.Status
	for _, name := range slices.Sorted(maps.Keys(s.pools())) {
		if status, err := s.Status(ctx, name); err == nil {
			out = append(out, status)
		}
	}
	return out
}
