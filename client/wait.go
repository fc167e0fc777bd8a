package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
)

// The pauses between two attempts to reach a broker that is away: long enough not
// to crowd one that is starting, short enough to be back within 3 s of it.
const (
	firstBackoff = 250 * time.Millisecond
	lastBackoff  = time.Second
)

// backoff is the pause after the given number of earlier failures. Up to half of
// it is random, so that callers who failed together do not come back together.
func backoff(failures int) time.Duration {
	d := lastBackoff
	if failures < 2 {
		d = firstBackoff << failures
	}
	return d + rand.N(d/2)
}

// sleep pauses for d; it reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sleep pauses for d, and returns the error of what ended it before: ctx's, or
// ErrClosed.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.closing, func() { cancel(ErrClosed) })()
	if sleep(ctx, d) {
		return nil
	}
	if errors.Is(context.Cause(ctx), ErrClosed) {
		return ErrClosed
	}
	return ctx.Err()
}

// retryable reports whether a broker that is away may yet come back: not over a
// connection that has been closed for good.
func retryable(err error) bool {
	return errors.Is(err, ErrUnavailable) && !errors.Is(err, nats.ErrConnectionClosed)
}
