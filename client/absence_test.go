package client_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"quotabroker/client"
	"quotabroker/wire"
)

func TestAbsentBrokerIsNoticedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.leave()
		c := w.client(nil)
		defer c.Close()
		_, err := c.Try(t.Context(), smallRequest)
		if !errors.Is(err, client.ErrUnavailable) || !errors.Is(err, nats.ErrNoResponders) || w.since() != 0 {
			t.Errorf("Try after %v: %v", w.since(), err)
		}
		ctx, cancel := withTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = c.Acquire(ctx, smallRequest)
		var n *client.NotGranted
		if !errors.Is(err, client.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &n) {
			t.Errorf("Acquire: %v", err)
		}
		if since := w.since(); since < 3500*time.Millisecond || since > 5*time.Second {
			t.Errorf("Acquire gave up after %v of its 5 s", since)
		}
		if !strings.Contains(err.Error(), "no broker answers") {
			t.Errorf("it says %q", err)
		}
	})
}

func TestAcquireSucceedsWhenTheBrokerComesBack(t *testing.T) {
	for range 20 { // the pauses are random
		inBubble(t, func(t *testing.T, w *world) {
			w.broker.leave()
			c := w.client(nil)
			defer c.Close()
			time.AfterFunc(20*time.Second, w.broker.serve)
			l, err := c.Acquire(t.Context(), smallRequest)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
			if late := w.since() - 20*time.Second; late < 0 || late > 3*time.Second {
				t.Errorf("granted %v after the broker was back", late)
			}
		})
	}
}

func TestSilentBrokerIsTakenForAbsent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(heard) {})
		c := w.client(nil)
		defer c.Close()
		_, err := c.Try(t.Context(), smallRequest)
		if !errors.Is(err, client.ErrUnavailable) || w.since() != 2*time.Second {
			t.Errorf("Try after %v: %v", w.since(), err)
		}
		ctx, cancel := withTimeout(t.Context(), 30*time.Second)
		defer cancel()
		time.AfterFunc(10*time.Second, func() { w.broker.on(wire.VerbAcquire, nil) })
		l, err := c.Acquire(ctx, smallRequest)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		asks := w.broker.heard(wire.VerbAcquire)
		for _, h := range asks[1:] {
			if h.ask.WaitMS != 0 {
				t.Errorf("asked for a hold of %d ms from a broker that is silent", h.ask.WaitMS)
			}
		}
		if late := w.since() - 12*time.Second; late > 4*time.Second {
			t.Errorf("granted %v after the broker spoke again", late)
		}
	})
}

func TestLostConnectionFailsWhatIsInFlight(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(heard) {}) // holds for ever
		c := w.client(nil)
		defer c.Close()
		time.AfterFunc(time.Second, w.stopServer)
		req := smallRequest
		req.Hold = 20 * time.Second
		_, err := c.Try(t.Context(), req)
		if !errors.Is(err, client.ErrUnavailable) || w.since() != time.Second {
			t.Errorf("after %v: %v", w.since(), err)
		}
	})
}

// An ask made while the connection is down is never delivered, neither at once
// nor when the connection is back; the next one is.
func TestOldRequestIsNotDeliveredAfterReconnect(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		w.stopServer()
		synctest.Wait()
		for _, try := range []func(context.Context, client.Request) error{
			func(ctx context.Context, r client.Request) error { _, err := c.Try(ctx, r); return err },
			func(ctx context.Context, r client.Request) error { _, err := c.Acquire(ctx, r); return err },
		} {
			ctx, cancel := withTimeout(t.Context(), 500*time.Millisecond)
			if err := try(ctx, smallRequest); !errors.Is(err, client.ErrUnavailable) {
				t.Errorf("while disconnected: %v", err)
			}
			cancel()
		}
		time.Sleep(5 * time.Second)
		w.startServer(nil)
		back := w.since()
		l, err := c.Acquire(t.Context(), smallRequest)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if late := w.since() - back; late > 3*time.Second {
			t.Errorf("granted %v after the server was back", late)
		}
		if asks := w.broker.heard(wire.VerbAcquire); len(asks) != 1 {
			t.Errorf("the broker heard %d asks, of which one was current", len(asks))
		}
	})
}

func TestOutageOfTenMinutes(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		w.stopServer()
		time.AfterFunc(10*time.Minute, func() { w.startServer(nil) })
		l, err := c.Acquire(t.Context(), smallRequest)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if late := w.since() - 10*time.Minute; late > 3*time.Second {
			t.Errorf("granted %v after the server was back", late)
		}
	})
}

// With nats.RetryOnFailedConnect the server need not be there yet.
func TestServerThatStartsLater(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.stop()
		w.stopServer()
		c := w.client(func(o *client.Options) { o.NATS = append(o.NATS, nats.RetryOnFailedConnect(true)) })
		defer c.Close()
		if _, err := c.Try(t.Context(), smallRequest); !errors.Is(err, client.ErrUnavailable) || w.since() != 0 {
			t.Errorf("Try after %v: %v", w.since(), err)
		}
		time.AfterFunc(time.Minute, func() {
			w.startServer(nil)
			w.broker = w.startBroker()
		})
		l, err := c.Acquire(t.Context(), smallRequest)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if late := w.since() - time.Minute; late > 3*time.Second {
			t.Errorf("granted %v after the server was there", late)
		}
	})
}

func TestConnectionClosedForGood(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(heard) {})
		c := w.client(nil)
		defer c.Close()
		time.AfterFunc(time.Second, c.Conn().Close)
		for range 2 { // in flight, and afterwards
			_, err := c.Acquire(t.Context(), smallRequest)
			if !errors.Is(err, client.ErrUnavailable) || !errors.Is(err, nats.ErrConnectionClosed) || w.since() != time.Second {
				t.Errorf("Acquire after %v: %v; there is nothing to wait for", w.since(), err)
			}
		}
		if _, err := c.Settle(t.Context(), wire.LeaseID{Epoch: 7, N: 1}, client.Unsent()); !errors.Is(err, nats.ErrConnectionClosed) {
			t.Errorf("Settle: %v", err)
		}
	})
}

func TestConnectionIsSetUpForLongOutagesAndNarrowPermissions(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(func(o *client.Options) {
			o.NATS = append(o.NATS, nats.MaxReconnects(3), nats.ReconnectBufSize(1<<20), nats.CustomInboxPrefix("_INBOX.other"))
		})
		defer c.Close()
		o := c.Conn().Opts
		if o.MaxReconnect != -1 || o.ReconnectBufSize != -1 || !o.IgnoreAuthErrorAbort || o.InboxPrefix != "_INBOX.eval" {
			t.Errorf("MaxReconnect %d, ReconnectBufSize %d, IgnoreAuthErrorAbort %v, InboxPrefix %q",
				o.MaxReconnect, o.ReconnectBufSize, o.IgnoreAuthErrorAbort, o.InboxPrefix)
		}
	})
}

func TestServerNotThereAtAll(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.stop()
		w.stopServer()
		_, err := client.Connect(t.Context(), client.Options{Source: "eval", NATS: []nats.Option{nats.InProcessServer(w)}})
		if !errors.Is(err, client.ErrUnavailable) || w.since() != 0 {
			t.Errorf("Connect after %v: %v", w.since(), err)
		}
	})
}

func TestPayloadTooLargeNamesTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 1_200_000) + `"}]}`)
		_, err := c.Acquire(t.Context(), client.Request{Body: body})
		if !errors.Is(err, client.ErrPayloadTooLarge) || !strings.Contains(err.Error(), "at most 1048576") {
			t.Errorf("Acquire: %v", err)
		}
		// A body that fits but does not with what goes around it.
		body = bytes.Join([][]byte{[]byte(`{"a":"`), bytes.Repeat([]byte("x"), 1_048_560), []byte(`"}`)}, nil)
		if _, err := c.Acquire(t.Context(), client.Request{Body: body}); !errors.Is(err, client.ErrPayloadTooLarge) {
			t.Errorf("Acquire: %v", err)
		}
		if got := w.broker.heard(wire.VerbAcquire); len(got) != 0 || w.since() != 0 {
			t.Errorf("%d asks were heard, after %v", len(got), w.since())
		}
	})
}

// guarded restarts NATS so that eval may do what a source may, and nothing more. A
// grant is confirmed on a subject that the broker chose, as a response.
func (w *world) guarded(publish, subscribe string) {
	w.broker.stop()
	w.stopServer()
	w.startServer(func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "broker", Password: "b"},
			{Username: "eval", Password: "e", Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{publish}},
				Subscribe: &server.SubjectPermission{Allow: []string{subscribe}},
				Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute},
			}},
		}
	})
	w.broker = w.startBroker(nats.UserInfo("broker", "b"))
}

func as(user, password string, change func(*client.Options)) func(*client.Options) {
	return func(o *client.Options) {
		o.NATS = append(o.NATS, nats.UserInfo(user, password))
		if change != nil {
			change(o)
		}
	}
}

func TestPermissionsOfASourceAreEnough(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.guarded("quota.v1.*.eval.>", "_INBOX.eval.>")
		c := w.client(as("eval", "e", nil))
		defer c.Close()
		l, err := c.Acquire(t.Context(), smallRequest)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Settle(t.Context(), client.Used(700, 100)); err != nil {
			t.Error(err)
		}
		if got := w.broker.confirmed(); len(got) != 1 {
			t.Errorf("confirmed %v", got)
		}
	})
}

func TestDeniedPublishIsForbiddenAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.guarded("quota.v1.*.eval.>", "_INBOX.>")
		c := w.client(as("eval", "e", func(o *client.Options) { o.Source = "api" }))
		defer c.Close()
		_, err := c.Acquire(t.Context(), smallRequest)
		if !errors.Is(err, client.ErrForbidden) || !strings.Contains(err.Error(), "quota.v1.acquire.api.default") || w.since() != 0 {
			t.Errorf("Acquire after %v: %v", w.since(), err)
		}
	})
}

func TestDeniedInboxIsForbiddenAtOnceUntilItIsAllowed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.guarded("quota.v1.*.eval.>", "_INBOX.other.>")
		w.broker.on(wire.VerbAcquire, func(heard) {})
		c := w.client(as("eval", "e", nil))
		defer c.Close()
		for range 2 {
			if _, err := c.Acquire(t.Context(), smallRequest); !errors.Is(err, client.ErrForbidden) || w.since() != 0 {
				t.Errorf("Acquire after %v: %v", w.since(), err)
			}
		}
		w.guarded("quota.v1.*.eval.>", "_INBOX.eval.>")
		l, err := c.Acquire(t.Context(), smallRequest)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
}

// Over TCP, in real time: an in-process pipe closes before the reason is read.
func TestWrongPasswordIsForbidden(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, Username: "eval", Password: "e"})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	_, err = client.Connect(t.Context(), client.Options{URL: s.ClientURL(), Source: "eval", NATS: []nats.Option{nats.UserInfo("eval", "wrong")}})
	if !errors.Is(err, client.ErrForbidden) || errors.Is(err, client.ErrUnavailable) {
		t.Errorf("with a wrong password: %v", err)
	}
	c, err := client.Connect(t.Context(), client.Options{URL: s.ClientURL(), Source: "eval", NATS: []nats.Option{nats.UserInfo("eval", "e")}})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestSeveralSourcesShareAConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		told := make(chan error, 10)
		nc, err := nats.Connect("", append(client.NATSOptions("gateway"), nats.InProcessServer(w),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { told <- err }))...)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		var clients []*client.Client
		for _, source := range []string{"api", "eval"} {
			c, err := client.New(nc, client.Options{Source: source})
			if err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
			l, err := c.Acquire(t.Context(), smallRequest)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
		asks := w.broker.heard(wire.VerbAcquire)
		if len(asks) != 2 || asks[0].source != "api" || asks[1].source != "eval" {
			t.Errorf("heard %+v", asks)
		}
		clients[0].Close()
		if nc.IsClosed() {
			t.Error("Close closed a connection that is not its own")
		}
		if _, err := clients[0].Acquire(t.Context(), smallRequest); !errors.Is(err, client.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if _, err := clients[1].Status(t.Context()); err != nil {
			t.Errorf("the other client: %v", err)
		}
		clients[1].Close()
		nc.ErrorHandler()(nc, nil, errors.New("something"))
		if err := <-told; err.Error() != "something" {
			t.Errorf("the connection's own error handler was told %v", err)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for want, opts := range map[string]client.Options{
		`Options.Source is ""`:       {},
		`Options.Source is "a.b"`:    {Source: "a.b"},
		`Options.Pool is "*"`:        {Source: "a", Pool: "*"},
		`Options.Prefix is "q.>"`:    {Source: "a", Prefix: "q.>"},
		`Options.Timeout is -1ns`:    {Source: "a", Timeout: -1},
		`SafeRate(-1); it must be 0`: {Source: "a", OnBrokerLoss: client.SafeRate(-1)},
	} {
		if _, err := client.Connect(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// OnAbsence hears of each absence once, however often it is asked in vain.
func TestOnAbsence(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var heard []error
		c := w.client(func(o *client.Options) { o.OnAbsence = func(err error) { heard = append(heard, err) } })
		defer c.Close()
		for absence := range 2 {
			w.broker.leave()
			for range 3 {
				if _, err := c.Try(t.Context(), smallRequest); !errors.Is(err, client.ErrUnavailable) {
					t.Errorf("Try: %v", err)
				}
			}
			if len(heard) != absence+1 || !errors.Is(heard[absence], client.ErrUnavailable) {
				t.Errorf("after %d absences it heard %v", absence+1, heard)
			}
			w.broker.serve()
			a, err := c.Try(t.Context(), smallRequest)
			if err != nil {
				t.Fatal(err)
			}
			a.Lease.Close()
		}
	})
}
