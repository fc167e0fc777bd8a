package client

import (
	"context"
	"errors"
	"time"
)

// settleTimeout bounds how long Do and Transport try to deliver a settlement.
// It outlasts a change of the leading broker.
const settleTimeout = 5 * time.Second

// Do acquires a lease, calls f with it, and settles with what f returns. Where f
// returns no Settlement, panics or exits its goroutine, what was reserved stays
// charged; a panic goes on after the lease is settled. So it does where f returns an
// error beside a usage of no tokens at all, which is what a response that never came
// looks like.
//
// Do returns Acquire's error, or else f's. The settlement is delivered even after
// ctx has ended. One that the broker refuses is joined to the error; one that
// could not be delivered within 5 s is logged only: nothing is lost but the
// difference to the estimate, and the work is done.
func (c *Client) Do(ctx context.Context, req Request, f func(ctx context.Context, l *Lease) (Settlement, error)) (err error) {
	l, err := c.Acquire(ctx, req)
	if err != nil {
		return err
	}
	var s Settlement
	defer func() {
		if unsettled := c.settleFinally(context.WithoutCancel(ctx), l, s); unsettled != nil {
			err = errors.Join(err, unsettled)
		}
	}()
	s, err = f(ctx, l)
	if u := s.Usage; err != nil && u != nil && u.InputTokens == 0 && u.OutputTokens == 0 {
		s = Unknown()
	}
	return err
}

// settleFinally settles a lease whose holder is done, unless it has been settled.
func (c *Client) settleFinally(ctx context.Context, l *Lease, s Settlement) error {
	defer l.Close()
	if l.ended() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	_, err := l.Settle(ctx, s)
	if errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
		c.opts.Logger.Warn("settlement not delivered; what was reserved stays charged",
			"lease", l.ID().String(), "error", err)
		return nil
	}
	return err
}
