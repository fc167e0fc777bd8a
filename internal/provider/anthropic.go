package provider

import (
	"encoding/json"
	"strings"

	"quotabroker/wire"
)

// anthropicHeaders are the headers of Anthropic (doc). The tokens are those of
// whichever limit is tightest, else the sum of input and output; what remains is
// rounded to 1000. Fast mode draws on a pool of its own and is told by headers of
// its own. Those of the priority tier are not read: a request over it is served
// from the standard limits, so that it refuses nobody.
var anthropicHeaders = []limitHeaders{
	anthropicLimit(tokens, "Anthropic-Ratelimit-Tokens"),
	anthropicLimit(inputTokens, "Anthropic-Ratelimit-Input-Tokens"),
	anthropicLimit(outputTokens, "Anthropic-Ratelimit-Output-Tokens"),
	anthropicLimit(requests, "Anthropic-Ratelimit-Requests"),
	anthropicLimit(tokens, "Anthropic-Fast-Tokens"),
	anthropicLimit(inputTokens, "Anthropic-Fast-Input-Tokens"),
	anthropicLimit(outputTokens, "Anthropic-Fast-Output-Tokens"),
	anthropicLimit(requests, "Anthropic-Fast-Requests"),
}

func anthropicLimit(m metric, prefix string) limitHeaders {
	return limitHeaders{metric: m, limit: prefix + "-Limit", remaining: prefix + "-Remaining", reset: prefix + "-Reset"}
}

// anthropicExhausted are the words for an account that is out of money: billing_error
// is a type, the spend cap is error.details.error_code of an ordinary
// rate_limit_error (doc).
var anthropicExhausted = map[string]bool{
	"billing_error":                true,
	"enforced_spend_limit_reached": true,
}

// anthropicBroke reports a prepaid account that is used up, which comes as an
// invalid_request_error with a status of 400 (unverified: not among the recordings).
func (f *fault) anthropicBroke() bool {
	return strings.Contains(f.message, "credit balance is too low to access the Anthropic API")
}

// anthropicTeach learns from "… rate limit of 10,000 input tokens per minute".
func anthropicTeach(state *wire.ProviderState, message string) {
	for s := message; ; {
		_, after, ok := strings.Cut(s, " of ")
		if !ok {
			return
		}
		digits, what, _ := strings.Cut(after, " ")
		if n := amount(digits); n.Set {
			for _, d := range [...]struct {
				words  string
				metric metric
			}{
				{"input tokens per minute", inputTokens},
				{"output tokens per minute", outputTokens},
				{"tokens per minute", tokens},
				{"requests per minute", requests},
			} {
				if strings.HasPrefix(what, d.words) {
					learn(state, d.metric, wire.LimitState{Limit: n})
				}
			}
		}
		s = after
	}
}

// anthropicCounts reads the usage of Anthropic, whose input_tokens exclude what was
// read from and written to the cache (doc). A stream tells the input in its first
// event, and counts in each message_delta from the beginning; the input may be null
// there, or missing.
func anthropicCounts(usage json.RawMessage) (counts, bool) {
	var u struct {
		Read  count `json:"cache_read_input_tokens"`
		Write count `json:"cache_creation_input_tokens"`
	}
	if json.Unmarshal(usage, &u) != nil || !u.Read.Set && !u.Write.Set {
		return counts{}, false
	}
	c, _ := responsesCounts(usage)
	c.cached, c.written, c.apart = u.Read.OptInt, u.Write.OptInt, true
	return c, true
}
