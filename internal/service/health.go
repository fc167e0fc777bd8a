package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Live returns what only a new start of the process can mend: a loop that is
// stuck, or that a bug has stopped. A NATS that is not there is none of that.
func (s *Service) Live() error {
	if s.isClosed() {
		return errClosed
	}
	var errs []error
	for _, p := range s.pools() {
		errs = append(errs, p.live())
	}
	return errors.Join(errs...)
}

func (p *pool) live() error {
	if p.broken.Load() {
		return fmt.Errorf("pool %s was stopped by a bug", p.name)
	}
	now := time.Now()
	if since := p.busySince.Load(); since > 0 {
		if stuck := now.Sub(p.origin) - time.Duration(since); stuck > p.opts.Stall {
			return fmt.Errorf("pool %s has been stuck for %s", p.name, stuck.Round(time.Millisecond))
		}
	}
	if since := p.inbox.waitingSince(); !since.IsZero() && now.Sub(since) > p.opts.Stall {
		return fmt.Errorf("pool %s has not looked at its inbox for %s", p.name, now.Sub(since).Round(time.Millisecond))
	}
	return nil
}

// answerTime is how long NATS may take to answer a ping before the connection
// counts as down.
const answerTime = time.Second

// Ready returns what keeps the service from granting just now, nil if nothing
// does. It looks at how things are: it asks NATS for a sign of life.
func (s *Service) Ready(ctx context.Context) error {
	if err := s.Live(); err != nil {
		return err
	}
	if s.draining.Load() {
		return errors.New("draining: this instance is going away")
	}
	pools := s.pools()
	if len(pools) == 0 {
		return errors.New("no pool is served yet")
	}
	conn := s.opts.Conn
	if status := conn.Status(); status != nats.CONNECTED {
		return fmt.Errorf("the connection to NATS is %s", status)
	}
	for _, p := range pools {
		if p.endpoints == nil || p.endpoints.Stopped() || !p.receipts.sub.IsValid() {
			return fmt.Errorf("pool %s is not subscribed", p.name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("NATS does not answer: %w", err)
	}
	return nil
}
