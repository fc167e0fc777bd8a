package provider

import (
	"strconv"
	"strings"
	"time"

	"quotabroker/wire"
)

// A clause is one limit as OpenAI and Groq tell it in the sentence of an error:
// "… on tokens per min (TPM): Limit 200000, Used 193762, Requested 7653".
type clause struct {
	metric                 metric
	day                    bool // the limit is labelled as one of a day
	limit, used, requested wire.OptInt
}

// maxClauses is more than a sentence has.
const maxClauses = 8

// clauses finds the limits that a message tells. The dimension of each is the one
// that is named nearest before it, since a message may name several (Groq).
func clauses(message string) []clause {
	lower := strings.ToLower(message)
	var all []clause
	for len(all) < maxClauses {
		before, limit, rest := figure(lower, "limit")
		if !limit.Set {
			break
		}
		own := rest // up to the next clause
		if next, l, _ := figure(rest, "limit"); l.Set {
			own = next
		}
		c := clause{limit: limit}
		c.metric, c.day = dimension(before)
		_, c.used, _ = figure(own, "used")
		_, c.requested, _ = figure(own, "requested")
		all = append(all, c)
		lower = rest
	}
	return all
}

// figure finds the first label that is followed by a number, which may have
// thousands commas and a tilde before it, and returns what is before and after.
func figure(s, label string) (before string, n wire.OptInt, after string) {
	for at := 0; ; {
		i := strings.Index(s[at:], label)
		if i < 0 {
			return s, wire.OptInt{}, ""
		}
		start := at + i
		at = start + len(label)
		value := strings.TrimLeft(s[at:], ": ~")
		digits := value[:len(value)-len(strings.TrimLeft(value, "0123456789,"))]
		if n = amount(strings.TrimRight(digits, ",")); n.Set && digits != "" {
			return s[:start], n, value[len(digits):]
		}
	}
}

// dimensions are the words for what a limit counts.
var dimensions = [...]struct {
	word   string
	metric metric
	day    bool
}{
	{"tpm", tokens, false},
	{"itpm", inputTokens, false},
	{"otpm", outputTokens, false},
	{"rpm", requests, false},
	{"tpd", tokens, true},
	{"rpd", requests, true},
	{"ipm", otherMetric, false},
	{"tokens per min", tokens, false},
	{"input tokens per min", inputTokens, false},
	{"output tokens per min", outputTokens, false},
	{"requests per min", requests, false},
	{"images per min", otherMetric, false},
	{"tokens per day", tokens, true},
	{"requests per day", requests, true},
}

// dimension is what is named last, and, of words that end alike, by the longest.
// Tokens where nothing is named.
func dimension(s string) (m metric, day bool) {
	end, length := 0, 0
	for _, d := range dimensions {
		i := strings.LastIndex(s, d.word)
		if i < 0 {
			continue
		}
		if e := i + len(d.word); e > end || e == end && len(d.word) > length {
			end, length, m, day = e, len(d.word), d.metric, d.day
		}
	}
	return m, day
}

// oversize reports whether a request is larger than a whole limit. OpenAI and Groq
// refuse it with the code, and Groq even with the hint, of one that may come back.
func oversize(said []clause) bool {
	for _, c := range said {
		if c.requested.Set && c.requested.Value > c.limit.Value {
			return true
		}
	}
	return false
}

// teach completes a state with the limits that the message tells, where headers
// did not. A limit that is not one of a minute is left out: the state cannot say so.
func (f *fault) teach(state *wire.ProviderState, said []clause) {
	wait := f.wait()
	for _, c := range said {
		if c.day || !c.minute(wait) {
			continue
		}
		l := wire.LimitState{Limit: c.limit}
		if c.used.Set {
			l.Remaining = wire.Int(max(c.limit.Value-c.used.Value, 0))
		}
		learn(state, c.metric, l)
	}
	anthropicTeach(state, f.message)
	f.gemini.teach(state)
}

// minute reports whether the limit is one of a minute, whatever its label: one
// "TPM" limit proved to be of 30 days (openai-dotnet#404). The bucket leaks evenly,
// so that wait = overflow × window / limit (calc, seven of seven).
func (c *clause) minute(wait wire.OptInt) bool {
	overflow := c.used.Value + c.requested.Value - c.limit.Value
	if !wait.Set || overflow <= 0 || oversize([]clause{*c}) {
		return true // nothing speaks against it
	}
	const most = 90_000 // ms; half as long again, for what is rounded and unsaid
	return float64(wait.Value-1)*float64(c.limit.Value) <= most*float64(overflow)
}

// learn takes a limit that the headers did not tell.
func learn(state *wire.ProviderState, m metric, l wire.LimitState) {
	at := map[metric]**wire.LimitState{
		tokens: &state.Tokens, inputTokens: &state.InputTokens, outputTokens: &state.OutputTokens, requests: &state.Requests,
	}[m]
	if at != nil && *at == nil {
		*at = &l
	}
}

// waitIn is the longest wait that a message asks for: "try again in 424ms", "retry
// after 45 seconds", "retry in 45.8s".
func waitIn(message string) wire.OptInt {
	lower := strings.ToLower(message)
	var longest wire.OptInt
	for _, phrase := range [...]string{"try again in ", "retry after ", "retry in "} {
		for s := lower; ; {
			_, after, ok := strings.Cut(s, phrase)
			if !ok {
				break
			}
			longest = later(longest, leadingWait(after))
			s = after
		}
	}
	return longest
}

// leadingWait reads the duration that s begins with: Go's, or a number and a unit.
func leadingWait(s string) wire.OptInt {
	word, rest, _ := strings.Cut(s, " ")
	word = strings.TrimRight(word, ".,;!)")
	if d, err := time.ParseDuration(word); err == nil && d > 0 {
		return milliseconds(d)
	}
	n, err := strconv.ParseFloat(word, 64)
	if err != nil || !(n > 0) {
		return wire.OptInt{}
	}
	for _, unit := range [...]struct {
		word string
		unit time.Duration
	}{
		{"milli", time.Millisecond},
		{"ms", time.Millisecond},
		{"sec", time.Second},
		{"min", time.Minute},
		{"hour", time.Hour},
		{"day", 24 * time.Hour},
	} {
		if strings.HasPrefix(rest, unit.word) {
			return span(n, unit.unit)
		}
	}
	return wire.OptInt{}
}
