package mockprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// OutputTokensName is the request header, and the key of the body's metadata, by
// which a request itself says how many output tokens its answer shall have. The
// header counts before the metadata, both before [Options.Answer].
const OutputTokensName = "x-mock-output-tokens"

// Request is one request that was understood, as [Options.Answer] sees it. It is
// read-only.
type Request struct {
	API      API
	Model    string
	Header   http.Header
	Metadata map[string]string
	User     string
	Stream   bool
	Ask      Ask

	includeUsage bool
	choices      int64
	outputTokens int64 // what the request itself asks for; -1: nothing
	inputs       int   // of an embeddings call
	dimensions   int
	base64       bool
}

// Framing of a chat, from the provider's cookbook: what messages cost above their text.
const (
	tokensPerMessage = 4 // three and the role
	tokensPerName    = 1
	tokensPerAnswer  = 3
)

const (
	maxChoices        = 128
	maxDimensions     = 4096
	defaultDimensions = 256
)

// message is a chat message, or an item of a response's input.
type message struct {
	Role      string          `json:"role"`
	Name      string          `json:"name"`
	Content   text            `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
	Arguments string          `json:"arguments"` // of a function_call item
	Output    text            `json:"output"`    // of a function_call_output item
}

// text is content in any of its forms: a string, null, or a list of parts, of
// which only the text counts (images and audio cost nothing here).
type text string

// UnmarshalJSON accepts a string, null or a list of parts.
func (t *text) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, (*string)(t))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		*t += text(p.Text)
	}
	return nil
}

// common is what the bodies of all endpoints share.
type common struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Tools    json.RawMessage   `json:"tools"`
	Metadata map[string]string `json:"metadata"`
	User     string            `json:"user"`
}

type chatBody struct {
	common
	Messages            []message `json:"messages"`
	MaxTokens           *int64    `json:"max_tokens"`
	MaxCompletionTokens *int64    `json:"max_completion_tokens"`
	N                   *int64    `json:"n"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type responsesBody struct {
	common
	Instructions    string         `json:"instructions"`
	Input           responsesInput `json:"input"`
	MaxOutputTokens *int64         `json:"max_output_tokens"`
}

// responsesInput is a list of items; a bare string is one user message.
type responsesInput []message

// UnmarshalJSON accepts a string or a list of items.
func (in *responsesInput) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*in = responsesInput{{Role: "user"}}
		return json.Unmarshal(data, (*string)(&(*in)[0].Content))
	}
	return json.Unmarshal(data, (*[]message)(in))
}

// counting counts the text of one request.
type counting struct {
	tokenCount func(string) int
	ask        Ask
}

func (c *counting) text(s string) {
	if s == "" {
		return
	}
	c.ask.TextChars += int64(utf8.RuneCountInString(s))
	c.ask.InputTokens += int64(c.tokenCount(s))
}

func (c *counting) message(m *message) {
	c.ask.Messages++
	c.ask.InputTokens += tokensPerMessage
	c.text(string(m.Content))
	c.text(m.Arguments)
	c.text(string(m.Output))
	if m.Name != "" {
		c.ask.InputTokens += tokensPerName
		c.text(m.Name)
	}
	c.schema(m.ToolCalls)
}

// schema counts JSON that the model reads but that is not in the character estimate.
func (c *counting) schema(raw json.RawMessage) {
	if len(raw) > 0 && string(raw) != "null" {
		c.ask.InputTokens += int64(c.tokenCount(string(raw)))
	}
}

func (s *Server) parseChat(body []byte) (*Request, *apiError) {
	var b chatBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, badJSON(err)
	}
	if len(b.Messages) == 0 {
		return nil, badParam("messages", "Missing required parameter: 'messages'.")
	}
	c := s.counting(Chat)
	c.ask.InputTokens = tokensPerAnswer
	for i := range b.Messages {
		c.message(&b.Messages[i])
	}
	c.schema(b.Tools)
	limit, name := b.MaxCompletionTokens, "max_completion_tokens"
	if limit == nil {
		limit, name = b.MaxTokens, "max_tokens"
	}
	r, bad := s.request(b.common, c, limit, name)
	if bad != nil {
		return nil, bad
	}
	r.includeUsage = b.StreamOptions.IncludeUsage
	if b.N != nil {
		if *b.N < 1 || *b.N > maxChoices {
			return nil, badParam("n", fmt.Sprintf("Invalid 'n': expected a value from 1 to %d, but got %d instead.", maxChoices, *b.N))
		}
		r.choices = *b.N
		r.Ask.MaxOutputTokens *= r.choices
		r.Ask.ModelMaxTokens *= r.choices
	}
	return r, nil
}

func (s *Server) parseResponses(body []byte) (*Request, *apiError) {
	var b responsesBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, badJSON(err)
	}
	if len(b.Input) == 0 {
		return nil, badParam("input", "Missing required parameter: 'input'.")
	}
	c := s.counting(Responses)
	c.ask.InputTokens = tokensPerAnswer
	if b.Instructions != "" {
		c.message(&message{Role: "developer", Content: text(b.Instructions)})
	}
	for i := range b.Input {
		c.message(&b.Input[i])
	}
	c.schema(b.Tools)
	return s.request(b.common, c, b.MaxOutputTokens, "max_output_tokens")
}

func (s *Server) counting(api API) *counting {
	return &counting{tokenCount: s.opts.TokenCount, ask: Ask{API: api, ModelMaxTokens: s.opts.ModelMaxOutputTokens}}
}

// request puts together what all endpoints share, once the text is counted.
func (s *Server) request(b common, c *counting, limit *int64, limitName string) (*Request, *apiError) {
	if b.Model == "" {
		return nil, badParam("model", "you must provide a model parameter")
	}
	if limit != nil {
		if *limit < 1 || *limit > maxAmount {
			return nil, badParam(limitName, fmt.Sprintf("Invalid '%s': integer below minimum value or too large. Expected a value from 1 to %d, but got %d instead.", limitName, maxAmount, *limit))
		}
		c.ask.MaxOutputTokens = *limit
	}
	r := &Request{
		API: c.ask.API, Model: b.Model, Metadata: b.Metadata, User: b.User, Stream: b.Stream, Ask: c.ask,
		choices: 1, outputTokens: -1,
	}
	if v, ok := b.Metadata[OutputTokensName]; ok {
		return r, r.setOutputTokens(v)
	}
	return r, nil
}

// setHeader adds the HTTP side of the request.
func (r *Request) setHeader(h http.Header) *apiError {
	r.Header = h
	if v := h.Get(OutputTokensName); v != "" {
		return r.setOutputTokens(v)
	}
	return nil
}

func (r *Request) setOutputTokens(v string) *apiError {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > maxAmount {
		return badParam(OutputTokensName, fmt.Sprintf("Invalid '%s': expected an integer from 0 to %d, but got '%s' instead.", OutputTokensName, maxAmount, v))
	}
	r.outputTokens = n
	return nil
}
