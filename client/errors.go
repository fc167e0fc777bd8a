package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"quotabroker/wire"
)

// The errors that carry no figures of their own. What is returned wraps them
// with the circumstances, so compare with errors.Is.
var (
	// ErrUnavailable says that no broker answered: nobody leads the pool, the
	// connection is down, the broker stayed silent, or it said itself that it can
	// decide nothing now. Nothing was granted; asking again later may work.
	ErrUnavailable = errors.New("no broker answers")

	// ErrForbidden says that the NATS server or the broker does not allow this
	// source what it tried: its credentials or permissions are for something else.
	ErrForbidden = errors.New("forbidden")

	// ErrPayloadTooLarge says that a message would not fit through NATS. Counting
	// the request oneself and sending Request.InputTokens instead of Request.Body
	// avoids it.
	ErrPayloadTooLarge = errors.New("payload too large")

	// ErrLeaseLost says that the broker no longer counts a lease as in flight,
	// since it was not renewed in time.
	ErrLeaseLost = errors.New("lease lost")

	// ErrClosed says that the Client, or the Lease, was closed before.
	ErrClosed = errors.New("closed")
)

// Refused is the broker's decision against a request. It is final for the
// request as it is; RetryAfter says when the same might be asked anew.
//
// A broker that expects a wait beyond the context's deadline refuses at once, with
// the cause deadline. errors.Is finds context.DeadlineExceeded in that, as if it
// had been waited for.
type Refused struct {
	Cause       wire.Cause
	RetryAfter  time.Duration // 0 where asking again is pointless
	Message     string        // the broker's sentence, with its figures
	Class, Pool string
	Cost        wire.Cost // what the request was estimated at
	Limit       string    // with too_large: the limit that binds
	LimitTokens int64     // with too_large: the most it could ever give
}

func refused(d *wire.Decision) *Refused {
	return &Refused{
		Cause:       d.Cause,
		RetryAfter:  milliseconds(d.RetryAfterMS),
		Message:     d.Message,
		Class:       d.Class,
		Pool:        d.Pool,
		Cost:        d.Cost,
		Limit:       d.Limit,
		LimitTokens: d.LimitTokens,
	}
}

// Permanent reports whether asking again is pointless until the broker's
// configuration changes.
func (r *Refused) Permanent() bool { return r.Cause.Permanent() }

// Unwrap returns context.DeadlineExceeded where the deadline is the cause, else nil.
func (r *Refused) Unwrap() error {
	if r.Cause == wire.CauseDeadline {
		return context.DeadlineExceeded
	}
	return nil
}

// Error returns the cause and the broker's sentence.
func (r *Refused) Error() string {
	text := "refused: " + r.Cause.String()
	if r.Message != "" {
		text += ": " + r.Message
	}
	if r.RetryAfter > 0 {
		text += fmt.Sprintf(" (not before %v from now)", r.RetryAfter)
	}
	return text
}

// NotGranted is the error of an Acquire that waited in vain: its context ended,
// or the next moment worth asking at lies after the context's deadline.
//
// errors.Is finds the context's error in it, context.DeadlineExceeded or
// context.Canceled, and [ErrUnavailable] where it was the broker's absence that
// was waited out.
type NotGranted struct {
	Waited time.Duration
	Last   wire.Decision // the last answer that was a defer; its Verdict is 0 if there was none
	Err    error         // the context's error
	Broker error         // why the broker did not answer at the end; nil if it did
}

// Error says how long it waited, for what, and what ended it.
func (e *NotGranted) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "not granted within %v", e.Waited.Round(time.Millisecond))
	switch {
	case e.Broker != nil:
		fmt.Fprintf(&b, ": %v", e.Broker)
	case e.Last.Verdict == wire.Defer:
		fmt.Fprintf(&b, ": waiting for %s", e.Last.Cause)
		if e.Last.Limit != "" {
			fmt.Fprintf(&b, " (%s)", e.Last.Limit)
		}
		fmt.Fprintf(&b, " as number %d of class %s, about %v to go", e.Last.Position, e.Last.Class, milliseconds(e.Last.EtaMS))
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	return b.String()
}

// Unwrap returns the context's error and the broker's.
func (e *NotGranted) Unwrap() []error {
	if e.Broker == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Broker}
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", ErrUnavailable, err) }

func forbidden(err error) error { return fmt.Errorf("%w: %w", ErrForbidden, err) }

func payloadTooLarge(size int, limit int64) error {
	return fmt.Errorf("%w: the message has %d bytes, the NATS server takes at most %d; count the request and send input_tokens instead",
		ErrPayloadTooLarge, size, limit)
}

// isUnknownLease reports whether the broker says that it does not know a lease.
func isUnknownLease(err error) bool {
	return errors.Is(err, &wire.Error{Code: wire.CodeUnknownLease})
}
