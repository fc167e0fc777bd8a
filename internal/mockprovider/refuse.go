package mockprovider

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// apiError is an error answer in the provider's shape. It is not a Go error: it is
// never nil-checked through an interface.
type apiError struct {
	status  int
	kind    string // "type"
	param   string // "" is null
	code    string // "" is null
	message string
}

func (e *apiError) write(w http.ResponseWriter) {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	type body struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Param   any    `json:"param"`
		Code    any    `json:"code"`
	}
	// The caller may be gone; there is nobody left to tell.
	_ = writeJSON(w, e.status, map[string]body{"error": {e.message, e.kind, orNull(e.param), orNull(e.code)}})
}

const invalidRequest = "invalid_request_error"

func badJSON(err error) *apiError {
	return &apiError{
		status: http.StatusBadRequest, kind: invalidRequest,
		message: "We could not parse the JSON body of your request: " + err.Error(),
	}
}

func badParam(param, message string) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: invalidRequest, param: param, message: message}
}

func unknownModel(model string) *apiError {
	return &apiError{
		status: http.StatusNotFound, kind: invalidRequest, code: "model_not_found",
		message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", model),
	}
}

// wrongKey never repeats the key.
func wrongKey() *apiError {
	return &apiError{
		status: http.StatusUnauthorized, kind: invalidRequest, code: "invalid_api_key",
		message: "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
	}
}

// wire says a duration of the meter in its caller's time, rounded up.
func (s *Server) wire(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(float64(d) / s.opts.Speed))
}

// formatDuration is the provider's notation: "6m0s", "1m53.425s", "120ms", "0s"; cut
// to whole milliseconds.
func formatDuration(d time.Duration) string { return d.Truncate(time.Millisecond).String() }

// rateError is the body of a 429 for a refusal.
func (s *Server) rateError(model string, r *Refusal) *apiError {
	e := &apiError{status: http.StatusTooManyRequests, kind: string(r.Metric), code: "rate_limit_exceeded"}
	unit := "tokens per min (TPM)"
	if r.Metric == Requests {
		unit = "requests per min (RPM)"
	}
	if r.TooLarge() {
		e.message = fmt.Sprintf("Request too large for %s in organization %s on %s: Limit %d, Requested %d. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.",
			model, s.opts.Organization, unit, r.LimitPerMinute, r.Requested)
		return e
	}
	wait := max(s.wire(r.Wait), time.Millisecond)
	e.message = fmt.Sprintf("Rate limit reached for %s in organization %s on %s: Limit %d, Used %d, Requested %d. Please try again in %s. Visit https://platform.openai.com/account/rate-limits to learn more.",
		model, s.opts.Organization, unit, r.LimitPerMinute, r.Used, r.Requested, formatDuration(wait))
	return e
}

// setRetryHeaders names the wait of a refusal, rounded up: that long is enough. A
// request that is too large is given none.
func (s *Server) setRetryHeaders(h http.Header, r *Refusal) {
	if r.TooLarge() {
		return
	}
	wait := s.wire(r.Wait)
	h.Set("Retry-After", strconv.FormatInt(roundUp(wait, time.Second), 10))
	h.Set("Retry-After-Ms", strconv.FormatInt(roundUp(wait, time.Millisecond), 10))
}

func roundUp(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

// setLevelHeaders writes x-ratelimit-* for the limits there are.
func (s *Server) setLevelHeaders(h http.Header, tokens, requests Level) {
	for _, l := range []struct {
		metric Metric
		level  Level
	}{{Requests, requests}, {Tokens, tokens}} {
		if l.level.LimitPerMinute == 0 {
			continue
		}
		h.Set("X-Ratelimit-Limit-"+string(l.metric), strconv.FormatInt(l.level.LimitPerMinute, 10))
		h.Set("X-Ratelimit-Remaining-"+string(l.metric), strconv.FormatInt(l.level.Remaining, 10))
		h.Set("X-Ratelimit-Reset-"+string(l.metric), formatDuration(s.wire(l.level.Full)))
	}
}
