package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// keep renews the lease until ctx ends or the lease is gone. An attempt that
// fails is repeated until the lease would have run out, counted from before the
// last renewal that worked was sent.
func (l *Lease) keep(ctx context.Context) {
	ttl := milliseconds(l.grant.TTLMS)
	if ttl <= 0 {
		return // it does not run out
	}
	expiry := time.Now().Add(ttl)
	pause := ttl / 3
	failed := errors.New("the clock jumped") // what else ends a lease between two renewals
	for failures := 0; ; {
		if left := time.Until(expiry); pause >= left {
			if sleep(ctx, left) {
				l.lose(fmt.Errorf("%w: it was not renewed in time: %w", ErrLeaseLost, failed))
			}
			return
		}
		if !sleep(ctx, pause) {
			return
		}
		sent := time.Now()
		got, err := l.c.Renew(ctx, l.grant.Lease, ttl)
		switch {
		case ctx.Err() != nil:
			return
		case isUnknownLease(err):
			l.lose(fmt.Errorf("%w: %w", ErrLeaseLost, err))
			return
		case err != nil:
			pause, failed = backoff(failures), err
			failures++
		default:
			failures = 0
			expiry = sent.Add(got)
			pause = got / 3
		}
	}
}

// lose marks the lease as gone.
func (l *Lease) lose(err error) {
	l.c.opts.Logger.Warn("lease lost", "lease", l.grant.Lease.String(), "error", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.err = err
	close(l.lost)
}
