package client_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"quotabroker/client"
	"quotabroker/wire"
)

func TestDoSettlesWhateverHappens(t *testing.T) {
	failed := errors.New("it broke")
	var none client.Settlement
	for name, row := range map[string]struct {
		f    func(ctx context.Context, l *client.Lease) (client.Settlement, error)
		err  error
		want wire.Outcome
	}{
		"used":   {func(context.Context, *client.Lease) (client.Settlement, error) { return client.Used(7, 8), nil }, nil, wire.OutcomeOK},
		"failed": {func(context.Context, *client.Lease) (client.Settlement, error) { return client.Failed(500, 0), failed }, failed, wire.OutcomeFailed},
		"error":  {func(context.Context, *client.Lease) (client.Settlement, error) { return none, failed }, failed, wire.OutcomeUnknown},
		"nothing used, and an error": {func(context.Context, *client.Lease) (client.Settlement, error) {
			return client.Used(0, 0), failed
		}, failed, wire.OutcomeUnknown},
		"used, and an error": {func(context.Context, *client.Lease) (client.Settlement, error) {
			return client.Used(7, 0), failed
		}, failed, wire.OutcomeOK},
		"unsent": {func(context.Context, *client.Lease) (client.Settlement, error) { return client.Unsent(), nil }, nil, wire.OutcomeUnsent},
		"settled inside": {func(ctx context.Context, l *client.Lease) (client.Settlement, error) {
			_, err := l.Settle(ctx, client.Unsent())
			return none, err
		}, nil, wire.OutcomeUnsent},
		"impossible figures": {func(context.Context, *client.Lease) (client.Settlement, error) {
			return client.Used(-1, 0), nil
		}, &wire.Error{Code: wire.CodeBadRequest}, wire.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c := w.client(nil)
				defer c.Close()
				if err := c.Do(t.Context(), smallRequest, row.f); !errors.Is(err, row.err) {
					t.Errorf("Do: %v", err)
				}
				if got := w.broker.settlements(); len(got) != 1 || got[0].Outcome != row.want {
					t.Errorf("the broker heard %+v", got)
				}
			})
		})
	}
}

func TestDoReturnsTheErrorOfItsFunctionAsItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		failed := errors.New("it broke")
		err := c.Do(t.Context(), smallRequest, func(context.Context, *client.Lease) (client.Settlement, error) {
			return client.Settlement{}, failed
		})
		if !errors.Is(err, failed) || err.Error() != failed.Error() {
			t.Errorf("Do: %#v", err)
		}
	})
}

func TestDoWithAPanic(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		func() {
			defer func() {
				if r := recover(); r != "oh" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = c.Do(t.Context(), smallRequest, func(context.Context, *client.Lease) (client.Settlement, error) { panic("oh") })
		}()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Do(t.Context(), smallRequest, func(context.Context, *client.Lease) (client.Settlement, error) {
				runtime.Goexit()
				return client.Unsent(), nil
			})
		}()
		<-done
		got := w.broker.settlements()
		if len(got) != 2 || got[0].Outcome != wire.OutcomeUnknown || got[1].Outcome != wire.OutcomeUnknown {
			t.Errorf("the broker heard %+v", got)
		}
		time.Sleep(time.Hour)
		if got := w.broker.heard(wire.VerbRenew); len(got) != 0 {
			t.Errorf("%d renewals afterwards", len(got))
		}
	})
}

func TestDoSettlesAfterItsContextHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Do(ctx, smallRequest, func(context.Context, *client.Lease) (client.Settlement, error) {
			cancel()
			return client.Used(7, 8), nil
		})
		if got := w.broker.settlements(); err != nil || len(got) != 1 || got[0].Outcome != wire.OutcomeOK {
			t.Errorf("Do: %v; the broker heard %+v", err, got)
		}
	})
}

func TestDoKeepsItsResultWhenTheSettlementIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		err := c.Do(t.Context(), smallRequest, func(context.Context, *client.Lease) (client.Settlement, error) {
			w.broker.leave()
			return client.Used(7, 8), nil
		})
		if err != nil || w.since() != 5*time.Second {
			t.Errorf("Do after %v: %v", w.since(), err)
		}
	})
}

func TestDoIsNotCalledWithoutAGrant(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(h heard) {
			w.broker.decide(h, wire.Decision{Verdict: wire.Refuse, Cause: wire.CauseNoQuota, Message: "a limit of zero applies"})
		})
		c := w.client(nil)
		defer c.Close()
		err := c.Do(t.Context(), smallRequest, func(context.Context, *client.Lease) (client.Settlement, error) {
			t.Error("called")
			return client.Unsent(), nil
		})
		var r *client.Refused
		if !errors.As(err, &r) || !r.Permanent() || r.RetryAfter != 0 {
			t.Errorf("Do: %v", err)
		}
	})
}
