package client

import (
	"bytes"
	"encoding/json"
	"strings"

	"quotabroker/wire"
)

// usageReader is shown a response piece by piece and says in the end what it
// settles to. atEnd says that the response was read to its end without an error;
// where it was not, and did not itself say that it had ended, the usage that was
// seen so far is not the usage, and what was reserved stays charged.
type usageReader interface {
	read(p []byte)
	settlement(atEnd bool) Settlement
}

// unreadable reads nothing.
type unreadable struct{}

func (unreadable) read([]byte) {}

func (unreadable) settlement(atEnd bool) Settlement {
	if atEnd {
		return Settlement{Outcome: wire.OutcomeOK}
	}
	return Unknown()
}

// objectReader reads a response that is one JSON object.
type objectReader struct {
	data []byte
	over bool // it is too large to be kept
}

func (o *objectReader) read(p []byte) {
	if o.over = o.over || len(o.data)+len(p) > maxResponseBody; o.over {
		o.data = nil
		return
	}
	o.data = append(o.data, p...)
}

func (o *objectReader) settlement(atEnd bool) Settlement {
	var e event
	complete := !o.over && json.Unmarshal(o.data, &e) == nil
	if !complete {
		return unreadable{}.settlement(atEnd)
	}
	// An SDK that decodes the object may close the body without reading to EOF.
	var t tally
	t.add(e.Usage)
	return Settlement{Outcome: wire.OutcomeOK, Usage: t.usage()}
}

// eventReader reads a stream of server-sent events.
type eventReader struct {
	line  []byte // begun, not ended
	skip  bool   // the line is too long to be of interest
	tally tally
	final bool // the tally holds the output
	ended bool // the stream has said that it is complete
	broke bool // the stream has said that it failed
}

func (r *eventReader) read(p []byte) {
	for len(p) > 0 {
		line, rest, ends := bytes.Cut(p, []byte("\n"))
		if !r.skip && len(r.line)+len(line) <= maxResponseBody {
			r.line = append(r.line, line...)
		} else {
			r.line, r.skip = nil, true
		}
		if ends {
			r.event()
			r.line, r.skip = r.line[:0], false
		}
		p = rest
	}
}

// event takes the line that has ended. Providers put each event's data on one.
func (r *eventReader) event() {
	data, ok := bytes.CutPrefix(r.line, []byte("data:"))
	if !ok {
		return
	}
	data = bytes.TrimSpace(data)
	if string(data) == "[DONE]" {
		r.ended = true
		return
	}
	var e event
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "message_start": // the input, and an output that has only begun
		r.tally.add(e.nested(e.Message))
	case "message_stop":
		r.ended = true
	case "response.completed", "response.incomplete":
		r.tally.add(e.nested(e.Response))
		r.final, r.ended = true, true
	case "response.failed":
		r.tally.add(e.nested(e.Response))
		r.final, r.ended, r.broke = true, true, true
	case "error":
		r.broke = true
	default:
		if e.Usage != nil {
			r.tally.add(e.Usage)
			r.final = true
		}
	}
}

func (r *eventReader) settlement(atEnd bool) Settlement {
	if len(r.line) > 0 {
		r.event() // it ended without a line break
	}
	s := Settlement{Outcome: wire.OutcomeUnknown}
	switch {
	case r.broke:
		s.Outcome = wire.OutcomeFailed
	case r.ended || atEnd:
		s.Outcome = wire.OutcomeOK
	}
	if r.final && (r.ended || atEnd) {
		s.Usage = r.tally.usage()
	}
	return s
}

// event is what is looked for in a response or in one event of a stream.
type event struct {
	Type     string          `json:"type"`
	Usage    *reported       `json:"usage"`
	Message  json.RawMessage `json:"message"`
	Response json.RawMessage `json:"response"`
}

// nested is the usage inside a member of the event.
func (event) nested(member json.RawMessage) *reported {
	var inner struct {
		Usage *reported `json:"usage"`
	}
	if json.Unmarshal(member, &inner) != nil {
		return nil
	}
	return inner.Usage
}

// reported is a usage as OpenAI (chat and responses) or Anthropic writes it.
type reported struct {
	PromptTokens     *int64  `json:"prompt_tokens"`
	CompletionTokens *int64  `json:"completion_tokens"`
	TotalTokens      *int64  `json:"total_tokens"`
	PromptDetails    details `json:"prompt_tokens_details"`
	CompletionDetail details `json:"completion_tokens_details"`

	InputTokens   *int64  `json:"input_tokens"`
	OutputTokens  *int64  `json:"output_tokens"`
	InputDetails  details `json:"input_tokens_details"`
	OutputDetails details `json:"output_tokens_details"`

	CacheWrite *int64 `json:"cache_creation_input_tokens"` // Anthropic: not in input_tokens
	CacheRead  *int64 `json:"cache_read_input_tokens"`     // Anthropic: not in input_tokens
}

type details struct {
	Cached     *int64 `json:"cached_tokens"`
	CacheWrite *int64 `json:"cache_write_tokens"`
	Reasoning  *int64 `json:"reasoning_tokens"`
	Thinking   *int64 `json:"thinking_tokens"`
}

// tally gathers what a response reports, possibly in several places; what comes
// later is cumulative and replaces what came before.
type tally struct {
	input, output           wire.OptInt // input without what Anthropic counts apart
	cached, write, thinking int64
	apart                   int64 // Anthropic's cache tokens
}

func (t *tally) add(r *reported) {
	if r == nil {
		return
	}
	for _, v := range []*int64{r.PromptTokens, r.InputTokens} {
		if v != nil {
			t.input = wire.Int(*v)
		}
	}
	for _, v := range []*int64{r.CompletionTokens, r.OutputTokens} {
		if v != nil {
			t.output = wire.Int(*v)
		}
	}
	if r.CompletionTokens == nil && r.PromptTokens != nil && r.TotalTokens != nil { // embeddings
		t.output = wire.Int(*r.TotalTokens - *r.PromptTokens)
	}
	t.cached = last(t.cached, r.PromptDetails.Cached, r.InputDetails.Cached, r.CacheRead)
	t.write = last(t.write, r.PromptDetails.CacheWrite, r.InputDetails.CacheWrite, r.CacheWrite)
	t.thinking = last(t.thinking, r.CompletionDetail.Reasoning, r.OutputDetails.Reasoning, r.OutputDetails.Thinking)
	if r.CacheRead != nil || r.CacheWrite != nil {
		t.apart = t.cached + t.write
	}
}

// last is the last of several values that is there.
func last(v int64, others ...*int64) int64 {
	for _, o := range others {
		if o != nil {
			v = *o
		}
	}
	return v
}

// usage is the sum, nil where a part of it was not reported: a figure that is
// missing is not a zero.
func (t *tally) usage() *wire.Usage {
	if !t.input.Set || !t.output.Set {
		return nil
	}
	return &wire.Usage{
		InputTokens:       t.input.Value + t.apart,
		CachedInputTokens: t.cached,
		CacheWriteTokens:  t.write,
		OutputTokens:      t.output.Value,
		ReasoningTokens:   t.thinking,
	}
}

// outOfMoney are the words, as error.type, error.code or error.details.error_code,
// by which a provider says that waiting will not help.
var outOfMoney = map[string]bool{
	"insufficient_quota":                true,
	"credit_balance_exhausted":          true,
	"organization_spend_limit_exceeded": true,
	"project_spend_limit_exceeded":      true,
	"organization_usage_limit_exceeded": true,
	"billing_hard_limit_reached":        true,
	"access_terminated":                 true,
	"billing_error":                     true,
	"enforced_spend_limit_reached":      true,
}

// saysOutOfMoney reads the body of an error response.
func saysOutOfMoney(body []byte) bool {
	var e struct {
		Error struct {
			Type    string          `json:"type"`
			Code    json.RawMessage `json:"code"` // Gemini: a number
			Details json.RawMessage `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil {
		return false
	}
	var detail struct {
		ErrorCode string `json:"error_code"`
	}
	_ = json.Unmarshal(e.Error.Details, &detail) // another shape says nothing
	return outOfMoney[e.Error.Type] || outOfMoney[strings.Trim(string(e.Error.Code), `"`)] || outOfMoney[detail.ErrorCode]
}
