package provider

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
