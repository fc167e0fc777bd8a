package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine need not have any

	"quotabroker/internal/provider"
	"quotabroker/internal/testlines"
)

// openai is an error of OpenAI's with this sentence.
func openai(message string) string {
	return `{"error":{"message":"` + message + `","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`
}

// gemini is a RESOURCE_EXHAUSTED with a quota and a hint.
func gemini(message, id, value, delay string) string {
	return `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"` + message + `","details":[` +
		`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"` + id + `","quotaValue":"` + value + `"}]},` +
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"` + delay + `"}]}}`
}

var kinds = map[provider.Kind]string{
	provider.Rate: "rate", provider.Hold: "hold", provider.Capacity: "capacity", provider.Exhausted: "exhausted",
	provider.Oversize: "oversize", provider.Transient: "transient", provider.Rejected: "rejected",
}

func TestErrorsOfEachFamily(t *testing.T) {
	const (
		tpm   = "Rate limit reached for gpt-4o-mini in organization org-x on tokens per min (TPM): Limit 200000, Used 193762, Requested 7653. Please try again in 424ms. Visit us."
		quota = "You exceeded your current quota, please check your plan and billing details."
		azure = "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-02-01 have exceeded token rate limit of your current OpenAI S0 pricing tier. "
	)
	for name, row := range map[string]struct {
		status       int
		header, body string
		kind         provider.Kind
		want         string
	}{
		"openai": {
			429, "", openai(tpm), provider.Rate,
			`{"retry_after_ms":424,"tokens":{"limit":200000,"remaining":6238}}`,
		},
		"openai, the header asks for more": {
			429, "retry-after: 2", openai(tpm), provider.Rate,
			`{"retry_after_ms":2000,"tokens":{"limit":200000,"remaining":6238}}`,
		},
		"openai, the headers know": {
			429, "x-ratelimit-limit-tokens: 200000\nx-ratelimit-remaining-tokens: 5", openai(tpm), provider.Rate,
			`{"retry_after_ms":424,"tokens":{"limit":200000,"remaining":5}}`,
		},
		"openai, requests": {
			429, "", openai("Rate limit reached on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s."), provider.Rate,
			`{"retry_after_ms":20000,"requests":{"limit":3,"remaining":0}}`,
		},
		"openai, requests of a day": {
			429, "", openai("Rate limit reached on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s."), provider.Hold,
			`{"retry_after_ms":432000}`,
		},
		"openai, a hidden month": {
			429, "", openai("Rate limit reached on tokens per min. TPM: Limit 100000, Used 96749, Requested 19126, try again in 114h18m0s."), provider.Hold,
			`{"retry_after_ms":411480000}`,
		},
		"openai, images": {
			429, "", openai("Rate limit reached on images per minute (IPM): Limit 5, Used 5, Requested 1. Please try again in 12s."), provider.Rate,
			`{"retry_after_ms":12000}`,
		},
		"openai, too large": {
			429, "retry-after: 3", openai("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 30,601."), provider.Oversize,
			`{"tokens":{"limit":30000}}`,
		},
		"openai, no money":         {429, "retry-after: 3", `{"error":{"message":"` + quota + `","type":"insufficient_quota","code":"insufficient_quota"}}`, provider.Exhausted, `{}`},
		"openai, no credit":        {429, "", `{"error":{"message":"","type":"x","code":"credit_balance_exhausted"}}`, provider.Exhausted, `{}`},
		"openai, spend limit":      {429, "", `{"error":{"code":"project_spend_limit_exceeded"}}`, provider.Exhausted, `{}`},
		"openai, barred":           {403, "", `{"error":{"code":"access_terminated"}}`, provider.Exhausted, `{}`},
		"openai, broken":           {500, "", `{"error":{"type":"server_error"}}`, provider.Transient, `{}`},
		"openai, in a stream":      {200, "", `{"code":"rate_limit_exceeded","message":"try again in 1.2s"}`, provider.Rate, `{"retry_after_ms":1200}`},
		"openai, limit in a 400":   {400, "", `{"error":{"message":"max_tokens: limit 4096, requested 5000","type":"invalid_request_error"}}`, provider.Rejected, `{}`},
		"azure":                    {429, "retry-after: 1", `{"error":{"code":"429","message":"` + azure + `Please retry after 45 seconds."}}`, provider.Rate, `{"retry_after_ms":45000}`},
		"azure, by name":           {429, "", `{"error":{"code":"RateLimitReached","message":"Rate limit is exceeded. Try again in 2 seconds."}}`, provider.Rate, `{"retry_after_ms":2000}`},
		"azure, a day":             {429, "", `{"error":{"code":"429","message":"` + azure + `Please retry after 86400 seconds."}}`, provider.Hold, `{"retry_after_ms":86400000}`},
		"azure, high demand":       {429, "", `{"error":{"code":"429","message":"The system is currently experiencing high demand and cannot process your request. Please retry after 20 seconds."}}`, provider.Capacity, `{"retry_after_ms":20000}`},
		"anthropic":                {429, "retry-after: 25", `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 10,000 input tokens per minute (org: .., model: ..)"},"request_id":"req"}`, provider.Rate, `{"retry_after_ms":25000,"input_tokens":{"limit":10000}}`},
		"anthropic, overloaded":    {529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, provider.Capacity, `{}`},
		"anthropic, in a stream":   {200, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, provider.Capacity, `{}`},
		"anthropic, spend cap":     {429, "", `{"type":"error","error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}`, provider.Exhausted, `{}`},
		"anthropic, billing":       {403, "", `{"type":"error","error":{"type":"billing_error"}}`, provider.Exhausted, `{}`},
		"anthropic, permission":    {403, "", `{"type":"error","error":{"type":"permission_error"}}`, provider.Rejected, `{}`},
		"anthropic, prepaid":       {400, "", `{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, provider.Exhausted, `{}`},
		"anthropic, timeout":       {504, "", `{"type":"error","error":{"type":"timeout_error"}}`, provider.Transient, `{}`},
		"anthropic, broken stream": {200, "", `{"type":"error","error":{"type":"api_error"}}`, provider.Transient, `{}`},
		"gemini": {
			429, "", gemini("You exceeded your current quota. Please retry in 45.811974541s.", "GenerateContentPaidTierInputTokensPerModelPerMinute", "1000000", "45s"),
			provider.Rate, `{"retry_after_ms":45812,"input_tokens":{"limit":1000000}}`,
		},
		"gemini, requests": {
			429, "", gemini("Please retry in 14s", "GenerateRequestsPerMinutePerProjectPerModel", "15", "51.4s"),
			provider.Rate, `{"retry_after_ms":51400,"requests":{"limit":15}}`,
		},
		"gemini, a day":         {429, "", gemini("", "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "50", "32s"), provider.Hold, `{"retry_after_ms":68400000}`},
		"gemini, no billing":    {429, "", gemini("", "GenerateContentInputTokensPerModelPerMinute-FreeTier", "0", "32s"), provider.Exhausted, `{}`},
		"gemini, shared":        {429, "", `{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}`, provider.Capacity, `{}`},
		"gemini, 503":           {503, "", gemini("", "GenerateRequestsPerMinute", "15", "1s"), provider.Capacity, `{"retry_after_ms":1000}`},
		"gemini, wrapped":       {429, "", `[` + gemini("", "GenerateRequestsPerMinute", "15", "1s") + `]`, provider.Rate, `{"retry_after_ms":1000,"requests":{"limit":15}}`},
		"bedrock":               {429, "x-amzn-errortype: ThrottlingException:http://internal.amazon.com/", `{"message":"Too many tokens, please wait before trying again."}`, provider.Rate, `{}`},
		"bedrock, by its body":  {400, "", `{"__type":"com.amazon.coral#ThrottlingException","message":"Too many requests"}`, provider.Rate, `{}`},
		"bedrock, a day":        {429, "", `{"message":"Too many tokens per day, please wait before trying again."}`, provider.Hold, `{"retry_after_ms":300000}`},
		"bedrock, away":         {503, "", `{"__type":"ServiceUnavailableException"}`, provider.Capacity, `{}`},
		"bedrock, not ready":    {429, "x-amzn-errortype: ModelNotReadyException", `{"message":"not ready"}`, provider.Transient, `{}`},
		"groq, too large":       {413, "", openai("Request too large for model llama in organization org on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size"), provider.Oversize, `{"tokens":{"limit":6000}}`},
		"groq, output":          {429, "retry-after: 12", openai("Rate limit reached for model in organization org service tier on_demand on output tokens per minute (OTPM): Limit 1000, Used 997, Requested 192. Please try again in 11.34s."), provider.Rate, `{"retry_after_ms":12000,"output_tokens":{"limit":1000,"remaining":3}}`},
		"groq, two dimensions":  {429, "", openai("on tokens per minute (TPM): Limit 9000, Used 1, Requested 192; on input tokens per minute (ITPM): Limit 1000, Used 997, Requested 192. Please try again in 11.34s."), provider.Rate, `{"retry_after_ms":11340,"tokens":{"limit":9000,"remaining":8999},"input_tokens":{"limit":1000,"remaining":3}}`},
		"groq, in a stream":     {200, "", `{"error":{"message":"Tool choice","type":"invalid_request_error","code":"tool_use_failed","status_code":400}}`, provider.Rejected, `{}`},
		"mistral":               {429, "", `{"object":"error","message":"Requests rate limit exceeded","type":"rate_limited","param":null,"code":"1300"}`, provider.Rate, `{}`},
		"mistral, capacity":     {429, "", `{"object":"error","type":"invalid","code":3505}`, provider.Capacity, `{}`},
		"together":              {429, "x-ratelimit-reset: 1", `{"error":{"type":"dynamic_token_limited"}}`, provider.Rate, `{}`},
		"together, spent":       {402, "", `{}`, provider.Exhausted, `{}`},
		"together, capacity":    {503, "", `{}`, provider.Capacity, `{}`},
		"openrouter":            {429, "", `{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"x is temporarily rate-limited upstream. Please retry shortly."}}}`, provider.Capacity, `{}`},
		"openrouter, in a 200":  {200, "", `{"error":{"code":429,"message":"Rate limit exceeded"}}`, provider.Rate, `{}`},
		"openrouter, no credit": {200, "", `{"error":{"code":402,"message":"Insufficient credits"}}`, provider.Exhausted, `{}`},
		"vllm":                  {400, "", `{"object":"error","message":"too long","type":"BadRequestError","code":400}`, provider.Rejected, `{}`},
		"xai":                   {400, "", `{"code":"invalid-argument","error":"Incorrect API key"}`, provider.Rejected, `{}`},
		"timeout":               {408, "", ``, provider.Transient, `{}`},
		"a page":                {502, "", `<html>Bad gateway</html>`, provider.Transient, `{}`},
		"nothing":               {429, "", ``, provider.Rate, `{}`},
		"nonsense":              {429, "", `{"error":{"type":7,"code":{},"message":[],"details":3,"metadata":"x"}}`, provider.Rate, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := provider.Error(arrival, row.status, header(row.header), []byte(row.body))
			if got.Kind != row.kind || state(t, got.State) != row.want {
				t.Errorf("is   %s %s\nwant %s %s", kinds[got.Kind], state(t, got.State), kinds[row.kind], row.want)
			}
		})
	}
}

// The status that is told is that of the failure where the response's is not one.
func TestStatusOfAnErrorInAStream(t *testing.T) {
	for body, want := range map[string]int64{
		`{"error":{"code":429}}`:          429,
		`{"error":{"status_code":400}}`:   400,
		`{"error":{"code":"server_err"}}`: 200,
		`{"error":{"code":1300}}`:         200,
	} {
		if got := provider.Error(arrival, 200, nil, []byte(body)).State.Status; got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
}

// A day of Google's begins at midnight in Los Angeles, also where that is an hour
// earlier or later than the day before.
func TestHoldUntilMidnightPacific(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(gemini("", "GenerateRequestsPerDayPerProject", "50", "32s"))
	for now := time.Date(2025, 12, 30, 0, 7, 0, 0, time.UTC); now.Year() < 2029; now = now.Add(5 * time.Hour) {
		y, m, d := now.In(zone).Date()
		want := time.Date(y, m, d+1, 0, 0, 0, 0, zone).Sub(now)
		got := provider.Error(now, 429, nil, body).State.RetryAfterMS.Value
		if got != want.Milliseconds() {
			t.Fatalf("at %v: %v, want %v", now, time.Duration(got)*time.Millisecond, want)
		}
	}
}

func TestRecordedErrors(t *testing.T) {
	var b strings.Builder
	for _, file := range []string{"headers/errors_429.jsonl", "headers/errors.jsonl"} {
		fmt.Fprintf(&b, "# %s\n", file)
		for i, e := range testlines.Read[exchange](t, testdata(file)) {
			got := provider.Error(arrival, e.Status, e.header(), e.Body)
			fmt.Fprintf(&b, "%d %s %d %s %s\n", i+1, e.Provider, e.Status, kinds[got.Kind], state(t, got.State))
		}
	}
	golden(t, "headers/failures.txt", b.String())
}

func TestOutcomes(t *testing.T) {
	for kind, want := range map[provider.Kind]string{
		provider.Rate: "throttled", provider.Hold: "throttled", provider.Capacity: "overloaded", provider.Exhausted: "exhausted",
		provider.Oversize: "failed", provider.Transient: "failed", provider.Rejected: "failed",
	} {
		if got := kind.Outcome().String(); got != want {
			t.Errorf("%s is settled as %s", kinds[kind], got)
		}
	}
}
