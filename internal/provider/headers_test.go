package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"quotabroker/internal/provider"
	"quotabroker/internal/testlines"
	"quotabroker/wire"
)

// header makes a header of lines "name: value".
func header(text string) http.Header {
	h := http.Header{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return h
}

// state is how a state reads on the wire, without its status.
func state(t testing.TB, s wire.ProviderState) string {
	t.Helper()
	s.Status = 0
	text := said(t, wire.OutcomeFailed, nil, &s)
	text = strings.TrimPrefix(text, `"outcome":"failed","provider":`)
	return strings.TrimSuffix(text, "}")
}

func TestHeadersOfEachFamily(t *testing.T) {
	for name, row := range map[string]struct {
		status int
		header string
		want   string
	}{
		"openai": {
			429, `
			Retry-After: 56
			x-ratelimit-limit-requests: 60
			x-ratelimit-limit-tokens: 150000
			x-ratelimit-remaining-requests: 59
			x-ratelimit-remaining-tokens: 149984
			x-ratelimit-reset-requests: 1s
			x-ratelimit-reset-tokens: 6m0s`,
			`{"retry_after_ms":56000,"tokens":{"limit":150000,"remaining":149984,"reset_ms":360000},` +
				`"requests":{"limit":60,"remaining":59,"reset_ms":1000}}`,
		},
		"openai, the project is tighter": {
			200, `
			x-ratelimit-limit-tokens: 150000
			x-ratelimit-remaining-tokens: 149984
			x-ratelimit-limit-project-tokens: 60000
			x-ratelimit-remaining-project-tokens: 57000
			x-ratelimit-reset-project-tokens: 3s`,
			`{"tokens":{"limit":60000,"remaining":57000,"reset_ms":3000}}`,
		},
		"openai, usage based": {
			200, `
			x-ratelimit-limit-tokens_usage_based: 160000
			x-ratelimit-remaining-tokens_usage_based: 159976
			x-ratelimit-reset-tokens_usage_based: 9ms`,
			`{"tokens":{"limit":160000,"remaining":159976,"reset_ms":9}}`,
		},
		"azure, tokens exhausted": {
			429, `
			retry-after: 1
			retry-after-ms: 0
			x-ratelimit-limit-requests: 5
			x-ratelimit-limit-tokens: 5000
			x-ratelimit-remaining-requests: 4
			x-ratelimit-remaining-tokens: 0
			x-ratelimit-renewalperiod-requests: 60
			x-ratelimit-renewalperiod-tokens: 60
			x-ratelimit-reset-requests: 12
			x-ratelimit-reset-tokens: 0
			x-ratelimit-type: Tokens`,
			`{"retry_after_ms":60000,"tokens":{"limit":5000,"remaining":0,"reset_ms":60000},` +
				`"requests":{"limit":5,"remaining":4,"reset_ms":12000}}`,
		},
		"azure, requests exhausted": {
			429, `
			retry-after: 1
			x-ratelimit-limit-tokens: 5000
			x-ratelimit-remaining-tokens: 4000
			x-ratelimit-renewalperiod-tokens: 60
			x-ratelimit-type: Requests`,
			`{"retry_after_ms":1000,"tokens":{"limit":5000,"remaining":4000}}`,
		},
		"azure, the hint is longer than the wrong one": {
			429, `
			retry-after: 26
			x-ratelimit-remaining-tokens: 0
			x-ratelimit-renewalperiod-tokens: 60
			x-ratelimit-reset-tokens: 26`,
			`{"retry_after_ms":26000,"tokens":{"remaining":0,"reset_ms":26000}}`,
		},
		"azure, a reset over the period is in ms": {
			200, `
			x-ratelimit-limit-requests: 120
			x-ratelimit-renewalperiod-requests: 60
			x-ratelimit-reset-requests: 500`,
			`{"requests":{"limit":120,"reset_ms":500}}`,
		},
		"azure, slices of ten seconds": {
			200, `
			x-ratelimit-limit-requests: 9000
			x-ratelimit-remaining-requests: 8999
			x-ratelimit-renewalperiod-requests: 10
			x-ratelimit-limit-tokens: 1500000
			x-ratelimit-remaining-tokens: 745399
			x-ratelimit-reset-tokens: 30
			x-ratelimit-renewalperiod-tokens: 60`,
			`{"tokens":{"limit":1500000,"remaining":745399,"reset_ms":30000},"requests":{"limit":9000,"remaining":8999}}`,
		},
		"azure, unknown": {
			200, `
			x-ratelimit-limit-tokens: -1
			x-ratelimit-remaining-tokens: -1
			x-ratelimit-reset-tokens: 0`,
			`{}`,
		},
		"azure, ms in its own header": {429, `x-ms-retry-after-ms: 250.2`, `{"retry_after_ms":251}`},
		"anthropic": {
			429, `
			retry-after: 25
			anthropic-ratelimit-requests-limit: 4000
			anthropic-ratelimit-requests-remaining: 3999
			anthropic-ratelimit-requests-reset: 2026-05-04T12:00:01Z
			anthropic-ratelimit-tokens-limit: 280000
			anthropic-ratelimit-tokens-remaining: 80000
			anthropic-ratelimit-tokens-reset: 2026-05-04T12:34:56Z
			anthropic-ratelimit-input-tokens-limit: 200000
			anthropic-ratelimit-input-tokens-remaining: 0
			anthropic-ratelimit-input-tokens-reset: 2026-05-04T12:01:03.5Z
			anthropic-ratelimit-output-tokens-limit: 80000
			anthropic-ratelimit-output-tokens-remaining: 80000
			anthropic-ratelimit-output-tokens-reset: 2026-05-04T11:59:59Z
			anthropic-priority-input-tokens-limit: 7
			anthropic-priority-input-tokens-remaining: 0`,
			`{"retry_after_ms":25000,"tokens":{"limit":280000,"remaining":80000,"reset_ms":2096000},` +
				`"input_tokens":{"limit":200000,"remaining":0,"reset_ms":63500},` +
				`"output_tokens":{"limit":80000,"remaining":80000,"reset_ms":0},` +
				`"requests":{"limit":4000,"remaining":3999,"reset_ms":1000}}`,
		},
		"anthropic, nobody has to wait": {200, `retry-after: 32`, `{}`},
		"anthropic, fast mode": {
			200, `
			anthropic-fast-output-tokens-limit: 1000
			anthropic-fast-output-tokens-remaining: 900`,
			`{"output_tokens":{"limit":1000,"remaining":900}}`,
		},
		"groq": {
			429, `
			x-ratelimit-limit-requests: 14400
			x-ratelimit-limit-tokens: 18000
			x-ratelimit-remaining-requests: 14370
			x-ratelimit-reset-requests: 2m59.56s
			x-ratelimit-reset-tokens: 7.66s
			retry-after: 2.5`,
			`{"retry_after_ms":2500,"tokens":{"limit":18000,"reset_ms":7660},"requests":{"limit":14400,"remaining":14370,"reset_ms":179560}}`,
		},
		"mistral": {
			200, `
			ratelimitbysize-limit: 500000
			ratelimitbysize-remaining: 467993
			ratelimitbysize-reset: 40
			ratelimitbysize-query-cost: 32007
			x-ratelimitbysize-limit-month: 1000000000
			x-ratelimitbysize-remaining-month: 999967993`,
			`{"tokens":{"limit":500000,"remaining":467993,"reset_ms":40000}}`,
		},
		"mistral, the minute is used up": {
			429, `
			ratelimitbysize-remaining: 0
			ratelimitbysize-reset: 40`,
			`{"retry_after_ms":40000,"tokens":{"remaining":0,"reset_ms":40000}}`,
		},
		"mistral, the month runs out": {
			200, `
			x-ratelimit-limit-tokens-minute: 500000
			x-ratelimit-remaining-tokens-minute: 499246
			x-ratelimit-limit-tokens-month: 1000000000
			x-ratelimit-remaining-tokens-month: 300
			x-ratelimit-limit-req-10-second: 60
			x-ratelimit-remaining-req-10-second: 58`,
			`{"tokens":{"limit":1000000000,"remaining":300},"requests":{"limit":60,"remaining":58}}`,
		},
		"together": {
			429, `
			x-ratelimit-limit: 2
			x-ratelimit-remaining: 0
			x-ratelimit-reset: 1
			x-tokenlimit-limit: 3000
			x-tokenlimit-remaining: 2000
			x-tokenlimit-limit-dynamic: 900
			x-tokenlimit-remaining-dynamic: 100`,
			`{"retry_after_ms":1000,"tokens":{"limit":900,"remaining":100},"requests":{"limit":2,"remaining":0,"reset_ms":1000}}`,
		},
		"openrouter": {
			429, `
			date: Mon, 31 Aug 2026 23:00:00 GMT
			x-ratelimit-limit: 50
			x-ratelimit-remaining: 0
			x-ratelimit-reset: 1788220800000`,
			`{"retry_after_ms":3600000,"requests":{"limit":50,"remaining":0,"reset_ms":3600000}}`,
		},
		"gemini, bedrock, vllm": {429, `content-type: application/json`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := provider.Headers(arrival, row.status, header(row.header))
			if got := state(t, got); got != row.want {
				t.Errorf("is   %s\nwant %s", got, row.want)
			}
			if got.Status != int64(row.status) {
				t.Errorf("status %d", got.Status)
			}
		})
	}
}

func TestFiguresThatCannotBe(t *testing.T) {
	for _, row := range []struct{ name, value, want string }{
		{"x-ratelimit-limit-tokens", "30,000", `{"tokens":{"limit":30000}}`},
		{"x-ratelimit-limit-tokens", "1,000,000.9", `{"tokens":{"limit":1000000}}`},
		{"x-ratelimit-limit-tokens", "5,10", `{}`},
		{"x-ratelimit-limit-tokens", "5, 100", `{}`},
		{"x-ratelimit-limit-tokens", "NaN", `{}`},
		{"x-ratelimit-limit-tokens", "Inf", `{}`},
		{"x-ratelimit-limit-tokens", "-5", `{}`},
		{"x-ratelimit-limit-tokens", "many", `{}`},
		{"x-ratelimit-limit-tokens", "9223372036854767616", `{}`},
		{"x-ratelimit-limit-tokens", "1000000000000000", `{"tokens":{"limit":1000000000000000}}`},
		{"x-ratelimit-limit-tokens", "1e400", `{}`},
		{"retry-after", "0.634", `{"retry_after_ms":634}`},
		{"retry-after", "0.0001", `{"retry_after_ms":1}`},
		{"retry-after", "1e300", `{"retry_after_ms":31536000000}`},
		{"retry-after", "0", `{}`},
		{"retry-after", "-1", `{}`},
		{"retry-after", "soon", `{}`},
		{"retry-after", "Mon, 04 May 2026 12:00:07 GMT", `{"retry_after_ms":7000}`},
		{"retry-after", "Mon, 04 May 2026 11:00:00 GMT", `{}`},
		{"retry-after-ms", "1500.5", `{"retry_after_ms":1501}`},
		{"retry-after-ms", "NaN", `{}`},
	} {
		got := state(t, provider.Headers(arrival, 503, header(row.name+": "+row.value)))
		if got != row.want {
			t.Errorf("%s: %s is %s, want %s", row.name, row.value, got, row.want)
		}
	}
	for value, want := range map[string]string{
		"12ms": `,"reset_ms":12`, "1m30s": `,"reset_ms":90000`, "0s": `,"reset_ms":0`, "-3s": "", "1ns": `,"reset_ms":1`,
		"9999999h": "", "2500000h": `,"reset_ms":31536000000`, "1.5": `,"reset_ms":1500`, "-1": "",
		"1777896010": `,"reset_ms":10000`, "1777896010500": `,"reset_ms":10500`, "1e15": "", "1777890000": `,"reset_ms":0`,
		"2026-05-04T14:00:30+02:00": `,"reset_ms":30000`, "2026-05-04": "", "tomorrow": "",
	} {
		h := header("x-ratelimit-limit-tokens: 7\nx-ratelimit-reset-tokens: " + value)
		if got := state(t, provider.Headers(arrival, 200, h)); got != `{"tokens":{"limit":7`+want+`}}` {
			t.Errorf("a reset of %s: %s", value, got)
		}
	}
}

// exchange is a recorded response without its body.
type exchange struct {
	Provider string            `json:"provider"`
	Status   int               `json:"status"`
	Headers  map[string]string `json:"headers"`
	Body     json.RawMessage   `json:"body"`
}

func (e *exchange) header() http.Header {
	h := http.Header{}
	for name, value := range e.Headers {
		h.Set(name, value)
	}
	return h
}

func TestRecordedHeaders(t *testing.T) {
	var b strings.Builder
	for _, file := range []string{"headers/openai.jsonl", "headers/providers.jsonl"} {
		fmt.Fprintf(&b, "# %s\n", file)
		for i, e := range testlines.Read[exchange](t, testdata(file)) {
			got := provider.Headers(arrival, e.Status, e.header())
			fmt.Fprintf(&b, "%d %s %d %s\n", i+1, e.Provider, e.Status, state(t, got))
		}
	}
	golden(t, "headers/states.txt", b.String())
}
