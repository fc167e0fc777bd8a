package provider

import "strings"

// Bedrock sends no limit headers. Its ThrottlingException says "Too many tokens,
// please wait before trying again." or "Too many requests …" and no wait.

// bedrockPerDay reports "Too many tokens per day …" (doc).
func bedrockPerDay(message string) bool {
	return strings.Contains(strings.ToLower(message), "too many tokens per day")
}
