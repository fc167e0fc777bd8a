package client

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"quotabroker/wire"
)

// Lease is the right to make one call. It renews itself, at a third of its time
// to live, until it is settled, closed or detached. It is safe for concurrent use.
type Lease struct {
	c     *Client
	grant wire.Decision
	local *charge // nil on a lease from the broker

	lost chan struct{}      // closed when the lease is gone
	stop context.CancelFunc // ends the renewal
	done chan struct{}      // closed when the renewal has ended

	mu struct {
		sync.Mutex
		end     ending
		err     error            // why it was lost
		payload []byte           // of the settlement
		reply   wire.SettleReply // to the settlement
	}
}

// ending is how a lease has ended for its holder.
type ending uint8

const (
	endNot      ending = iota
	endSettled         // the broker has confirmed the settlement
	endClosed          // given up
	endDetached        // left to somebody else
)

// newLease makes the lease of a grant and starts its renewal; nil when the client
// is closed.
func (c *Client) newLease(grant wire.Decision) *Lease {
	l := &Lease{c: c, grant: grant, lost: make(chan struct{}), done: make(chan struct{})}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(c.renewal)
	started := c.run(&c.mu.renewing, func() {
		defer close(l.done)
		l.keep(ctx)
		if c.renewal.Err() != nil {
			l.giveUp()
		}
	})
	if !started {
		l.stop()
		return nil
	}
	return l
}

// newLocalLease makes a lease on the client's own authority.
func (c *Client) newLocalLease(charge *charge, tokens int64) *Lease {
	l := &Lease{c: c, local: charge, lost: make(chan struct{}), stop: func() {}, done: make(chan struct{})}
	l.grant = wire.Decision{Verdict: wire.Grant, Pool: c.opts.Pool, Cost: wire.Cost{Requests: 1, Tokens: tokens}}
	close(l.done)
	return l
}

// ID returns the broker's name for the lease, the zero id for a local one.
func (l *Lease) ID() wire.LeaseID { return l.grant.Lease }

// Grant returns the decision the lease came from: its class, its cost, how long
// it waited.
func (l *Lease) Grant() wire.Decision { return l.grant }

// Local reports whether no broker granted this lease, but the client itself by
// OnBrokerLoss.
func (l *Lease) Local() bool { return l.local != nil }

// Lost is closed when the broker no longer counts the lease as in flight, since
// it could not be renewed in time. What was reserved stays charged, so the call
// may go on; it should still be settled, which the broker takes as a correction.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Err returns why the lease was lost, an error that matches ErrLeaseLost; nil as
// long as it is not.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.err
}

// Settle says how the call ended, and returns what was charged. It ends the
// renewal. While the broker is away it tries again as long as ctx allows; the
// broker takes a settlement once, however often it arrives.
//
// Settling again with the same figures returns the same reply; with others it is
// an error of code already_settled. Figures that cannot be are an error of code
// bad_request, and the lease is as before.
func (l *Lease) Settle(ctx context.Context, s Settlement) (wire.SettleReply, error) {
	if l.local != nil {
		return l.settleLocal(s)
	}
	payload, err := s.encode(l.grant.Lease)
	if err != nil {
		return wire.SettleReply{}, err
	}
	l.mu.Lock()
	reply, known, err := l.settledAs(payload)
	l.mu.Unlock()
	if known || err != nil {
		return reply, err
	}
	l.stopRenewal()
	if reply, err = l.c.settle(ctx, payload); err != nil {
		return reply, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.end, l.mu.payload, l.mu.reply = endSettled, payload, reply
	return reply, nil
}

// settledAs returns the reply to an earlier settlement with the same payload. The
// caller holds l.mu.
func (l *Lease) settledAs(payload []byte) (reply wire.SettleReply, known bool, err error) {
	switch l.mu.end {
	case endSettled:
		if bytes.Equal(l.mu.payload, payload) {
			return l.mu.reply, true, nil
		}
		return wire.SettleReply{}, false, wire.Errorf(wire.CodeAlreadySettled,
			"lease %s is settled already, with other figures", l.grant.Lease)
	case endDetached:
		return wire.SettleReply{}, false, fmt.Errorf("lease %s: %w: it is detached; use Client.Settle", l.grant.Lease, ErrClosed)
	default: // one that was given up may still be told better
		return wire.SettleReply{}, false, nil
	}
}

// settleLocal corrects the client's own count.
func (l *Lease) settleLocal(s Settlement) (wire.SettleReply, error) {
	reserved := l.grant.Cost.Tokens
	payload, err := s.encode(wire.LeaseID{N: 1}) // checks it; there is no id
	if err != nil {
		return wire.SettleReply{}, err
	}
	charged := wire.Cost{Requests: 1, Tokens: reserved}
	switch {
	case s.outcome() == wire.OutcomeUnsent:
		charged = wire.Cost{}
	case s.Usage != nil:
		charged.InputTokens, charged.OutputTokens = s.Usage.InputTokens, s.Usage.OutputTokens
		charged.Tokens = charged.InputTokens + charged.OutputTokens
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if reply, known, err := l.settledAs(payload); known || err != nil {
		return reply, err
	}
	l.c.alone.settle(time.Now(), l.local, charged.Tokens)
	l.mu.end, l.mu.payload = endSettled, payload
	l.mu.reply = wire.SettleReply{Settled: true, Charged: charged, DeltaTokens: charged.Tokens - reserved}
	return l.mu.reply, nil
}

// Close gives up a lease that was not settled, and does nothing to one that was.
// Defer it after Acquire: it ends the renewal and tells the broker, without
// waiting for an answer, that how the call ended is unknown. What was reserved
// stays charged.
func (l *Lease) Close() {
	l.stopRenewal()
	l.giveUp()
}

// Detach ends the renewal and leaves the lease to whoever has its id: it is to be
// settled, and renewed, by Client.Settle and Client.Renew, here or elsewhere.
func (l *Lease) Detach() {
	l.stopRenewal()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.end == endNot {
		l.mu.end = endDetached
	}
}

// giveUp settles as unknown a lease that nobody else has ended. A lost one is not
// in flight, so there is nothing to say about it.
func (l *Lease) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.end != endNot {
		return
	}
	l.mu.end = endClosed
	if l.local != nil || l.mu.err != nil {
		return
	}
	if payload, err := Unknown().encode(l.grant.Lease); err == nil {
		l.c.x.tell(l.c.subject(wire.VerbSettle), payload)
	}
}

// ended reports whether the lease is settled, closed or detached.
func (l *Lease) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.end != endNot
}

func (l *Lease) stopRenewal() {
	l.stop()
	<-l.done
}
