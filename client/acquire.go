package client

import (
	"context"
	"errors"
	"time"

	"quotabroker/wire"
)

// maxHold bounds how long one ask lets the broker hold the reply: a window of a
// minute, in which nearly everybody is granted. It also bounds how long a broker
// that died behind a NATS that lives on is waited for.
const maxHold = time.Minute

// Answer is what one ask was answered.
type Answer struct {
	Decision wire.Decision
	Lease    *Lease // on a grant: to be settled or closed; else nil
}

// Try asks once and returns the broker's decision as it is: a grant, a defer or a
// refusal; none of them is an error. Coming back after a defer, with its ticket
// and not before its time, is the caller's business, and OnBrokerLoss does not
// apply.
//
// The context bounds the call. How long the work stays useful is another thing,
// said in req.Deadline. When ctx ends first, a grant that was under way is
// not confirmed, and the request is cancelled.
func (c *Client) Try(ctx context.Context, req Request) (Answer, error) {
	a, err := c.prepare(&req)
	if err != nil {
		return Answer{}, err
	}
	answer, err := c.acquire(ctx, &a)
	if ctx.Err() != nil && err != nil {
		c.withdraw(a.RequestID)
	}
	return answer, err
}

// Acquire waits for a grant as long as ctx allows and returns the lease, which
// the caller settles. The package documentation says what it does in the
// meantime, and what errors it ends with.
//
// Acquire does not wait for nothing: where the broker expects a wait beyond ctx's
// deadline it refuses at once, and where the next moment worth asking at lies after
// it the error is a *NotGranted. Both match context.DeadlineExceeded.
func (c *Client) Acquire(ctx context.Context, req Request) (*Lease, error) {
	if req.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, req.Deadline)
		defer cancel()
	}
	ask, err := c.prepare(&req)
	if err != nil {
		return nil, err
	}
	p := pursuit{c: c, req: req, ask: ask, since: time.Now()}
	lease, err := p.run(ctx)
	var waited *NotGranted
	if errors.As(err, &waited) || lease != nil && lease.Local() {
		c.withdraw(ask.RequestID)
	}
	return lease, err
}

// pursuit is one Acquire on its way.
type pursuit struct {
	c        *Client
	req      Request
	ask      wire.AcquireRequest
	since    time.Time
	last     wire.Decision // the last defer
	absence  error         // why the broker did not answer the last ask, nil if it did
	failures int           // asks in a row without a decision
}

func (p *pursuit) run(ctx context.Context) (*Lease, error) {
	for {
		p.setBounds(ctx)
		answer, err := p.c.acquire(ctx, &p.ask)
		if err == nil && answer.Lease != nil {
			return answer.Lease, nil
		}
		if ctx.Err() != nil {
			return nil, p.notGranted(ctx.Err())
		}
		var pause time.Duration
		if err == nil {
			pause, err = p.decided(&answer.Decision)
		} else if retryable(err) {
			var lease *Lease
			if lease, pause = p.unanswered(err); lease != nil {
				return lease, nil
			}
			err = nil
		}
		if err != nil {
			return nil, err
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
			return nil, p.notGranted(context.DeadlineExceeded)
		}
		if err := p.c.sleep(ctx, pause); errors.Is(err, ErrClosed) {
			return nil, err
		} else if err != nil {
			return nil, p.notGranted(err)
		}
	}
}

// setBounds derives from ctx how long the work stays useful and how long the
// reply may be held: always less than what is left, so that the broker's last
// word arrives before ctx ends. Nothing is held while the broker is away: its
// silence should be noticed soon.
func (p *pursuit) setBounds(ctx context.Context) {
	hold := maxHold
	if deadline, ok := ctx.Deadline(); ok {
		left := max(time.Until(deadline), 0)
		p.ask.DeadlineMS = wire.Int(min(left.Milliseconds(), wire.MaxDurationMS))
		hold = min(hold, left-min(left, max(left/10, 20*time.Millisecond)))
	}
	if p.c.away.Load() {
		hold = 0
	}
	p.ask.WaitMS = hold.Milliseconds()
}

// decided takes a decision that is no grant: how long to pause before the next
// ask, or the error it ends with.
func (p *pursuit) decided(d *wire.Decision) (pause time.Duration, err error) {
	switch {
	case d.Verdict == wire.Defer:
		p.failures, p.absence = 0, nil
		p.last = *d
		p.ask.Ticket = d.Ticket
		return milliseconds(d.RetryAfterMS), nil
	case d.Cause == wire.CauseDraining:
		// This instance is going away; whoever takes over may say otherwise.
		p.absence = unavailable(refused(d))
		p.failures++
		return max(backoff(p.failures-1), milliseconds(d.RetryAfterMS)), nil
	default:
		return 0, refused(d)
	}
}

// unanswered decides what to do about a broker that is away: a lease on the
// client's own authority where OnBrokerLoss has room for it, or how long to pause
// before the next ask.
func (p *pursuit) unanswered(err error) (*Lease, time.Duration) {
	p.absence = err
	pause := backoff(p.failures)
	p.failures++
	if p.c.opts.OnBrokerLoss == Stop {
		return nil, pause
	}
	tokens := p.c.localTokens(&p.req)
	charge, room := p.c.alone.take(time.Now(), tokens)
	if charge == nil {
		return nil, min(pause, room)
	}
	return p.c.newLocalLease(charge, tokens), 0
}

func (p *pursuit) notGranted(err error) error {
	return &NotGranted{Waited: time.Since(p.since), Last: p.last, Err: err, Broker: p.absence}
}

// acquire asks once. On a grant the lease renews itself and is confirmed; when
// ctx has ended it is neither, and the broker takes it back.
func (c *Client) acquire(ctx context.Context, a *wire.AcquireRequest) (Answer, error) {
	timeout := milliseconds(a.WaitMS) + c.opts.Timeout
	msg, err := c.exchange(ctx, wire.VerbAcquire, wire.AppendAcquire(nil, a), timeout)
	if err != nil {
		return Answer{}, err
	}
	var answer Answer
	if err := wire.DecodeDecision(msg.Data, &answer.Decision); err != nil {
		return Answer{}, err
	}
	if answer.Decision.Verdict != wire.Grant {
		return answer, nil
	}
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	if answer.Lease = c.newLease(answer.Decision); answer.Lease == nil {
		return Answer{}, ErrClosed
	}
	if err := c.x.confirm(msg); err != nil {
		answer.Lease.Detach() // it is taken back; the next ask carries the same id
		return Answer{}, err
	}
	return answer, nil
}

// withdraw tells the broker that nobody waits for a request any more.
func (c *Client) withdraw(requestID string) {
	c.x.tell(c.subject(wire.VerbCancel), wire.AppendCancel(nil, &wire.CancelRequest{RequestID: requestID}))
}
