package provider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"quotabroker/wire"
)

// MaxEvent is how many bytes of a body, or of one event of a stream, are looked
// at. What is larger is passed over as if it said nothing.
const MaxEvent = 4 << 20

// Seen is what the body of a response has told.
type Seen struct {
	// Usage is what was counted so far, in tokens; nil where input or output was
	// never told. Nothing is to be made of it unless Final.
	Usage *wire.Usage

	// Final says that Usage is what the whole call took. It is not in a stream that
	// was cut off: what came so far is less than what the provider will count.
	Final bool

	// Ended says that the answer is complete, whether or not it told a usage.
	Ended bool

	// Failure is an error that the body reports though the status was good; nil if
	// there is none.
	Failure *Failure
}

// Body reads the whole body of a response with a good status, which is one JSON
// object, or an array of them as Gemini streams it where no events were asked for.
// now is when it arrived; h is the response's header, which a failure within the
// body is read with. A body that is not JSON, or over MaxEvent, has told nothing and
// not ended.
func Body(now time.Time, h http.Header, body []byte) Seen {
	body = bytes.TrimSpace(body)
	if len(body) > MaxEvent || !json.Valid(body) {
		return Seen{}
	}
	var t tale
	var list []json.RawMessage
	if len(body) > 0 && body[0] == '[' && json.Unmarshal(body, &list) == nil {
		for _, item := range list {
			t.event(item)
		}
	} else {
		t.event(body)
	}
	t.ended = true
	return t.seen(now, h)
}

// tale is what the events of a response have told so far; a body that is no stream
// is one event.
type tale struct {
	counts counts
	output bool // counts has the output as a whole, not one that has only begun
	ended  bool // the answer has said that it is complete
	broke  bool
	fault  fault // the first error; of it, if broke
}

func (t *tale) seen(now time.Time, h http.Header) Seen {
	s := Seen{Usage: t.counts.usage(), Ended: t.ended}
	s.Final = s.Usage != nil && t.output && t.ended
	if t.broke {
		f := failed(now, http.StatusOK, h, t.fault)
		s.Failure = &f
	}
	return s
}

// event is what is looked for in an event.
type event struct {
	Type       text            `json:"type"`
	Usage      json.RawMessage `json:"usage"`         // most of them
	Metadata   json.RawMessage `json:"usageMetadata"` // Gemini
	Groq       json.RawMessage `json:"x_groq"`        // Groq's streams
	Message    json.RawMessage `json:"message"`       // Anthropic: message_start
	Response   json.RawMessage `json:"response"`      // OpenAI: response.completed
	Delta      json.RawMessage `json:"delta"`         // Cohere: message-end
	Meta       json.RawMessage `json:"meta"`          // Cohere's first version
	Bedrock    json.RawMessage `json:"metadata"`      // Converse: the last event of a stream
	Candidates json.RawMessage `json:"candidates"`    // Gemini
	Error      json.RawMessage `json:"error"`
}

// event takes one event, or does not if it is no JSON object.
func (t *tale) event(data []byte) {
	var e event
	if json.Unmarshal(data, &e) != nil {
		return
	}
	for _, place := range [...]json.RawMessage{
		member(e.Message, "usage"), member(e.Response, "usage"), member(e.Delta, "usage"),
		member(e.Bedrock, "usage"), member(e.Groq, "usage"), e.Meta, e.Metadata, e.Usage,
	} {
		if c, ok := countsIn(place); ok {
			t.counts.add(c)
			t.output = t.output || e.Type != "message_start" // there it has only begun
		}
	}
	t.ended = t.ended || lastEvents[string(e.Type)] || finished(e.Candidates)
	t.failure(&e, data)
}

// lastEvents are the types after which nothing follows that matters.
var lastEvents = map[string]bool{
	"message_stop":        true, // Anthropic
	"response.completed":  true, // OpenAI Responses
	"response.incomplete": true,
	"response.failed":     true,
	"message-end":         true, // Cohere
}

// failure notes an error: in its own member, in that of a response that failed, or
// as an event that is one.
func (t *tale) failure(e *event, data []byte) {
	inner := member(e.Response, "error")
	switch {
	case told(e.Error):
		t.fail(data)
	case told(inner) || e.Type == "response.failed":
		t.fail(inner)
	case e.Type == "error":
		t.fail(data)
	}
}

func (t *tale) fail(body []byte) {
	if !t.broke {
		t.broke, t.fault = true, parseFault(body)
	}
}

// told reports whether an error is more than an empty member, as the Responses API
// has it in each good answer.
func told(err json.RawMessage) bool {
	switch string(err) {
	case "", "null", "{}", `""`, "false":
		return false
	}
	return true
}

// finished reports whether Gemini's candidates have a reason to have finished; its
// streams have no other end.
func finished(candidates json.RawMessage) bool {
	var list []struct {
		FinishReason text `json:"finishReason"`
	}
	return len(candidates) > 0 && json.Unmarshal(candidates, &list) == nil && len(list) > 0 && list[0].FinishReason != ""
}

// member is a member of an object, nil where there is none or no object.
func member(object json.RawMessage, name string) json.RawMessage {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	return members[name]
}
