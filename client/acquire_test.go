package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/client"
	"quotabroker/wire"
)

var smallRequest = client.Request{InputTokens: client.Tokens(800), MaxOutputTokens: client.Tokens(200)}

func withTimeout(ctx context.Context, d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, cancel
}

func TestGrantIsConfirmedAndCarriesTheDecision(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		l, err := c.Acquire(t.Context(), smallRequest)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if l.ID().String() != "7-1" || l.Grant().Class != "batch" || l.Grant().Cost.Tokens != 1000 || l.Local() {
			t.Errorf("lease %v of %+v, local %v", l.ID(), l.Grant(), l.Local())
		}
		if got := w.broker.confirmed(); len(got) != 1 || got[0] != l.ID() {
			t.Errorf("confirmed %v, want the lease %v", got, l.ID())
		}
		ask := w.broker.heard(wire.VerbAcquire)[0].ask
		if ask.RequestID == "" || ask.WaitMS != 60_000 || ask.DeadlineMS.Set || !ask.Confirm {
			t.Errorf("asked %+v; want an id, a hold of a minute, no deadline, a confirmation", ask)
		}
	})
}

func TestDeferIsFollowedByTheTicketAtThePromisedTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		promises := []time.Duration{1830 * time.Millisecond, 7 * time.Millisecond, 12 * time.Second}
		w.broker.on(wire.VerbAcquire, func(h heard) {
			if n := len(w.broker.mu.log); n <= len(promises) {
				w.broker.deferFor(h, 66, promises[n-1])
				return
			}
			w.broker.grant(h)
		})
		c := w.client(nil)
		defer c.Close()
		l, err := c.Acquire(t.Context(), smallRequest)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		asks := w.broker.heard(wire.VerbAcquire)
		if len(asks) != 4 {
			t.Fatalf("%d asks for a grant after three defers", len(asks))
		}
		for i, promise := range promises {
			if got := asks[i+1].at - asks[i].at; got != promise {
				t.Errorf("ask %d came after %v; it was promised for %v", i+1, got, promise)
			}
			if got := asks[i+1].ask.Ticket.String(); got != "7-t42" {
				t.Errorf("ask %d carries the ticket %q", i+1, got)
			}
			if asks[i+1].ask.RequestID != asks[0].ask.RequestID {
				t.Errorf("ask %d has another request id", i+1)
			}
		}
	})
}

func TestRefusalForTheDeadlineIsADeadlineExceeded(t *testing.T) {
	for _, cause := range []wire.Cause{wire.CauseDeadline, wire.CauseClassSaturated} {
		inBubble(t, func(t *testing.T, w *world) {
			w.broker.on(wire.VerbAcquire, func(h heard) { w.broker.decide(h, wire.Decision{Verdict: wire.Refuse, Cause: cause}) })
			c := w.client(nil)
			defer c.Close()
			_, err := c.Acquire(t.Context(), smallRequest)
			if errors.Is(err, context.DeadlineExceeded) != (cause == wire.CauseDeadline) {
				t.Errorf("Acquire: %v", err)
			}
		})
	}
}

func TestRefusalIsAnErrorWithItsFigures(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(h heard) {
			w.broker.decide(h, wire.Decision{
				Verdict: wire.Refuse, Class: "interactive", Pool: "default", Cause: wire.CauseClassSaturated,
				RetryAfterMS: 6400, Message: "interactive is full: the wait would be 6.4 s, its max_wait is 5 s",
			})
		})
		c := w.client(nil)
		defer c.Close()
		_, err := c.Acquire(t.Context(), smallRequest)
		var r *client.Refused
		if !errors.As(err, &r) {
			t.Fatalf("Acquire: %v", err)
		}
		if r.Cause != wire.CauseClassSaturated || r.RetryAfter != 6400*time.Millisecond || r.Permanent() || r.Class != "interactive" {
			t.Errorf("refused with %+v", r)
		}
		const want = "refused: class_saturated: interactive is full: the wait would be 6.4 s, its max_wait is 5 s (not before 6.4s from now)"
		if err.Error() != want {
			t.Errorf("it says %q", err)
		}
		if errors.Is(err, client.ErrUnavailable) || len(w.broker.cancelled()) != 0 || w.since() != 0 {
			t.Error("a refusal is final, is no absence, and leaves nothing to cancel")
		}
	})
}

func TestDrainingBrokerIsAskedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(h heard) {
			if len(w.broker.mu.log) < 3 {
				w.broker.decide(h, wire.Decision{Verdict: wire.Refuse, Cause: wire.CauseDraining, RetryAfterMS: 100, Message: "going away"})
				return
			}
			w.broker.grant(h)
		})
		c := w.client(nil)
		defer c.Close()
		l, err := c.Acquire(t.Context(), smallRequest)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
}

func TestContextBoundsHoldAndDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		for _, row := range []struct{ left, hold time.Duration }{
			{2 * time.Minute, time.Minute},
			{time.Minute, 54 * time.Second},
			{10 * time.Second, 9 * time.Second},
			{100 * time.Millisecond, 80 * time.Millisecond},
			{15 * time.Millisecond, 0},
		} {
			ctx, cancel := withTimeout(t.Context(), row.left)
			l, err := c.Acquire(ctx, smallRequest)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
			cancel()
			asks := w.broker.heard(wire.VerbAcquire)
			ask := asks[len(asks)-1].ask
			if ask.WaitMS != row.hold.Milliseconds() || ask.DeadlineMS != wire.Int(row.left.Milliseconds()) {
				t.Errorf("with %v left: wait_ms %d, deadline_ms %+v; want a hold of %v", row.left, ask.WaitMS, ask.DeadlineMS, row.hold)
			}
		}
	})
}

func TestDeadlineOfTheRequestBoundsAcquire(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(heard) {}) // holds for ever
		c := w.client(nil)
		defer c.Close()
		req := smallRequest
		req.Deadline = 3 * time.Second
		_, err := c.Acquire(t.Context(), req)
		if !errors.Is(err, context.DeadlineExceeded) || w.since() != 3*time.Second {
			t.Errorf("after %v: %v", w.since(), err)
		}
		if ask := w.broker.heard(wire.VerbAcquire)[0].ask; ask.DeadlineMS != wire.Int(3000) {
			t.Errorf("deadline_ms %+v", ask.DeadlineMS)
		}
	})
}

func TestLateGrantIsCancelledAndNotConfirmed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(h heard) {
			time.AfterFunc(5*time.Second, func() { w.broker.grant(h) })
		})
		c := w.client(nil)
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		_, err := c.Acquire(ctx, smallRequest)
		if !errors.Is(err, context.Canceled) || w.since() != 3*time.Second {
			t.Fatalf("after %v: %v", w.since(), err)
		}
		asked := w.broker.heard(wire.VerbAcquire)[0].ask.RequestID
		if got := w.broker.cancelled(); len(got) != 1 || got[0] != asked {
			t.Errorf("cancelled %q, asked as %q", got, asked)
		}
		time.Sleep(10 * time.Second)
		if got := w.broker.confirmed(); len(got) != 0 {
			t.Errorf("confirmed %v after the caller had gone", got)
		}
	})
}

// endsUnnoticed is a context that ends in the moment a reply arrives, when nobody
// is waiting for its Done.
type endsUnnoticed struct {
	context.Context
	looks *int
}

func (c endsUnnoticed) Done() <-chan struct{} { return nil }

func (c endsUnnoticed) Err() error {
	if *c.looks--; *c.looks < 0 {
		return context.Canceled
	}
	return nil
}

func TestGrantThatArrivesAsItsContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		looks := 1 // before it is sent
		answer, err := c.Try(endsUnnoticed{t.Context(), &looks}, smallRequest)
		if !errors.Is(err, context.Canceled) || answer.Lease != nil {
			t.Errorf("Try: %+v, %v", answer, err)
		}
		if got := w.broker.heard(wire.VerbAcquire); len(got) != 1 || len(w.broker.confirmed()) != 0 || len(w.broker.cancelled()) != 1 {
			t.Errorf("asked %d times, confirmed %v, cancelled %v", len(got), w.broker.confirmed(), w.broker.cancelled())
		}
	})
}

func TestGrantAfterDeferIsGivenUpWhenItCannotComeInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(h heard) { w.broker.deferFor(h, 66, 4*time.Second) })
		c := w.client(nil)
		defer c.Close()
		ctx, cancel := withTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.Acquire(ctx, smallRequest)
		var n *client.NotGranted
		if !errors.As(err, &n) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrUnavailable) {
			t.Fatalf("Acquire: %v", err)
		}
		if w.since() != 8*time.Second || n.Waited != 8*time.Second || n.Last.Cause != wire.CauseQuota {
			t.Errorf("after %v: %+v; the third ask would come at 12 s, so 8 s is when it is known", w.since(), n)
		}
		const want = "not granted within 8s: waiting for quota (tokens/60s) as number 12 of class batch, about 4s to go: context deadline exceeded"
		if err.Error() != want {
			t.Errorf("it says %q", err)
		}
		if got := w.broker.cancelled(); len(got) != 1 {
			t.Errorf("cancelled %q; the place in the queue is given up", got)
		}
	})
}

func TestTryIsOneAsk(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(h heard) {
			if h.ask.Ticket.IsZero() {
				w.broker.deferFor(h, 66, time.Minute)
				return
			}
			w.broker.grant(h)
		})
		c := w.client(nil)
		defer c.Close()
		ctx, cancel := withTimeout(t.Context(), time.Second)
		defer cancel()
		req := smallRequest
		req.ID = "job-1"
		first, err := c.Try(ctx, req)
		if err != nil || first.Decision.Verdict != wire.Defer || first.Decision.RetryAfterMS != 60_000 || first.Lease != nil {
			t.Fatalf("first: %+v, %v", first, err)
		}
		req.Ticket = first.Decision.Ticket
		second, err := c.Try(ctx, req)
		if err != nil || second.Decision.Verdict != wire.Grant || second.Lease == nil {
			t.Fatalf("second: %+v, %v", second, err)
		}
		second.Lease.Close()
		for _, h := range w.broker.heard(wire.VerbAcquire) {
			if h.ask.RequestID != "job-1" || h.ask.WaitMS != 0 || h.ask.DeadlineMS.Set {
				t.Errorf("asked %+v; a single ask is not held and its context is no deadline of the work", h.ask)
			}
		}
		if w.since() != 0 {
			t.Error("Try slept")
		}
	})
}

func TestTryHeldUntilItsContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(heard) {})
		c := w.client(nil)
		defer c.Close()
		ctx, cancel := withTimeout(t.Context(), time.Second)
		defer cancel()
		req := smallRequest
		req.Hold = 10 * time.Second
		if _, err := c.Try(ctx, req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Try: %v", err)
		}
		if got := w.broker.cancelled(); len(got) != 1 {
			t.Errorf("cancelled %q", got)
		}
	})
}

func TestBadRequestIsFoundBeforeItIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		for name, req := range map[string]client.Request{
			"request and input_tokens are both missing": {},
			"input_tokens is -5; it must be 0 or more":  {InputTokens: client.Tokens(-5)},
			"request is not valid JSON":                 {Body: []byte(`{"model":`)},
			"it must be at most 256":                    {InputTokens: client.Tokens(1), Tenant: strings.Repeat("x", 257)},
		} {
			_, err := c.Acquire(t.Context(), req)
			var bad *wire.Error
			if !errors.As(err, &bad) || bad.Code != wire.CodeBadRequest || !strings.Contains(err.Error(), name) {
				t.Errorf("want %q, got %v", name, err)
			}
		}
		if got := w.broker.heard(wire.VerbAcquire); len(got) != 0 {
			t.Errorf("%d of them were sent", len(got))
		}
	})
}

func TestErrorRepliesKeepTheirCode(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		for code, want := range map[wire.Code]error{
			wire.CodeUnknownPool:     &wire.Error{Code: wire.CodeUnknownPool},
			wire.CodeInternal:        &wire.Error{Code: wire.CodeInternal},
			wire.CodeForbidden:       client.ErrForbidden,
			wire.CodePayloadTooLarge: client.ErrPayloadTooLarge,
			wire.CodeUnavailable:     client.ErrUnavailable,
		} {
			w.broker.on(wire.VerbAcquire, func(h heard) { w.broker.fails(h, wire.Errorf(code, "so it is")) })
			_, err := c.Try(t.Context(), smallRequest)
			if !errors.Is(err, want) || !errors.Is(err, &wire.Error{Code: code}) || !strings.Contains(err.Error(), "so it is") {
				t.Errorf("%s gives %v", code, err)
			}
		}
	})
}

// An error reply without the protocol's body came from something in between; its
// number is all there is.
func TestErrorRepliesWithoutABody(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		for number, want := range map[string]error{
			"400":  &wire.Error{Code: wire.CodeBadRequest},
			"403":  client.ErrForbidden,
			"413":  client.ErrPayloadTooLarge,
			"503":  client.ErrUnavailable,
			"418":  &wire.Error{Code: wire.CodeInternal},
			"what": &wire.Error{Code: wire.CodeInternal},
		} {
			w.broker.on(wire.VerbAcquire, func(h heard) {
				w.broker.send(&nats.Msg{Subject: h.msg.Reply, Header: nats.Header{
					"Nats-Service-Error-Code": {number}, "Nats-Service-Error": {"so it is"},
				}})
			})
			_, err := c.Try(t.Context(), smallRequest)
			if !errors.Is(err, want) || !strings.Contains(err.Error(), "so it is") {
				t.Errorf("%s gives %v", number, err)
			}
		}
	})
}

func TestGrantThatCannotBeReadIsNotConfirmed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(h heard) {
			w.broker.send(&nats.Msg{Subject: h.msg.Reply, Reply: "confirm.7-1", Data: []byte(`{"decision":"grant"}`)})
		})
		c := w.client(nil)
		defer c.Close()
		_, err := c.Acquire(t.Context(), smallRequest)
		if !errors.Is(err, &wire.Error{Code: wire.CodeInternal}) || len(w.broker.confirmed()) != 0 {
			t.Errorf("Acquire: %v; confirmed %v", err, w.broker.confirmed())
		}
	})
}

func TestGrantThatNeedsNoConfirmationAndDoesNotRunOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(h heard) {
			w.broker.send(&nats.Msg{Subject: h.msg.Reply, Data: []byte(`{"decision":"grant","lease":"7-1"}`)})
		})
		c := w.client(nil)
		defer c.Close()
		l, err := c.Acquire(t.Context(), smallRequest)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if l.Err() != nil || len(w.broker.heard(wire.VerbRenew)) != 0 {
			t.Error("it was renewed, or lost")
		}
		l.Close()
	})
}
