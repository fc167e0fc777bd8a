package provider

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"quotabroker/wire"
)

// Gemini and Vertex send no limit headers. "You exceeded your current quota" is what
// they say of limits per minute as well; what was reached is in the details.

// quotas are the details of a RESOURCE_EXHAUSTED.
type quotas struct {
	violations []violation
	retry      wire.OptInt // RetryInfo, in ms
}

// violation is a quota that was exceeded. Its id tells metric and span:
// GenerateContentPaidTierInputTokensPerModelPerMinute.
type violation struct {
	QuotaID text `json:"quotaId"`
	Value   text `json:"quotaValue"`
}

// maxViolations is more than a response names.
const maxViolations = 16

// readDetails reads error.details: Gemini's list, or Anthropic's object with an
// error_code.
func (f *fault) readDetails(details json.RawMessage) {
	var object struct {
		ErrorCode text `json:"error_code"`
	}
	if json.Unmarshal(details, &object) == nil {
		f.addName(string(object.ErrorCode))
	}
	var list []json.RawMessage
	if json.Unmarshal(details, &list) != nil {
		return
	}
	f.detailed = f.detailed || len(list) > 0
	for _, item := range list[:min(len(list), maxViolations)] {
		var d struct {
			Violations []violation `json:"violations"`
			RetryDelay text        `json:"retryDelay"`
		}
		if json.Unmarshal(item, &d) != nil {
			continue
		}
		d.Violations = d.Violations[:min(len(d.Violations), maxViolations)]
		f.gemini.violations = append(f.gemini.violations, d.Violations...)
		if delay, err := time.ParseDuration(string(d.RetryDelay)); err == nil && delay > 0 {
			f.gemini.retry = later(f.gemini.retry, milliseconds(delay))
		}
	}
}

// unbilled reports a quota of nothing at all: the project has no billing.
func (q *quotas) unbilled() bool {
	return slices.ContainsFunc(q.violations, func(v violation) bool { return amount(string(v.Value)) == wire.Int(0) })
}

func (q *quotas) perDay() bool {
	return slices.ContainsFunc(q.violations, func(v violation) bool { return strings.Contains(string(v.QuotaID), "PerDay") })
}

// teach learns the limits per minute.
func (q *quotas) teach(state *wire.ProviderState) {
	for _, v := range q.violations {
		id, limit := string(v.QuotaID), amount(string(v.Value))
		if !limit.Set || !strings.Contains(id, "PerMinute") {
			continue
		}
		switch {
		case strings.Contains(id, "InputToken"):
			learn(state, inputTokens, wire.LimitState{Limit: limit})
		case strings.Contains(id, "Request"):
			learn(state, requests, wire.LimitState{Limit: limit})
		}
	}
}

// geminiShared reports a RESOURCE_EXHAUSTED without details, which is no quota of
// the project's: what all customers share in a region is used up (Vertex doc,
// python-genai#2065).
func (f *fault) geminiShared() bool {
	return !f.detailed && f.named(map[string]bool{"resource_exhausted": true})
}

// pacificMidnight is the next midnight in Los Angeles, when the quotas of a day
// begin anew (doc). The rule of its daylight saving is written out here, so that it
// does not take the machine's time zone files to know it: from the second Sunday of
// March to the first of November, at two o'clock.
func pacificMidnight(now time.Time) time.Time {
	standard := time.FixedZone("PST", -8*60*60)
	daylight := time.FixedZone("PDT", -7*60*60)
	year := now.In(standard).Year()
	begin := time.Date(year, time.March, sunday(year, time.March, 2), 2, 0, 0, 0, standard)
	end := time.Date(year, time.November, sunday(year, time.November, 1), 2, 0, 0, 0, daylight)
	zone := func(t time.Time) *time.Location {
		if !t.Before(begin) && t.Before(end) {
			return daylight
		}
		return standard
	}
	y, m, d := now.In(zone(now)).Date()
	midnight := time.Date(y, m, d+1, 0, 0, 0, 0, standard)
	return time.Date(y, m, d+1, 0, 0, 0, 0, zone(midnight))
}

// sunday is the day of the month of its nth Sunday.
func sunday(year int, month time.Month, n int) int {
	first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Weekday()
	return 1 + (7-int(first))%7 + 7*(n-1)
}

// geminiCounts reads usageMetadata of Gemini and Vertex. The prompt includes what was
// cached; thoughts are not among the candidates, nor the results of tools in the
// prompt (doc). Each chunk of a stream tells all of it, so that what it leaves out is
// zero: a recorded last chunk has no candidates though those before it had.
func geminiCounts(usage json.RawMessage) (counts, bool) {
	var u struct {
		Prompt     count `json:"promptTokenCount"`
		Cached     count `json:"cachedContentTokenCount"`
		Candidates count `json:"candidatesTokenCount"`
		Thoughts   count `json:"thoughtsTokenCount"`
		Tools      count `json:"toolUsePromptTokenCount"`
	}
	if json.Unmarshal(usage, &u) != nil || !u.Prompt.Set {
		return counts{}, false
	}
	return counts{
		input:    plus(u.Prompt.OptInt, u.Tools),
		output:   wire.Int(u.Candidates.Value + u.Thoughts.Value),
		cached:   wire.Int(u.Cached.Value),
		thinking: wire.Int(u.Thoughts.Value),
	}, true
}

// interactionCounts reads the usage of Gemini's Interactions API (doc), whose parts
// lie apart like those of usageMetadata.
func interactionCounts(usage json.RawMessage) (counts, bool) {
	var u struct {
		Input   count `json:"total_input_tokens"`
		Output  count `json:"total_output_tokens"`
		Thought count `json:"total_thought_tokens"`
		Cached  count `json:"total_cached_tokens"`
		Tools   count `json:"total_tool_use_tokens"`
	}
	if json.Unmarshal(usage, &u) != nil || !u.Input.Set && !u.Output.Set {
		return counts{}, false
	}
	return counts{
		input:    plus(u.Input.OptInt, u.Tools),
		output:   plus(u.Output.OptInt, u.Thought),
		cached:   u.Cached.OptInt,
		thinking: u.Thought.OptInt,
	}, true
}
