package provider

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// fault is an error body, of whatever family.
type fault struct {
	names    []string // its types, codes and statuses, in lower case
	message  string
	status   int    // the HTTP status that it names, 0 for none
	gemini   quotas // of its details
	detailed bool   // it has any details
	upstream bool   // OpenRouter reports the refusal of another provider
}

// faultBody holds what the families put into an error: OpenAI and those like it
// {"error":{…}}, Anthropic {"type":"error","error":{…}}, xAI {"error":"…"}, Bedrock,
// Mistral and old vLLM the members themselves, and OpenAI's stream a flat event.
type faultBody struct {
	Error      json.RawMessage `json:"error"`
	Type       text            `json:"type"`
	Code       text            `json:"code"`
	Status     text            `json:"status"`
	StatusCode text            `json:"status_code"` // Groq, in a stream
	AWSType    text            `json:"__type"`
	ErrorCode  text            `json:"error_code"`
	Message    text            `json:"message"`
	Detail     text            `json:"detail"` // Mistral, Llama API
	Details    json.RawMessage `json:"details"`
	Metadata   json.RawMessage `json:"metadata"` // OpenRouter
}

// parseFault reads a body. What is no JSON object is its own message; an array is
// what Gemini wraps its errors in when it was asked for no event stream.
func parseFault(body []byte) fault {
	var f fault
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if len(body) > 0 && body[0] == '[' && json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	f.read(body, 1)
	return f
}

// read adds what an object says, and what the error within it says; depth is how
// many more are looked into.
func (f *fault) read(body []byte, depth int) {
	var b faultBody
	if json.Unmarshal(body, &b) != nil {
		f.say(plain(body))
		return
	}
	for _, name := range []text{b.Type, b.Code, b.Status, b.AWSType, b.ErrorCode} {
		f.addName(string(name))
	}
	for _, code := range []text{b.StatusCode, b.Code, b.Status} {
		if n, err := strconv.Atoi(string(code)); err == nil && 400 <= n && n <= 599 && f.status == 0 {
			f.status = n
		}
	}
	f.say(string(b.Message))
	f.say(string(b.Detail))
	f.readDetails(b.Details)
	f.readMetadata(b.Metadata)
	if depth > 0 && len(b.Error) > 0 {
		f.read(b.Error, depth-1)
	}
}

// say keeps the first message: the outer one of two is the gateway's own.
func (f *fault) say(message string) {
	if f.message == "" {
		f.message = message
	}
}

// addName adds a type or a code. AWS writes a namespace before it and a URL after it.
func (f *fault) addName(name string) {
	if _, after, ok := strings.Cut(name, "#"); ok {
		name = after
	}
	name, _, _ = strings.Cut(name, ":")
	if name != "" {
		f.names = append(f.names, strings.ToLower(name))
	}
}

func (f *fault) named(set map[string]bool) bool {
	for _, name := range f.names {
		if set[name] {
			return true
		}
	}
	return false
}

// plain is a body that is no object: a JSON string's text, or what is there.
func plain(body []byte) string {
	var s text
	if json.Unmarshal(body, &s) == nil {
		return string(s)
	}
	return string(body)
}

// text is a member that is a string or, at some providers, a number. Of another
// shape it is "", so that one strange member does not spoil the others.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(data []byte) error {
	*t = ""
	if len(data) == 0 {
		return nil
	}
	switch c := data[0]; {
	case c == '"':
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*t = text(s)
	case c == '-' || '0' <= c && c <= '9':
		*t = text(data)
	}
	return nil
}
