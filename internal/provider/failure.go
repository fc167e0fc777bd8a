package provider

import (
	"net/http"
	"time"

	"quotabroker/wire"
)

// Kind is what sort of failure a provider reported: what can be done about it.
type Kind uint8

// The kinds. There is no zero Kind.
const (
	// Rate is a limit per minute or shorter: wait RetryAfterMS, then go on.
	Rate Kind = iota + 1

	// Hold is a limit per day or longer, or a wait of more than five minutes.
	Hold

	// Capacity is the provider's want of machines, whatever the account may use:
	// wait, and do not take the limit for smaller than it is.
	Capacity

	// Exhausted is an account that is out of money or barred: no wait helps.
	Exhausted

	// Oversize is a request that is larger than its whole limit: it is never
	// admitted, and the account is as well as before.
	Oversize

	// Transient is a failure of the provider that says nothing of limits.
	Transient

	// Rejected is a request that is wrong in itself, as every other refusal.
	Rejected
)

// Outcome is the outcome by which such a failure is settled. An oversize request
// is a failure of its own: the account is not to be stopped for it.
func (k Kind) Outcome() wire.Outcome {
	switch k {
	case Rate, Hold:
		return wire.OutcomeThrottled
	case Capacity:
		return wire.OutcomeOverloaded
	case Exhausted:
		return wire.OutcomeExhausted
	default:
		return wire.OutcomeFailed
	}
}

// Failure is a failure that a provider reported.
type Failure struct {
	Kind Kind

	// State is what headers and body say. Status is the response's, or, of an error
	// in a stream that began with 200, the one that the error names, if any.
	// RetryAfterMS is the longest wait that any of them asks for; absent where none
	// does, and where waiting does not help. A limit that only the body tells, and
	// that is one per minute, is there as well.
	State wire.ProviderState
}

const (
	holdFrom   = 5 * time.Minute // a longer wait is no minute's limit
	holdUntold = 5 * time.Minute // of a day's limit that does not say when it ends
)

// Error reads a response with a status of 400 or more; an error within a stream
// has the stream's. now is when it arrived, h may be nil, and body may be cut off
// or not be JSON: then status and headers decide.
func Error(now time.Time, status int, h http.Header, body []byte) Failure {
	return failed(now, status, h, parseFault(body))
}

func failed(now time.Time, status int, h http.Header, f fault) Failure {
	if status < http.StatusBadRequest && f.status >= http.StatusBadRequest {
		status = f.status
	}
	f.addName(h.Get("X-Amzn-Errortype")) // AWS names its exceptions there
	state := Headers(now, status, h)
	said := clauses(f.message)
	state.RetryAfterMS = later(state.RetryAfterMS, f.wait())
	kind := f.kind(status, said, state.RetryAfterMS)
	if kind == Rate || kind == Hold || kind == Oversize {
		f.teach(&state, said)
	}
	switch kind {
	case Exhausted, Oversize:
		state.RetryAfterMS = wire.OptInt{}
	case Hold:
		state.RetryAfterMS = f.holdUntil(clock(now, h), state.RetryAfterMS)
	default:
	}
	return Failure{Kind: kind, State: state}
}

// kind decides. What no wait can help comes first.
func (f *fault) kind(status int, said []clause, wait wire.OptInt) Kind {
	limited := status == http.StatusTooManyRequests || f.named(rateNames)
	switch {
	case status == http.StatusPaymentRequired || f.exhausted():
		return Exhausted
	case status == http.StatusRequestEntityTooLarge || limited && oversize(said):
		return Oversize
	case status == http.StatusServiceUnavailable || status == statusOverloaded || f.capacity(limited):
		return Capacity
	case f.named(transientNames):
		return Transient
	case limited && (f.perDay(said) || wait.Value > holdFrom.Milliseconds()):
		return Hold
	case limited:
		return Rate
	case status >= http.StatusInternalServerError || status == http.StatusRequestTimeout:
		return Transient
	}
	return Rejected
}

// statusOverloaded is Anthropic's (doc).
const statusOverloaded = 529

// rateNames are the words, as error.type, error.code or error.status, for a limit
// that was reached, in lower case. They matter where the status does not say it:
// in a stream, at OpenAI's Responses and Anthropic.
var rateNames = map[string]bool{
	"rate_limit_exceeded":     true, // OpenAI, Groq
	"rate_limit_error":        true, // Anthropic
	"rate_limited":            true, // Mistral
	"ratelimitreached":        true, // Azure
	"resource_exhausted":      true, // Gemini
	"throttlingexception":     true, // Bedrock
	"dynamic_request_limited": true, // Together
	"dynamic_token_limited":   true, // Together
}

// transientNames are the words for a failure that has nothing to do with limits,
// whatever its status.
var transientNames = map[string]bool{
	"api_error":              true, // Anthropic, 500
	"timeout_error":          true, // Anthropic, 504
	"server_error":           true, // OpenAI
	"modelnotreadyexception": true, // Bedrock, 429
}

func (f *fault) exhausted() bool {
	return f.named(openaiExhausted) || f.named(anthropicExhausted) || f.anthropicBroke() || f.gemini.unbilled()
}

func (f *fault) capacity(limited bool) bool {
	return f.named(capacityNames) || azureHighDemand(f.message) || f.upstream || limited && f.geminiShared()
}

// capacityNames are the words for a provider that has more to do than it can.
var capacityNames = map[string]bool{
	"overloaded_error":            true, // Anthropic, in a stream as well
	"serviceunavailableexception": true, // Bedrock
	mistralCapacity:               true,
}

func (f *fault) perDay(said []clause) bool {
	for _, c := range said {
		if c.day {
			return true
		}
	}
	return f.gemini.perDay() || bedrockPerDay(f.message)
}

// wait is how long the body asks to wait. Where it says it twice, the longer: a
// recorded body of Gemini had 51.4 s in its text and 14 s in RetryInfo.
func (f *fault) wait() wire.OptInt { return later(waitIn(f.message), f.gemini.retry) }

// holdUntil is how long a limit of a day, or a long one, lasts.
func (f *fault) holdUntil(now time.Time, told wire.OptInt) wire.OptInt {
	if f.gemini.perDay() { // though RetryInfo may say 32 s
		return milliseconds(pacificMidnight(now).Sub(now))
	}
	if !told.Set {
		return milliseconds(holdUntold)
	}
	return told
}
