package client

import (
	"crypto/rand"
	"math"
	"time"

	"quotabroker/wire"
)

// Request describes one call to a model before it is made. Either Body or
// InputTokens says how large it is; everything else is optional.
type Request struct {
	// Body is the provider request body as it will be sent, a JSON object. The
	// broker counts it.
	Body []byte

	// InputTokens is the caller's own count, instead of Body.
	InputTokens wire.OptInt

	// MaxOutputTokens overrides the body's limit on the output. Where neither is
	// there the broker takes what it has learned, or the pool's default.
	MaxOutputTokens wire.OptInt

	Model  string // chooses the tokenizer and the learned correction
	Tenant string // whose work this is, inside the source
	Kind   string // what sort of job: output length is learned per kind

	// Deadline is how long the work stays useful, counted from the call. Acquire
	// gives up after it, and also when its context ends; a request that cannot be
	// served before is refused at once. 0: no bound but the context's.
	Deadline time.Duration

	// TTL is how long the lease lasts without renewal. 0: the pool's default.
	TTL time.Duration

	// ID makes asking idempotent: the same ID while its lease or ticket lives
	// gives the same lease or ticket and charges nothing. Empty: a random one.
	ID string

	// Ticket continues a wait: it is from an earlier defer, and keeps the place.
	Ticket wire.TicketID

	// Hold is how long Try lets the broker hold the reply for a grant. 0: it
	// answers at once. Acquire chooses for itself.
	Hold time.Duration
}

// Tokens makes a count for InputTokens and MaxOutputTokens.
func Tokens(n int64) wire.OptInt { return wire.Int(n) }

// encode makes the acquire for r, checked by the broker's own rules. The id is
// made here, once, so that all the asks of one Acquire carry the same.
func (r *Request) encode() (wire.AcquireRequest, error) {
	a := wire.AcquireRequest{
		RequestID:       r.ID,
		Model:           r.Model,
		Request:         r.Body,
		InputTokens:     r.InputTokens,
		MaxOutputTokens: r.MaxOutputTokens,
		Tenant:          r.Tenant,
		Kind:            r.Kind,
		WaitMS:          r.Hold.Milliseconds(),
		TTLMS:           r.TTL.Milliseconds(),
		Ticket:          r.Ticket,
		Confirm:         true,
	}
	if a.RequestID == "" {
		a.RequestID = rand.Text()
	}
	if r.Deadline > 0 {
		a.DeadlineMS = wire.Int(r.Deadline.Milliseconds())
	}
	return a, a.Validate()
}

// milliseconds is a duration of the wire; one that is absurdly long stays long.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
