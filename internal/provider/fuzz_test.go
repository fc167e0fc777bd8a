package provider_test

import (
	"encoding/json"
	"testing"
	"time"

	"quotabroker/internal/provider"
	"quotabroker/internal/testlines"
	"quotabroker/wire"
)

// Whatever a provider sends: no panic, and figures that the broker takes.

func FuzzHeaders(f *testing.F) {
	f.Add(429, int64(1_777_896_000), "retry-after: 56\nx-ratelimit-limit-tokens: 30,000\nx-ratelimit-reset-tokens: 6m0s")
	f.Add(429, int64(0), "retry-after: 1\nx-ratelimit-remaining-tokens: 0\nx-ratelimit-renewalperiod-tokens: 60\nx-ratelimit-reset-tokens: 0")
	f.Add(503, int64(-1), "date: Mon, 04 May 2026 12:00:00 GMT\nretry-after: Mon, 04 May 2026 12:00:07 GMT")
	f.Add(200, int64(1_777_896_000), "anthropic-ratelimit-tokens-remaining: 5\nanthropic-ratelimit-tokens-reset: 2026-05-04T12:34:56Z")
	f.Add(429, int64(1_777_896_000), "x-ratelimit-remaining: 0\nx-ratelimit-reset: 1788220800000\nratelimitbysize-reset: 1e9")
	for _, e := range testlines.Read[exchange](f, testdata("headers/providers.jsonl")) {
		var text string
		for name, value := range e.Headers {
			text += name + ": " + value + "\n"
		}
		f.Add(e.Status, arrival.Unix(), text)
	}
	f.Fuzz(func(t *testing.T, status int, now int64, text string) {
		s := provider.Headers(time.Unix(now, 0), status, header(text))
		said(t, wire.OutcomeFailed, nil, &s)
	})
}

func FuzzError(f *testing.F) {
	for _, e := range testlines.Read[exchange](f, testdata("headers/errors.jsonl")) {
		f.Add(e.Status, arrival.Unix(), string(e.Body))
	}
	f.Add(429, int64(0), gemini("Please retry in 3s", "GenerateRequestsPerDayPerProject", "50", "32s"))
	f.Add(429, int64(0), openai("on input tokens per min (ITPM): Limit 1,000, Used ~997, Requested 192. Please try again in 1m11.34s."))
	f.Fuzz(func(t *testing.T, status int, now int64, body string) {
		got := provider.Error(time.Unix(now, 0), status, nil, []byte(body))
		said(t, got.Kind.Outcome(), nil, &got.State)
		if _, known := kinds[got.Kind]; !known {
			t.Errorf("kind %d", got.Kind)
		}
		if wait := got.State.RetryAfterMS; wait.Set && (got.Kind == provider.Exhausted || got.Kind == provider.Oversize) {
			t.Errorf("%s, and yet to wait %d ms", kinds[got.Kind], wait.Value)
		}
	})
}

func FuzzBody(f *testing.F) {
	type report struct {
		Usage json.RawMessage `json:"usage"`
	}
	for _, r := range testlines.Read[report](f, testdata("usage/usage.jsonl")) {
		f.Add([]byte(`{"usage":` + string(r.Usage) + `}`))
	}
	f.Add([]byte(`[{"usageMetadata":{"promptTokenCount":15,"candidatesTokenCount":4},"candidates":[{"finishReason":"STOP"}]}]`))
	f.Add([]byte(`{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded"},"usage":{"input_tokens":1,"output_tokens":1}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := provider.Body(arrival, nil, body)
		tokens(t, s) // checks what is in it
		checkUsage(t, s)
	})
}

func FuzzStream(f *testing.F) {
	_, texts := recordings(f)
	for _, text := range texts {
		f.Add(text[max(0, len(text)-500):], uint16(1))
	}
	f.Add("event: error\r\ndata: {\"error\":{\"code\":429}}\r\rdata: [DONE]\n\n", uint16(3))
	f.Fuzz(func(t *testing.T, text string, n uint16) {
		whole := told(t, text, len(text)+1, false)
		if split := told(t, text, int(n)+1, false); split != whole {
			t.Errorf("in pieces of %d: %s\nat once: %s", n+1, split, whole)
		}
		var s provider.Stream
		if _, err := s.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		checkUsage(t, s.End(arrival, nil, true))
	})
}

// checkUsage checks that no part is more than its whole.
func checkUsage(t *testing.T, s provider.Seen) {
	t.Helper()
	if u := s.Usage; u != nil && (u.CachedInputTokens+u.CacheWriteTokens > u.InputTokens || u.ReasoningTokens > u.OutputTokens) {
		t.Errorf("%+v", *u)
	}
	if s.Final && (s.Usage == nil || !s.Ended) {
		t.Errorf("final: %+v", s)
	}
}
