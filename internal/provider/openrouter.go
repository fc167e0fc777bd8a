package provider

import (
	"encoding/json"
	"strings"
)

// openrouterHeaders are the one limit of those who have only one. OpenRouter's
// counts requests and its reset is a time in epoch milliseconds (recorded), that of
// Together is a number of seconds (doc), and of Replicate too, whose names lack the X.
var openrouterHeaders = []limitHeaders{
	{metric: requests, limit: "X-Ratelimit-Limit", remaining: "X-Ratelimit-Remaining", reset: "X-Ratelimit-Reset", window: true},
	{metric: requests, limit: "Ratelimit-Limit", remaining: "Ratelimit-Remaining", reset: "Ratelimit-Reset", window: true},
}

// readMetadata reads what OpenRouter adds to "Provider returned error": the words of
// the provider behind it, which is short of capacity for everybody (recorded: "…
// temporarily rate-limited upstream. Please retry shortly").
func (f *fault) readMetadata(metadata json.RawMessage) {
	var m struct {
		Raw text `json:"raw"`
	}
	if json.Unmarshal(metadata, &m) == nil && strings.Contains(string(m.Raw), "rate-limited upstream") {
		f.upstream = true
	}
}
