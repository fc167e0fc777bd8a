package provider

import "encoding/json"

// cohereCounts reads the usage of Cohere: the tokens that the model saw, not the
// fewer that are billed. Cached tokens are among them (recorded).
func cohereCounts(usage json.RawMessage) (counts, bool) {
	var u struct {
		Tokens object[struct {
			Input     count `json:"input_tokens"`
			Output    count `json:"output_tokens"`
			Reasoning count `json:"reasoning_tokens"`
		}] `json:"tokens"`
		Cached count `json:"cached_tokens"`
	}
	if json.Unmarshal(usage, &u) != nil {
		return counts{}, false
	}
	t := u.Tokens.is
	if !t.Input.Set && !t.Output.Set {
		return counts{}, false
	}
	return counts{
		input: t.Input.OptInt, output: t.Output.OptInt,
		cached: u.Cached.OptInt, thinking: t.Reasoning.OptInt,
	}, true
}
