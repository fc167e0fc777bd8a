package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/wire"
)

// Client asks one pool of a broker on behalf of one source. Make it with Connect
// or New, and Close it. It is safe for concurrent use.
type Client struct {
	opts     Options
	x        *exchange
	ownsConn bool
	alone    allowance   // what OnBrokerLoss lets this client grant
	away     atomic.Bool // the last request found no broker

	closing     context.Context // ends the pauses between attempts
	renewal     context.Context // ends the renewals, once nothing is being settled
	beginClose  context.CancelFunc
	endRenewals context.CancelFunc
	mu          struct {
		sync.Mutex
		closed   bool           // what is added to the groups is added under the lock, while not closed
		settling sync.WaitGroup // settlements in the background
		renewing sync.WaitGroup
	}
}

// Conn returns the connection that the Client uses.
func (c *Client) Conn() *nats.Conn { return c.x.nc }

// Close delivers the settlements that are under way, ends all renewals and waits
// for both, and closes the connection if Connect opened it. Leases that are
// neither settled nor detached are given up as by [Lease.Close]. Calls that wait
// return ErrClosed.
func (c *Client) Close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	c.beginClose()
	c.mu.settling.Wait()
	c.endRenewals()
	c.mu.renewing.Wait()
	c.x.close()
	if c.ownsConn {
		c.x.nc.Close()
	}
}

// run starts f in one of the groups, which Close waits for, unless the Client is
// closed.
func (c *Client) run(group *sync.WaitGroup, f func()) (started bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return false
	}
	group.Go(f)
	return true
}

// Estimate asks what a request would cost. It charges nothing.
func (c *Client) Estimate(ctx context.Context, req Request) (wire.EstimateReply, error) {
	var reply wire.EstimateReply
	err := c.ask(ctx, wire.VerbEstimate, req, &reply)
	return reply, err
}

// Explain asks what Try would be answered now, and why. It charges nothing.
func (c *Client) Explain(ctx context.Context, req Request) (wire.Explanation, error) {
	var reply wire.Explanation
	err := c.ask(ctx, wire.VerbExplain, req, &reply)
	return reply, err
}

// Status asks for the pool's snapshot.
func (c *Client) Status(ctx context.Context) (wire.Status, error) {
	var reply wire.Status
	err := c.call(ctx, wire.VerbStatus, []byte("{}"), &reply)
	return reply, err
}

// Cancel takes back a waiting request, or settles a lease as unsent. Exactly one
// field of what is set. It reports whether there was anything to take back.
func (c *Client) Cancel(ctx context.Context, what wire.CancelRequest) (bool, error) {
	if err := what.Validate(); err != nil {
		return false, err
	}
	var reply wire.CancelReply
	err := c.call(ctx, wire.VerbCancel, wire.AppendCancel(nil, &what), &reply)
	return reply.Cancelled, err
}

// Renew prolongs a lease that is known by its id only, and returns how long it
// lasts from now. A ttl of 0 is the pool's default. A [Lease] renews itself.
func (c *Client) Renew(ctx context.Context, id wire.LeaseID, ttl time.Duration) (time.Duration, error) {
	ask := wire.RenewRequest{Lease: id, TTLMS: ttl.Milliseconds()}
	if err := ask.Validate(); err != nil {
		return 0, err
	}
	var reply wire.RenewReply
	err := c.call(ctx, wire.VerbRenew, wire.AppendRenew(nil, &ask), &reply)
	return milliseconds(reply.TTLMS), err
}

// Settle settles a lease that is known by its id only, as [Lease.Settle] does.
func (c *Client) Settle(ctx context.Context, id wire.LeaseID, s Settlement) (wire.SettleReply, error) {
	payload, err := s.encode(id)
	if err != nil {
		return wire.SettleReply{}, err
	}
	return c.settle(ctx, payload)
}

// settle delivers a settlement, as often as it takes: the broker takes it once.
func (c *Client) settle(ctx context.Context, payload []byte) (wire.SettleReply, error) {
	for failures := 0; ; failures++ {
		var reply wire.SettleReply
		msg, err := c.exchange(ctx, wire.VerbSettle, payload, c.opts.Timeout)
		if err == nil {
			err = wire.DecodeSettleReply(msg.Data, &reply)
		}
		switch {
		case err == nil:
			return reply, nil
		case retryable(err):
			ended := c.sleep(ctx, backoff(failures))
			if ended == nil {
				continue
			}
			err = fmt.Errorf("%w: %w", ended, err)
		}
		return reply, fmt.Errorf("settling: %w", err)
	}
}

// ask sends a request that is answered without being queued.
func (c *Client) ask(ctx context.Context, verb wire.Verb, req Request, reply any) error {
	a, err := c.prepare(&req)
	if err != nil {
		return err
	}
	return c.call(ctx, verb, wire.AppendAcquire(nil, &a), reply)
}

// prepare encodes and checks a request. The size comes first: to read a body that
// will not fit would be for nothing.
func (c *Client) prepare(req *Request) (wire.AcquireRequest, error) {
	if err := c.x.fits(req.Body); err != nil {
		return wire.AcquireRequest{}, err
	}
	return req.encode()
}

// call is one exchange whose reply is plain JSON.
func (c *Client) call(ctx context.Context, verb wire.Verb, payload []byte, reply any) error {
	msg, err := c.exchange(ctx, verb, payload, c.opts.Timeout)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(msg.Data, reply); err != nil {
		return fmt.Errorf("the reply to %s cannot be read: %w", verb, err)
	}
	return nil
}

// exchange sends one message to the pool and returns the reply, or the error that
// the reply is. It keeps note of whether there is a broker.
func (c *Client) exchange(ctx context.Context, verb wire.Verb, payload []byte, timeout time.Duration) (*nats.Msg, error) {
	msg, err := c.x.request(ctx, c.subject(verb), payload, timeout)
	if err == nil {
		err = replyError(msg)
	}
	switch {
	case errors.Is(err, ErrUnavailable):
		if !c.away.Swap(true) {
			c.opts.Logger.Warn("the broker does not answer", "error", err, "pool", c.opts.Pool)
			if c.opts.OnAbsence != nil {
				c.opts.OnAbsence(err)
			}
		}
	case msg != nil && c.away.Load() && c.away.Swap(false):
		c.opts.Logger.Info("the broker answers again", "pool", c.opts.Pool)
	}
	return msg, err
}

func (c *Client) subject(verb wire.Verb) string {
	return wire.Subject(c.opts.Prefix, verb, c.opts.Source, c.opts.Pool)
}

// The headers of an error reply, as nats.go/micro names them.
const (
	headerErrorCode = "Nats-Service-Error-Code"
	headerError     = "Nats-Service-Error"
)

// replyError returns the error that a reply is, nil for any other reply.
func replyError(msg *nats.Msg) error {
	code := msg.Header.Get(headerErrorCode)
	if code == "" {
		return nil
	}
	var body wire.ErrorBody
	if json.Unmarshal(msg.Data, &body) != nil || body.Error == nil {
		body.Error = &wire.Error{Code: codeOf(code), Message: msg.Header.Get(headerError)}
	}
	err := body.Error
	switch err.Code {
	case wire.CodeUnavailable:
		return unavailable(err)
	case wire.CodeForbidden:
		return forbidden(err)
	case wire.CodePayloadTooLarge:
		return fmt.Errorf("%w: %w", ErrPayloadTooLarge, err)
	default:
		return err
	}
}

// codeOf is the error code for the number of a reply without a body, which came
// from something between the broker and here.
func codeOf(number string) wire.Code {
	n, _ := strconv.Atoi(number) // what is no number is no code: internal
	for _, c := range []wire.Code{
		wire.CodeBadRequest, wire.CodeForbidden, wire.CodePayloadTooLarge, wire.CodeUnavailable,
	} {
		if c.Status() == n {
			return c
		}
	}
	return wire.CodeInternal
}
