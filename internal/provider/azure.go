package provider

import (
	"math"
	"net/http"
	"strings"
	"time"

	"quotabroker/wire"
)

// azureHeaders are OpenAI's, with the span of each limit beside them. Where that is
// missing they are read as OpenAI's.
var azureHeaders = []limitHeaders{
	{
		metric: tokens, limit: "X-Ratelimit-Limit-Tokens", remaining: "X-Ratelimit-Remaining-Tokens",
		reset: "X-Ratelimit-Reset-Tokens", period: "X-Ratelimit-Renewalperiod-Tokens",
	},
	{
		metric: requests, limit: "X-Ratelimit-Limit-Requests", remaining: "X-Ratelimit-Remaining-Requests",
		reset: "X-Ratelimit-Reset-Requests", period: "X-Ratelimit-Renewalperiod-Requests",
	},
}

// azureReset corrects a reset by the span of its limit, in seconds.
//
// A bare number is seconds in some responses (limit 5, one used, reset 12 =
// 60 s / 5) and milliseconds in others (limit 120, one used, reset 500), and
// nothing says which (calc; GitHub Models as well). The unit is taken that comes
// closer to when a limit that refills evenly is free again, period × used / limit.
// Without those figures, more than a period cannot be seconds.
//
// Of exhausted tokens the reset is 0, which is wrong (two reports of it): a whole
// period is taken instead.
func azureReset(l *wire.LimitState, reset, period string) {
	seconds, ok := number(period)
	if !ok || seconds == 0 {
		return
	}
	n, ok := number(reset)
	if !ok || n >= 1e9 {
		return
	}
	if n == 0 {
		if l.Remaining == wire.Int(0) {
			l.ResetMS = span(seconds, time.Second)
		}
		return
	}
	inMS := n > seconds
	if l.Limit.Value > 0 && l.Remaining.Set && l.Remaining.Value < l.Limit.Value {
		used := float64(l.Limit.Value - l.Remaining.Value)
		full := seconds * used / float64(l.Limit.Value)
		inMS = math.Abs(math.Log(n/1000/full)) < math.Abs(math.Log(n/full))
	}
	if inMS {
		l.ResetMS = span(n, time.Millisecond)
	}
}

// azureRetryAfter corrects the retry-after of a 429 for want of tokens: Azure then
// says one second, after which it refuses again (two reports of it). The tokens'
// reset is taken instead, which azureReset has set to a whole period if need be.
func azureRetryAfter(h http.Header, t *wire.LimitState, told wire.OptInt) wire.OptInt {
	const wrong = 1000
	period, ok := number(h.Get("X-Ratelimit-Renewalperiod-Tokens"))
	if !ok || period == 0 || told.Value > wrong {
		return told
	}
	exhausted := t != nil && t.Remaining == wire.Int(0)
	if !exhausted && !strings.EqualFold(h.Get("X-Ratelimit-Type"), "tokens") {
		return told
	}
	wait := span(period, time.Second)
	if t != nil && t.ResetMS.Value > 0 {
		wait = t.ResetMS
	}
	return later(told, wait)
}

// azureHighDemand reports "The system is currently experiencing high demand … retry
// after 20 seconds", which comes like a limit and is none.
func azureHighDemand(message string) bool {
	return strings.Contains(message, "experiencing high demand")
}
