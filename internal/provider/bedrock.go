package provider

import (
	"encoding/json"
	"strings"
)

// Bedrock sends no limit headers. Its ThrottlingException says "Too many tokens,
// please wait before trying again." or "Too many requests …" and no wait.

// bedrockPerDay reports "Too many tokens per day …" (doc).
func bedrockPerDay(message string) bool {
	return strings.Contains(strings.ToLower(message), "too many tokens per day")
}

// bedrockCounts reads the usage of Bedrock's Converse, whose inputTokens exclude the
// cache (recorded: 11 + 1028 written + 264 = 1303).
func bedrockCounts(usage json.RawMessage) (counts, bool) {
	var u struct {
		Input  count `json:"inputTokens"`
		Output count `json:"outputTokens"`
		Read   count `json:"cacheReadInputTokens"`
		Write  count `json:"cacheWriteInputTokens"`
	}
	if json.Unmarshal(usage, &u) != nil || !u.Input.Set && !u.Output.Set {
		return counts{}, false
	}
	return counts{
		input: u.Input.OptInt, output: u.Output.OptInt,
		cached: u.Read.OptInt, written: u.Write.OptInt, apart: true,
	}, true
}
