package client

import (
	"time"

	"quotabroker/wire"
)

// Settlement says how a granted call ended. The zero Settlement means that this
// is not known: what was reserved stays charged.
type Settlement struct {
	// Outcome is how the call ended. Zero: ok where Usage is there, else unknown.
	Outcome wire.Outcome

	// Usage is what the provider counted. nil: what was reserved stays charged.
	Usage *wire.Usage

	// Provider is what the response's headers said. nil: nothing.
	Provider *wire.ProviderState
}

// Used settles a call that was answered: with all of its input tokens, cached
// ones included, and all of its output tokens, reasoning included.
func Used(inputTokens, outputTokens int64) Settlement {
	return Settlement{
		Outcome: wire.OutcomeOK,
		Usage:   &wire.Usage{InputTokens: inputTokens, OutputTokens: outputTokens},
	}
}

// Unsent settles a call that was never made: everything is given back.
func Unsent() Settlement { return Settlement{Outcome: wire.OutcomeUnsent} }

// Unknown settles a call that was sent and whose result is lost: what was
// reserved stays charged.
func Unknown() Settlement { return Settlement{Outcome: wire.OutcomeUnknown} }

// Failed settles a call that the provider answered with an error, by its HTTP
// status alone: 429 is throttled, 503 and 529 are overloaded, anything else is
// failed. retryAfter is what the provider said; 0 if it said nothing. The broker then
// slows down or pauses the pool. An account that is out of money is to be
// reported as [wire.OutcomeExhausted]; its status is 429 as well. [FromResponse]
// tells them apart.
func Failed(status int, retryAfter time.Duration) Settlement {
	s := Settlement{Outcome: wire.OutcomeFailed, Provider: &wire.ProviderState{Status: int64(status)}}
	switch status {
	case 429:
		s.Outcome = wire.OutcomeThrottled
	case 503, 529:
		s.Outcome = wire.OutcomeOverloaded
	}
	if retryAfter > 0 {
		// Rounded up: a wait that is cut short ends in another refusal.
		whole := min(retryAfter, wire.MaxDurationMS*time.Millisecond) + time.Millisecond - 1
		s.Provider.RetryAfterMS = wire.Int(min(whole.Milliseconds(), wire.MaxDurationMS))
	}
	return s
}

// outcome is the Outcome with its default.
func (s Settlement) outcome() wire.Outcome {
	switch {
	case s.Outcome != 0:
		return s.Outcome
	case s.Usage != nil:
		return wire.OutcomeOK
	}
	return wire.OutcomeUnknown
}

func (s Settlement) encode(id wire.LeaseID) ([]byte, error) {
	r := wire.SettleRequest{Lease: id, Outcome: s.outcome(), Usage: s.Usage, Provider: s.Provider}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return wire.AppendSettle(nil, &r), nil
}
