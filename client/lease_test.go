package client_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"quotabroker/client"
	"quotabroker/wire"
)

// acquire gets a lease of the given time to live.
func (w *world) acquire(c *client.Client, ttl time.Duration) *client.Lease {
	w.t.Helper()
	w.broker.on(wire.VerbAcquire, func(h heard) { w.broker.grantAs(h, wire.LeaseID{Epoch: 7, N: 0x18a3}, ttl) })
	l, err := c.Acquire(w.t.Context(), smallRequest)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func TestLeaseIsRenewedAtAThirdOfItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbRenew, func(h heard) {
			w.broker.reply(h, wire.RenewReply{Lease: wire.LeaseID{Epoch: 7, N: 0x18a3}, TTLMS: 60_000})
		})
		c := w.client(nil)
		defer c.Close()
		l := w.acquire(c, 30*time.Second)
		time.Sleep(75 * time.Second)
		if _, err := l.Settle(t.Context(), client.Used(700, 100)); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute)
		var at []time.Duration
		for _, h := range w.broker.heard(wire.VerbRenew) {
			at = append(at, h.at)
			if got := string(h.msg.Data); got != `{"lease":"7-18a3","ttl_ms":30000}` {
				t.Errorf("renewed with %s", got)
			}
		}
		// The first after a third of what was granted, then of what was renewed;
		// none after the settlement.
		if len(at) != 4 || at[0] != 10*time.Second || at[1] != 30*time.Second || at[3] != 70*time.Second {
			t.Errorf("renewed at %v", at)
		}
		if l.Err() != nil {
			t.Error(l.Err())
		}
	})
}

func TestLeaseThatTheBrokerDoesNotKnowIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbRenew, func(h heard) {
			w.broker.fails(h, wire.Errorf(wire.CodeUnknownLease, "lease 7-18a3 is not known"))
		})
		c := w.client(nil)
		defer c.Close()
		l := w.acquire(c, 30*time.Second)
		<-l.Lost()
		if w.since() != 10*time.Second || !errors.Is(l.Err(), client.ErrLeaseLost) {
			t.Errorf("lost after %v: %v", w.since(), l.Err())
		}
		time.Sleep(time.Hour)
		if got := len(w.broker.heard(wire.VerbRenew)); got != 1 {
			t.Errorf("renewed %d times", got)
		}
		// It can still be settled, as a correction.
		if _, err := l.Settle(t.Context(), client.Used(700, 100)); err != nil {
			t.Error(err)
		}
		l.Close()
	})
}

func TestLeaseIsLostWhenItRunsOutUnrenewed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		l := w.acquire(c, 30*time.Second)
		w.broker.leave()
		<-l.Lost()
		if w.since() != 30*time.Second || !errors.Is(l.Err(), client.ErrLeaseLost) || !errors.Is(l.Err(), client.ErrUnavailable) {
			t.Errorf("lost after %v: %v", w.since(), l.Err())
		}
		w.broker.serve()
		l.Close()
		if got := w.broker.settlements(); len(got) != 0 {
			t.Errorf("the broker heard %+v of a lease that has ended", got)
		}
	})
}

func TestLeaseOutlastsAnAbsenceOfTheBroker(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		l := w.acquire(c, 30*time.Second)
		w.broker.leave()
		time.AfterFunc(25*time.Second, w.broker.serve)
		time.Sleep(5 * time.Minute)
		if l.Err() != nil || len(w.broker.heard(wire.VerbRenew)) < 5 {
			t.Errorf("%d renewals, %v", len(w.broker.heard(wire.VerbRenew)), l.Err())
		}
		l.Close()
	})
}

func TestSettleIsIdempotent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		l := w.acquire(c, 2*time.Minute)
		first, err := l.Settle(t.Context(), client.Used(700, 100))
		if err != nil || !first.Settled || first.DeltaTokens != -1 {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := l.Settle(t.Context(), client.Used(700, 100))
		if err != nil || again != first {
			t.Errorf("again: %+v, %v", again, err)
		}
		_, err = l.Settle(t.Context(), client.Used(700, 101))
		if !errors.Is(err, &wire.Error{Code: wire.CodeAlreadySettled}) {
			t.Errorf("other figures: %v", err)
		}
		l.Close()
		if got := w.broker.settlements(); len(got) != 1 || got[0].Outcome != wire.OutcomeOK || got[0].Usage.OutputTokens != 100 {
			t.Errorf("the broker heard %+v", got)
		}
	})
}

func TestSettleFromManyGoroutines(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		l := w.acquire(c, 2*time.Minute)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := l.Settle(t.Context(), client.Used(700, 100)); err != nil {
					t.Error(err)
				}
			})
			all.Go(l.Close)
		}
		all.Wait()
	})
}

func TestSettleIsRepeatedUntilTheBrokerIsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		l := w.acquire(c, 2*time.Minute)
		w.broker.leave()
		ctx, cancel := withTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := l.Settle(ctx, client.Used(700, 100))
		if !errors.Is(err, client.ErrUnavailable) || !errors.Is(err, ctx.Err()) || w.since() != 5*time.Second {
			t.Errorf("after %v: %v", w.since(), err)
		}
		time.AfterFunc(7*time.Second, w.broker.serve)
		if _, err := l.Settle(t.Context(), client.Used(700, 100)); err != nil {
			t.Error(err)
		}
		if late := w.since() - 12*time.Second; late < 0 || late > 3*time.Second {
			t.Errorf("settled %v after the broker was back", late)
		}
		l.Close()
		if got := w.broker.settlements(); len(got) != 1 {
			t.Errorf("the broker heard %+v", got)
		}
	})
}

func TestSettlementsAsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		full := client.Settlement{Usage: &wire.Usage{InputTokens: 5, CachedInputTokens: 3, OutputTokens: 2, ReasoningTokens: 1}}
		for _, row := range []struct {
			s    client.Settlement
			want string
		}{
			{client.Used(7, 8), `"outcome":"ok","usage":{"input_tokens":7,"output_tokens":8}`},
			{full, `"outcome":"ok","usage":{"input_tokens":5,"cached_input_tokens":3,"output_tokens":2,"reasoning_tokens":1}`},
			{client.Unsent(), `"outcome":"unsent"`},
			{client.Unknown(), `"outcome":"unknown"`},
			{client.Settlement{}, `"outcome":"unknown"`},
			{client.Failed(400, 0), `"outcome":"failed","provider":{"status":400}`},
			{client.Failed(429, 1500*time.Microsecond), `"outcome":"throttled","provider":{"status":429,"retry_after_ms":2}`},
			{client.Failed(529, time.Second), `"outcome":"overloaded","provider":{"status":529,"retry_after_ms":1000}`},
			{client.Failed(503, math.MaxInt64), `"outcome":"overloaded","provider":{"status":503,"retry_after_ms":31536000000}`},
		} {
			l := w.acquire(c, 2*time.Minute)
			if _, err := l.Settle(t.Context(), row.s); err != nil {
				t.Error(err)
			}
			log := w.broker.heard(wire.VerbSettle)
			if got := string(log[len(log)-1].msg.Data); got != `{"lease":"7-18a3",`+row.want+`}` {
				t.Errorf("sent %s\nwant %s", got, row.want)
			}
		}
	})
}

func TestImpossibleFiguresLeaveTheLeaseAsItWas(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		l := w.acquire(c, 30*time.Second)
		_, err := l.Settle(t.Context(), client.Used(-5000, 0))
		if !errors.Is(err, &wire.Error{Code: wire.CodeBadRequest, Field: "usage.input_tokens"}) {
			t.Errorf("Settle: %v", err)
		}
		time.Sleep(11 * time.Second)
		if got := len(w.broker.heard(wire.VerbRenew)); got != 1 {
			t.Errorf("renewed %d times since", got)
		}
		l.Close()
		if got := w.broker.settlements(); len(got) != 1 || got[0].Outcome != wire.OutcomeUnknown {
			t.Errorf("the broker heard %+v", got)
		}
	})
}

func TestCloseGivesUpOnceAndDetachDoesNot(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		l := w.acquire(c, 30*time.Second)
		l.Close()
		l.Close()
		if got := w.broker.settlements(); len(got) != 1 || got[0].Outcome != wire.OutcomeUnknown {
			t.Errorf("the broker heard %+v", got)
		}
		l = w.acquire(c, 30*time.Second)
		l.Detach()
		l.Close()
		time.Sleep(time.Hour)
		if got := w.broker.settlements(); len(got) != 1 {
			t.Errorf("the broker heard %+v", got)
		}
		if _, err := l.Settle(t.Context(), client.Unsent()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("Settle after Detach: %v", err)
		}
		if ttl, err := c.Renew(t.Context(), l.ID(), time.Minute); err != nil || ttl != 2*time.Minute {
			t.Errorf("renewed by id for %v: %v", ttl, err)
		}
		if reply, err := c.Settle(t.Context(), l.ID(), client.Unsent()); err != nil || reply.Lease != l.ID() {
			t.Errorf("settled by id: %+v, %v", reply, err)
		}
		if len(w.broker.heard(wire.VerbRenew)) != 1 {
			t.Error("a lease that was given away was renewed")
		}
	})
}

func TestClientCloseEndsEverything(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		w.acquire(c, 30*time.Second)
		w.acquire(c, 30*time.Second).Detach()
		w.broker.on(wire.VerbAcquire, func(h heard) { w.broker.deferFor(h, 66, time.Minute) })
		waiting := make(chan error, 2)
		go func() { _, err := c.Acquire(t.Context(), smallRequest); waiting <- err }()
		synctest.Wait() // it sleeps with its ticket
		w.broker.on(wire.VerbAcquire, func(heard) {})
		go func() { _, err := c.Acquire(t.Context(), smallRequest); waiting <- err }()
		synctest.Wait() // it is held
		c.Close()
		for range 2 {
			if err := <-waiting; !errors.Is(err, client.ErrClosed) {
				t.Errorf("waiting: %v", err)
			}
		}
		if got := w.broker.settlements(); len(got) != 1 || got[0].Outcome != wire.OutcomeUnknown || w.since() != 0 {
			t.Errorf("after %v the broker heard %+v", w.since(), got)
		}
		if !c.Conn().IsClosed() {
			t.Error("the connection is open")
		}
		c.Close()
	})
}

func TestThinCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		raw := func(body string) func(heard) {
			return func(h heard) {
				if err := h.msg.Respond([]byte(body)); err != nil {
					t.Error(err)
				}
			}
		}
		w.broker.on(wire.VerbEstimate, raw(`{"cost":{"requests":1,"input_tokens":812,"output_tokens":600,"tokens":1412,"method":"exact"},"model_known":true,"encoding":"o200k_base","learned":{"input_ratio":1.02,"output_p85":412,"samples":311}}`))
		if e, err := c.Estimate(t.Context(), smallRequest); err != nil || e.Cost.Tokens != 1412 || e.Learned.Samples != 311 {
			t.Errorf("Estimate: %+v, %v", e, err)
		}
		w.broker.on(wire.VerbExplain, raw(`{"decision":{"decision":"grant","class":"batch"},"why":"there is room","limits":[],"classes":[]}`))
		if e, err := c.Explain(t.Context(), smallRequest); err != nil || e.Decision.Verdict != wire.Grant || e.Why != "there is room" {
			t.Errorf("Explain: %+v, %v", e, err)
		}
		w.broker.on(wire.VerbStatus, raw(`{"pool":"default","epoch":7}`))
		if s, err := c.Status(t.Context()); err != nil || s.Epoch != 7 {
			t.Errorf("Status: %+v, %v", s, err)
		}
		w.broker.on(wire.VerbStatus, raw(`nonsense`))
		if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "the reply to status cannot be read") {
			t.Errorf("Status: %v", err)
		}
		if ok, err := c.Cancel(t.Context(), wire.CancelRequest{RequestID: "job-1"}); err != nil || !ok {
			t.Errorf("Cancel: %v, %v", ok, err)
		}
		if _, err := c.Cancel(t.Context(), wire.CancelRequest{}); !errors.Is(err, &wire.Error{Code: wire.CodeBadRequest}) {
			t.Errorf("Cancel of nothing: %v", err)
		}
	})
}
