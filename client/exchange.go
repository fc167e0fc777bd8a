package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// exchange carries requests over a connection and brings their replies back. It
// differs from nats.Conn.RequestWithContext in three ways that a caller notices:
//
//   - a request in flight fails at once when the connection is lost;
//   - so does one that the server will not deliver, or whose reply it will not;
//   - the inbox lies under the source's prefix whatever the connection's is, so
//     that several sources can share a connection.
//
// It is safe for concurrent use.
type exchange struct {
	nc     *nats.Conn
	inbox  string // "_INBOX.eval.<random>."; a token follows
	log    *slog.Logger
	status chan nats.Status
	done   chan struct{} // closed when watch has ended

	mu struct {
		sync.Mutex
		sub     *nats.Subscription // nil before the first request, and after a denial
		waiting map[string]*inFlight
		last    uint64 // of the tokens
		closed  bool
	}
}

// inFlight is one request whose reply is waited for.
type inFlight struct {
	subject string
	result  chan result // has room for the one result
}

type result struct {
	msg *nats.Msg
	err error
}

func newExchange(nc *nats.Conn, prefix string, log *slog.Logger) *exchange {
	x := &exchange{
		nc:     nc,
		inbox:  prefix + "." + rand.Text() + ".",
		log:    log,
		status: nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.CLOSED),
		done:   make(chan struct{}),
	}
	x.mu.waiting = make(map[string]*inFlight)
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		x.asyncError(err)
		if before != nil {
			before(nc, sub, err)
		}
	})
	go x.watch()
	return x
}

// close fails what is in flight. The connection is the caller's to close.
func (x *exchange) close() {
	x.mu.Lock()
	x.mu.closed = true
	sub := x.mu.sub
	x.mu.sub = nil
	x.mu.Unlock()
	x.fail(ErrClosed, nil)
	if sub != nil {
		_ = sub.Unsubscribe() // fails only where the connection is gone already
	}
	x.nc.RemoveStatusListener(x.status) // closes the channel
	<-x.done
}

// request sends payload and waits for the reply: until ctx ends, whose error it
// then returns bare, or for as long as timeout.
func (x *exchange) request(ctx context.Context, subject string, payload []byte, timeout time.Duration) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := x.sendable(payload); err != nil {
		return nil, err
	}
	token, r, err := x.enter(subject)
	if err != nil {
		return nil, err
	}
	defer x.leave(token)
	if err := x.nc.PublishRequest(subject, x.inbox+token, payload); err != nil {
		return nil, x.publishError(err, payload)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case res := <-r.result:
		return res.msg, res.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, unavailable(fmt.Errorf("no reply within %v", timeout))
	}
}

// tell sends payload and does not wait for the reply: whether it arrives, nobody
// learns. The reply has somewhere to go, since a broker need not listen to a
// message without that.
func (x *exchange) tell(subject string, payload []byte) {
	if x.sendable(payload) == nil {
		_ = x.nc.PublishRequest(subject, x.inbox+"0", payload) // best effort
	}
}

// confirm answers a grant, if the broker asked for that.
func (x *exchange) confirm(grant *nats.Msg) error {
	if grant.Reply == "" {
		return nil
	}
	if err := x.sendable(nil); err != nil {
		return err
	}
	if err := x.nc.Publish(grant.Reply, nil); err != nil {
		return x.publishError(err, nil)
	}
	return nil
}

// sendable says why a message cannot be sent now. It is asked before the
// connection is, so that not even a connection with a reconnect buffer keeps a
// message for later.
func (x *exchange) sendable(payload []byte) error {
	if err := x.fits(payload); err != nil {
		return err
	}
	switch x.nc.Status() {
	case nats.CONNECTED, nats.DRAINING_SUBS:
		return nil
	case nats.CLOSED:
		return x.publishError(nats.ErrConnectionClosed, nil)
	default:
		return unavailable(nats.ErrDisconnected)
	}
}

// fits checks a size against the server's limit, which it told when connecting.
func (x *exchange) fits(payload []byte) error {
	if limit := x.nc.MaxPayload(); limit > 0 && int64(len(payload)) > limit {
		return payloadTooLarge(len(payload), limit)
	}
	return nil
}

func (x *exchange) publishError(err error, payload []byte) error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return payloadTooLarge(len(payload), x.nc.MaxPayload())
	case errors.Is(err, nats.ErrBadSubject):
		return err
	case errors.Is(err, nats.ErrConnectionClosed):
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.mu.closed {
			return ErrClosed
		}
		return unavailable(err)
	default:
		return unavailable(err)
	}
}

// enter makes a token for a request and listens for its reply.
func (x *exchange) enter(subject string) (token string, r *inFlight, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.closed {
		return "", nil, ErrClosed
	}
	if x.mu.sub == nil {
		if x.mu.sub, err = x.nc.Subscribe(x.inbox+"*", x.deliver); err != nil {
			x.mu.sub = nil
			return "", nil, unavailable(err)
		}
	}
	x.mu.last++
	token = strconv.FormatUint(x.mu.last, 36)
	r = &inFlight{subject: subject, result: make(chan result, 1)}
	x.mu.waiting[token] = r
	return token, r, nil
}

func (x *exchange) leave(token string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.mu.waiting, token)
}

// deliver hands a reply to whoever waits for it. One that nobody waits for any
// more is dropped: a grant among them stays unconfirmed.
func (x *exchange) deliver(m *nats.Msg) {
	token := strings.TrimPrefix(m.Subject, x.inbox)
	x.mu.Lock()
	r := x.mu.waiting[token]
	delete(x.mu.waiting, token)
	x.mu.Unlock()
	if r == nil {
		return
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		r.result <- result{err: unavailable(nats.ErrNoResponders)}
		return
	}
	r.result <- result{msg: m}
}

// fail ends the requests in flight that concern is true for; nil means all.
func (x *exchange) fail(err error, concern func(*inFlight) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for token, r := range x.mu.waiting {
		if concern == nil || concern(r) {
			delete(x.mu.waiting, token)
			r.result <- result{err: err}
		}
	}
}

// watch fails what is in flight when the connection is lost: its replies were on
// their way to a subscription that is no more.
func (x *exchange) watch() {
	defer close(x.done)
	for s := range x.status {
		switch s {
		case nats.CONNECTED:
			x.log.Info("connected to NATS", "server", x.nc.ConnectedUrlRedacted())
		case nats.RECONNECTING:
			x.log.Warn("connection to NATS lost")
			x.fail(unavailable(nats.ErrDisconnected), nil)
		case nats.CLOSED:
			x.fail(unavailable(nats.ErrConnectionClosed), nil)
			return
		default: // the others are not listened to
		}
	}
}

// asyncError finds out whom a permissions violation concerns. The server names
// the subject but not the message, and a permission is for all messages alike.
func (x *exchange) asyncError(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	_, quoted, _ := strings.Cut(err.Error(), `"`)
	subject, _, _ := strings.Cut(quoted, `"`)
	if subject != x.inbox+"*" {
		x.fail(forbidden(err), func(r *inFlight) bool { return r.subject == subject })
		return
	}
	x.mu.Lock()
	sub := x.mu.sub
	x.mu.sub = nil // the next request tries anew: permissions can change while connected
	x.mu.Unlock()
	x.fail(forbidden(err), nil)
	if sub != nil {
		_ = sub.Unsubscribe() // the server never had it
	}
}
