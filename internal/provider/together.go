package provider

// togetherHeaders are the headers of Together (doc) but for the bare ones, which
// are OpenRouter's too. Values are per second. The dynamic limits follow the
// account's recent traffic.
var togetherHeaders = []limitHeaders{
	{metric: tokens, limit: "X-Tokenlimit-Limit", remaining: "X-Tokenlimit-Remaining"},
	{metric: tokens, limit: "X-Tokenlimit-Limit-Dynamic", remaining: "X-Tokenlimit-Remaining-Dynamic"},
	{metric: requests, limit: "X-Ratelimit-Limit-Dynamic", remaining: "X-Ratelimit-Remaining-Dynamic"},
}
