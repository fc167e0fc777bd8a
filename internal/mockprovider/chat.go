package mockprovider

import (
	"fmt"
	"net/http"
)

type chatUsage struct {
	PromptTokens     int64             `json:"prompt_tokens"`
	CompletionTokens int64             `json:"completion_tokens"`
	TotalTokens      int64             `json:"total_tokens"`
	PromptDetails    promptDetails     `json:"prompt_tokens_details"`
	OutputDetails    completionDetails `json:"completion_tokens_details"`
}

// promptDetails and completionDetails are there, and all 0: nothing is cached,
// spoken or thought.
type promptDetails struct {
	Cached int64 `json:"cached_tokens"`
	Audio  int64 `json:"audio_tokens"`
}

type completionDetails struct {
	Reasoning          int64 `json:"reasoning_tokens"`
	Audio              int64 `json:"audio_tokens"`
	AcceptedPrediction int64 `json:"accepted_prediction_tokens"`
	RejectedPrediction int64 `json:"rejected_prediction_tokens"`
}

func (x *exchange) chatUsage() chatUsage {
	in, out := x.req.Ask.InputTokens, x.sent*x.req.choices
	return chatUsage{PromptTokens: in, CompletionTokens: out, TotalTokens: in + out}
}

func (x *exchange) finishReason() string {
	if x.cut {
		return "length"
	}
	return "stop"
}

func (x *exchange) chatID() string { return fmt.Sprintf("chatcmpl-mock-%08d", x.id) }

// created is when the request was admitted, in seconds of the Unix epoch.
func (x *exchange) created() int64 { return x.server.origin.Add(x.begun).Unix() }

type chatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   chatUsage    `json:"usage"`
}

type chatChoice struct {
	Index        int         `json:"index"`
	Message      chatMessage `json:"message"`
	FinishReason string      `json:"finish_reason"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (x *exchange) answerChat(w http.ResponseWriter) error {
	if x.req.Stream {
		return x.streamChat(w)
	}
	if err := x.produceWhole(); err != nil {
		return err
	}
	x.end(nil)
	choices := make([]chatChoice, x.req.choices)
	message := chatMessage{"assistant", fillerText(x.sent)}
	for i := range choices {
		choices[i] = chatChoice{i, message, x.finishReason()}
	}
	return writeJSON(w, http.StatusOK, chatCompletion{
		x.chatID(), "chat.completion", x.created(), x.req.Model, choices, x.chatUsage(),
	})
}

// streamChat sends a chunk a token and choice, as the provider does.
func (x *exchange) streamChat(w http.ResponseWriter) error {
	s := newEventStream(x, w)
	head := fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","created":%d,"model":%s,"choices":`, x.chatID(), x.created(), mustJSON(x.req.Model))
	tail := "}"
	if x.req.includeUsage {
		tail = `,"usage":null}`
	}
	// One event for each choice: what is before the delta, the delta, what is after it.
	before := make([]string, x.req.choices)
	for c := range before {
		before[c] = fmt.Sprintf(`%s[{"index":%d,"delta":`, head, c)
	}
	each := func(delta, finish string) {
		for _, b := range before {
			s.data(b, delta, `,"finish_reason":`, finish, `}]`, tail)
		}
	}
	if err := x.waitFor(0); err != nil {
		return err
	}
	each(`{"role":"assistant","content":""}`, "null")
	err := s.tokens(func(token string) { each(`{"content":"`+token+`"}`, "null") })
	if err != nil {
		return err
	}
	each("{}", `"`+x.finishReason()+`"`)
	if x.req.includeUsage {
		s.data(head, `[],"usage":`, mustJSON(x.chatUsage()), "}")
	}
	s.data("[DONE]")
	x.end(nil)
	return s.flush()
}
