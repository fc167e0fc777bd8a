package provider

import (
	"encoding/json"

	"quotabroker/wire"
)

// openaiHeaders are the headers of OpenAI (doc); Groq, xAI and many proxies send the
// first two as well, which azureHeaders reads with their span. A project may have a
// limit of its own under the organisation's, and usage-based limits were seen
// beside the plain ones in 2025.
var openaiHeaders = []limitHeaders{
	{
		metric: tokens, limit: "X-Ratelimit-Limit-Project-Tokens",
		remaining: "X-Ratelimit-Remaining-Project-Tokens", reset: "X-Ratelimit-Reset-Project-Tokens",
	},
	{
		metric: requests, limit: "X-Ratelimit-Limit-Project-Requests",
		remaining: "X-Ratelimit-Remaining-Project-Requests", reset: "X-Ratelimit-Reset-Project-Requests",
	},
	{
		metric: tokens, limit: "X-Ratelimit-Limit-Tokens_usage_based",
		remaining: "X-Ratelimit-Remaining-Tokens_usage_based", reset: "X-Ratelimit-Reset-Tokens_usage_based",
	},
}

// openaiExhausted are the words, as error.type or error.code, by which OpenAI says
// that an account is out of money or barred (doc of 2026, with the list of an
// evaluation tool, promptfoo). They come with a status of 429, like limits.
var openaiExhausted = map[string]bool{
	"insufficient_quota":                true,
	"credit_balance_exhausted":          true,
	"organization_spend_limit_exceeded": true,
	"project_spend_limit_exceeded":      true,
	"organization_usage_limit_exceeded": true,
	"billing_hard_limit_reached":        true,
	"access_terminated":                 true,
}

// details are the parts of a count at OpenAI. Cached tokens are among the prompt's,
// reasoning among the completion's, rejected predictions too (SDK).
type details struct {
	Cached    count `json:"cached_tokens"`
	Written   count `json:"cache_write_tokens"`
	Reasoning count `json:"reasoning_tokens"`
	Thinking  count `json:"thinking_tokens"` // Anthropic
}

// chatCounts reads the usage of OpenAI's chat and legacy completions and of its
// embeddings, and of all who speak like it; Groq adds its timing. An embedding has
// no completion, only a total that says so.
//
// Where the total is more than prompt and completion, the rest is reasoning that is
// not among the completion's, and counts as output: recorded at Gemini's
// OpenAI-compatible API (66 and 6 of 100), and said of xAI's chat (unverified). Of
// the other recordings, some seven hundred, every total is the sum.
func chatCounts(usage json.RawMessage) (counts, bool) {
	var u struct {
		Prompt     count           `json:"prompt_tokens"`
		Completion count           `json:"completion_tokens"`
		Total      count           `json:"total_tokens"`
		In         object[details] `json:"prompt_tokens_details"`
		Out        object[details] `json:"completion_tokens_details"`

		CacheHit  count `json:"prompt_cache_hit_tokens"` // DeepSeek
		NumCached count `json:"num_cached_tokens"`       // Mistral
		Cached    count `json:"cached_tokens"`           // Together
	}
	if json.Unmarshal(usage, &u) != nil || !u.Prompt.Set && !u.Completion.Set {
		return counts{}, false
	}
	c := counts{
		input:    u.Prompt.OptInt,
		output:   u.Completion.OptInt,
		cached:   first(u.In.is.Cached, u.CacheHit, u.NumCached, u.Cached),
		written:  u.In.is.Written.OptInt,
		thinking: u.Out.is.Reasoning.OptInt,
	}
	if rest := u.Total.Value - u.Prompt.Value; u.Total.Set && u.Prompt.Set && rest >= u.Completion.Value {
		c.output = wire.Int(rest)
	}
	return c, true
}

// responsesCounts reads the usage of OpenAI's Responses API, in which cached tokens
// are among the input, and of Anthropic where it says nothing of a cache.
func responsesCounts(usage json.RawMessage) (counts, bool) {
	var u struct {
		Input  count           `json:"input_tokens"`
		Output count           `json:"output_tokens"`
		In     object[details] `json:"input_tokens_details"`
		Out    object[details] `json:"output_tokens_details"`
	}
	if json.Unmarshal(usage, &u) != nil || !u.Input.Set && !u.Output.Set {
		return counts{}, false
	}
	return counts{
		input:    u.Input.OptInt,
		output:   u.Output.OptInt,
		cached:   u.In.is.Cached.OptInt,
		written:  u.In.is.Written.OptInt,
		thinking: first(u.Out.is.Reasoning, u.Out.is.Thinking),
	}, true
}
