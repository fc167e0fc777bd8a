package provider

import (
	"encoding/json"
	"math"
	"strconv"

	"quotabroker/wire"
)

// counts is what one usage object tells, in the words of wire. What it does not
// tell is absent.
type counts struct {
	input, output             wire.OptInt
	cached, written, thinking wire.OptInt

	// apart says that cached and written tokens are not in input.
	apart bool
}

// readers are the forms of a usage object. Each returns false for what is not in
// its form; their fields are told apart by name.
var readers = [...]func(json.RawMessage) (counts, bool){
	chatCounts, anthropicCounts, responsesCounts, geminiCounts, interactionCounts, bedrockCounts, cohereCounts,
}

// countsIn reads a usage object of any family.
func countsIn(usage json.RawMessage) (counts, bool) {
	if len(usage) == 0 || usage[0] != '{' {
		return counts{}, false
	}
	for _, read := range readers {
		if c, ok := read(usage); ok {
			return c, true
		}
	}
	return counts{}, false
}

// add takes what is told later. Counts are cumulative: a figure replaces the one
// before, and one that is not told again stands.
func (c *counts) add(next counts) {
	for _, f := range [...]struct {
		to   *wire.OptInt
		from wire.OptInt
	}{
		{&c.input, next.input},
		{&c.output, next.output},
		{&c.cached, next.cached},
		{&c.written, next.written},
		{&c.thinking, next.thinking},
	} {
		if f.from.Set {
			*f.to = f.from
		}
	}
	c.apart = c.apart || next.apart
}

// usage is the whole, nil where input or output was not told: a figure that is
// missing is not a zero. A part is never more than its whole.
func (c *counts) usage() *wire.Usage {
	if !c.input.Set || !c.output.Set {
		return nil
	}
	u := wire.Usage{InputTokens: c.input.Value, OutputTokens: c.output.Value}
	if c.apart {
		u.InputTokens += c.cached.Value + c.written.Value
	}
	if u.InputTokens > wire.MaxTokens || u.OutputTokens > wire.MaxTokens {
		return nil
	}
	u.CachedInputTokens = min(c.cached.Value, u.InputTokens)
	u.CacheWriteTokens = min(c.written.Value, u.InputTokens-u.CachedInputTokens)
	u.ReasoningTokens = min(c.thinking.Value, u.OutputTokens)
	return &u
}

// count is a number of tokens in a usage object. What is null, no whole number,
// negative or over [wire.MaxTokens] counts as not told.
type count struct{ wire.OptInt }

// UnmarshalJSON implements json.Unmarshaler. It never fails, so that one strange
// member does not spoil the others.
func (c *count) UnmarshalJSON(data []byte) error {
	c.OptInt = wire.OptInt{}
	n, err := strconv.ParseFloat(string(data), 64) // some write 12.0
	if err == nil && n >= 0 && n <= wire.MaxTokens && n == math.Trunc(n) {
		c.OptInt = wire.Int(int64(n))
	}
	return nil
}

// first is the first of several counts that is told.
func first(all ...count) wire.OptInt {
	for _, c := range all {
		if c.Set {
			return c.OptInt
		}
	}
	return wire.OptInt{}
}

// plus is the sum of counts of which the first must be told.
func plus(whole wire.OptInt, parts ...count) wire.OptInt {
	if whole.Set {
		for _, p := range parts {
			whole.Value += p.Value
		}
	}
	return whole
}

// object is a member that is an object of this form, or, of any other, the zero T.
type object[T any] struct{ is T }

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (o *object[T]) UnmarshalJSON(data []byte) error {
	var is T
	if json.Unmarshal(data, &is) == nil {
		o.is = is
	}
	return nil
}
