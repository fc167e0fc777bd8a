package client_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"quotabroker/client"
	"quotabroker/wire"
)

func onLoss(p client.LossPolicy) func(*client.Options) {
	return func(o *client.Options) { o.OnBrokerLoss = p }
}

func TestSafeRateGrantsUpToItsRate(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.leave()
		c := w.client(onLoss(client.SafeRate(2500)))
		defer c.Close()
		for i := range 4 { // of 1000 tokens each
			l, err := c.Acquire(t.Context(), smallRequest)
			if err != nil {
				t.Fatal(err)
			}
			if !l.Local() || l.ID() != (wire.LeaseID{}) || l.Grant().Cost.Tokens != 1000 {
				t.Errorf("lease %v of %+v, local %v", l.ID(), l.Grant(), l.Local())
			}
			if granted := w.since(); i < 2 && granted != 0 || i == 2 && granted < time.Minute || granted > 62*time.Second {
				t.Errorf("grant %d after %v", i, granted)
			}
			l.Close()
		}
	})
}

func TestSafeRateCountsWhatWasUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.leave()
		c := w.client(onLoss(client.SafeRate(1000)))
		defer c.Close()
		for _, s := range []client.Settlement{client.Unsent(), client.Used(1, 0), client.Unsent()} {
			l, err := c.Acquire(t.Context(), client.Request{InputTokens: client.Tokens(999), MaxOutputTokens: client.Tokens(0)})
			if err != nil {
				t.Fatal(err)
			}
			reply, err := l.Settle(t.Context(), s)
			if err != nil || reply.DeltaTokens >= 0 {
				t.Errorf("settled %+v, %v", reply, err)
			}
			again, err := l.Settle(t.Context(), s)
			if err != nil || again != reply {
				t.Errorf("again %+v, %v", again, err)
			}
			if _, err := l.Settle(t.Context(), client.Used(5, 5)); !errors.Is(err, &wire.Error{Code: wire.CodeAlreadySettled}) {
				t.Errorf("otherwise: %v", err)
			}
		}
		if w.since() != 0 {
			t.Errorf("what was not used was not given back: %v", w.since())
		}
		// One that took more than it asked for holds back the next.
		l, err := c.Acquire(t.Context(), client.Request{InputTokens: client.Tokens(1), MaxOutputTokens: client.Tokens(0)})
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := l.Settle(t.Context(), client.Used(900, 1100)); err != nil || reply.DeltaTokens != 1999 {
			t.Errorf("settled %+v, %v", reply, err)
		}
		l, err = c.Acquire(t.Context(), client.Request{InputTokens: client.Tokens(1), MaxOutputTokens: client.Tokens(0)})
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if w.since() < time.Minute {
			t.Errorf("granted after %v although the minute was overdrawn", w.since())
		}
	})
}

func TestRequestAboveTheWholeRateWaitsForTheBroker(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.leave()
		c := w.client(onLoss(client.SafeRate(999)))
		defer c.Close()
		ctx, cancel := withTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, smallRequest); !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("Acquire: %v", err)
		}
	})
}

func TestLocalRateEndsWhenTheBrokerIsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.leave()
		c := w.client(onLoss(client.SafeRate(1000)))
		defer c.Close()
		time.AfterFunc(10*time.Second, w.broker.serve)
		for i, local := range []bool{true, false} {
			l, err := c.Acquire(t.Context(), smallRequest)
			if err != nil {
				t.Fatal(err)
			}
			if l.Local() != local {
				t.Errorf("lease %d after %v: local %v", i, w.since(), l.Local())
			}
			l.Close()
		}
		if w.since() > 13*time.Second {
			t.Errorf("the broker's grant came after %v", w.since())
		}
	})
}

func TestAllowGrantsEverything(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.leave()
		c := w.client(onLoss(client.Allow))
		defer c.Close()
		for range 100 {
			l, err := c.Acquire(t.Context(), client.Request{InputTokens: client.Tokens(wire.MaxTokens)})
			if err != nil {
				t.Fatal(err)
			}
			if !l.Local() {
				t.Error("not local")
			}
			if _, err := l.Settle(t.Context(), client.Used(1, 1)); err != nil {
				t.Error(err)
			}
		}
		if w.since() != 0 {
			t.Errorf("took %v", w.since())
		}
	})
}

func TestRefusalIsNoLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(h heard) {
			w.broker.decide(h, wire.Decision{Verdict: wire.Refuse, Cause: wire.CauseQueueFull, RetryAfterMS: 1, Message: "full"})
		})
		c := w.client(onLoss(client.Allow))
		defer c.Close()
		var r *client.Refused
		if l, err := c.Acquire(t.Context(), smallRequest); !errors.As(err, &r) {
			t.Errorf("Acquire: %v, %v", l, err)
		}
		w.broker.on(wire.VerbAcquire, func(h heard) { w.broker.fails(h, wire.Errorf(wire.CodeInternal, "broken")) })
		if l, err := c.Acquire(t.Context(), smallRequest); err == nil {
			t.Errorf("Acquire: %v", l)
		}
	})
}

func TestWhatARequestCountsForLocally(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"user","content":"hello"}]%s}`
	base := int64(len(body) - len("%s"))
	for extra, output := range map[string]int64{
		"":                                  4096,
		`,"max_tokens":50`:                  50,
		`,"max_tokens":"much"`:              4096,
		`,"max_output_tokens":9e18`:         4096,
		`,"max_tokens":9000000000000000000`: wire.MaxTokens,
		`,"max_tokens":5,"max_completion_tokens":70`:      70,
		`,"max_output_tokens":80`:                         80,
		`,"generationConfig":{"maxOutputTokens":90}`:      90,
		`,"max_tokens":null,"generationConfig":null`:      4096,
		`,"max_tokens":-3`:                                4096,
		`,"max_completion_tokens":0,"generationConfig":1`: 0,
	} {
		t.Run(extra, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.broker.leave()
				c := w.client(onLoss(client.Allow))
				defer c.Close()
				l, err := c.Acquire(t.Context(), client.Request{Body: fmt.Appendf(nil, body, extra)})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := l.Grant().Cost.Tokens, base+int64(len(extra))+output; got != want {
					t.Errorf("counted %d, want %d", got, want)
				}
			})
		})
	}
}

func TestLocalEstimate(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.leave()
		c := w.client(func(o *client.Options) {
			o.OnBrokerLoss = client.SafeRate(10)
			o.LocalEstimate = func(r client.Request) int64 { return r.InputTokens.Value - 800 }
		})
		defer c.Close()
		l, err := c.Acquire(t.Context(), smallRequest)
		if err != nil || l.Grant().Cost.Tokens != 1 {
			t.Fatalf("%+v, %v; a call counts for a token at least", l, err)
		}
	})
}
