package provider

import (
	"net/http"
	"time"

	"quotabroker/wire"
)

// metric is what a limit counts, in the order of wire.ProviderState.
type metric int

const (
	tokens metric = iota
	inputTokens
	outputTokens
	requests
	metrics                  // how many there are
	otherMetric = metric(-1) // images, audio: wire has no word for it
)

// limitHeaders names the headers of one limit; what is "" does not exist.
type limitHeaders struct {
	metric                  metric
	limit, remaining, reset string

	// period is the header with the span of the limit in seconds; Azure's.
	period string

	// window says that the reset is the end of a window, after which there is
	// room again. Elsewhere it is when the limit is wholly free, which says
	// nothing of when one more request fits (calc).
	window bool
}

// families lists all the headers that are read.
var families = [...][]limitHeaders{
	openaiHeaders, azureHeaders, anthropicHeaders, mistralHeaders, togetherHeaders, openrouterHeaders, huggingFaceHeaders,
}

// Headers reads what the headers of a response say of the account's limits.
// status is the response's, 0 if there is none; now is when it arrived, to which
// absolute times are compared if the response has no Date.
//
// Limits and what remains are in tokens or requests; a figure that is not told, or
// cannot be, is absent. The span of a limit is not told. ResetMS is when the limit is
// wholly free again, or, of a fixed window, when that ends. Of several limits on
// one metric (organisation and project, minute and month) the one with the least
// remaining is given, since that refuses first.
//
// RetryAfterMS is how long the provider wants to be left alone, rounded up and at
// most [wire.MaxDurationMS]. It is read from an error only: Anthropic sends
// retry-after with a status of 200 as well, where nobody has to wait.
func Headers(now time.Time, status int, h http.Header) wire.ProviderState {
	r := readHeaders(clock(now, h), h)
	state := wire.ProviderState{
		Status:       int64(min(max(status, 0), 999)),
		Tokens:       r.limits[tokens],
		InputTokens:  r.limits[inputTokens],
		OutputTokens: r.limits[outputTokens],
		Requests:     r.limits[requests],
	}
	if status < http.StatusBadRequest {
		return state
	}
	state.RetryAfterMS = retryAfter(clock(now, h), h)
	if status == http.StatusTooManyRequests {
		state.RetryAfterMS = azureRetryAfter(h, r.limits[tokens], state.RetryAfterMS)
		if !state.RetryAfterMS.Set {
			state.RetryAfterMS = r.windowEnd
		}
	}
	return state
}

// reading is what the limit headers say.
type reading struct {
	limits    [metrics]*wire.LimitState
	windowEnd wire.OptInt // of the exhausted windows, the last end
}

func readHeaders(now time.Time, h http.Header) reading {
	var r reading
	for _, family := range families {
		for _, names := range family {
			l := names.read(now, h)
			if l == nil {
				continue
			}
			if names.window && l.Remaining == wire.Int(0) {
				r.windowEnd = later(r.windowEnd, l.ResetMS)
			}
			if at := &r.limits[names.metric]; *at == nil || tighter(l, *at) {
				*at = l
			}
		}
	}
	return r
}

// read returns nil where neither the limit nor what remains of it is told: a reset
// alone is what Azure sends of a limit it does not know, -1, -1 and 0
// (openai-dotnet#838).
func (n *limitHeaders) read(now time.Time, h http.Header) *wire.LimitState {
	l := wire.LimitState{Limit: amount(get(h, n.limit)), Remaining: amount(get(h, n.remaining))}
	if !l.Limit.Set && !l.Remaining.Set {
		return nil
	}
	l.ResetMS = until(now, get(h, n.reset))
	if n.period != "" {
		azureReset(&l, get(h, n.reset), get(h, n.period))
	}
	return &l
}

func get(h http.Header, name string) string {
	if name == "" {
		return ""
	}
	return h.Get(name)
}

// tighter reports whether a refuses before b.
func tighter(a, b *wire.LimitState) bool {
	if a.Remaining.Set && b.Remaining.Set {
		return a.Remaining.Value < b.Remaining.Value
	}
	return a.Remaining.Set && !b.Remaining.Set
}

// retryAfter reads how long to wait. Milliseconds come before seconds, as in
// OpenAI's SDKs; 0 of them is what Azure sends beside a retry-after of one second
// and is not believed. A time is that of an HTTP date.
func retryAfter(now time.Time, h http.Header) wire.OptInt {
	for _, name := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} { // the latter: a proxy's source, Portkey
		if n, ok := number(h.Get(name)); ok && n > 0 {
			return span(n, time.Millisecond)
		}
	}
	text := h.Get("Retry-After")
	if n, ok := number(text); ok {
		if n == 0 {
			return wire.OptInt{}
		}
		return span(n, time.Second)
	}
	if t, err := http.ParseTime(text); err == nil && t.After(now) {
		return milliseconds(t.Sub(now))
	}
	return wire.OptInt{}
}
