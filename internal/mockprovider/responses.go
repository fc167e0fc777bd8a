package mockprovider

import (
	"fmt"
	"net/http"
	"strconv"
)

type responseUsage struct {
	InputTokens  int64 `json:"input_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens  int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int64 `json:"total_tokens"`
}

type responsePart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
}

type responseItem struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Status  string         `json:"status"`
	Role    string         `json:"role"`
	Content []responsePart `json:"content"`
}

// response is the object of the Responses API, as far as clients need it.
type response struct {
	ID         string            `json:"id"`
	Object     string            `json:"object"`
	CreatedAt  int64             `json:"created_at"`
	Status     string            `json:"status"`
	Error      any               `json:"error"`
	Incomplete map[string]string `json:"incomplete_details"`
	Model      string            `json:"model"`
	Output     []responseItem    `json:"output"`
	Usage      *responseUsage    `json:"usage"`
	Metadata   map[string]string `json:"metadata"`
}

// begunResponse is the object before there is any output.
func (x *exchange) begunResponse() response {
	return response{
		ID: fmt.Sprintf("resp_mock_%08d", x.id), Object: "response", CreatedAt: x.created(),
		Status: "in_progress", Model: x.req.Model, Output: []responseItem{}, Metadata: x.req.Metadata,
	}
}

// endedResponse is the object when all output was sent.
func (x *exchange) endedResponse() response {
	r := x.begunResponse()
	r.Status = "completed"
	if x.cut {
		r.Status, r.Incomplete = "incomplete", map[string]string{"reason": "max_output_tokens"}
	}
	r.Output = append(r.Output, x.responseItem(r.Status, responsePart{"output_text", fillerText(x.sent), []any{}}))
	in, out := x.req.Ask.InputTokens, x.sent
	r.Usage = &responseUsage{InputTokens: in, OutputTokens: out, TotalTokens: in + out}
	return r
}

func (x *exchange) responseItem(status string, content ...responsePart) responseItem {
	if content == nil {
		content = []responsePart{}
	}
	return responseItem{fmt.Sprintf("msg_mock_%08d", x.id), "message", status, "assistant", content}
}

func (x *exchange) answerResponses(w http.ResponseWriter) error {
	if x.req.Stream {
		return x.streamResponse(w)
	}
	if err := x.produceWhole(); err != nil {
		return err
	}
	x.end(nil)
	return writeJSON(w, http.StatusOK, x.endedResponse())
}

// streamResponse sends the events of a response with one text.
func (x *exchange) streamResponse(w http.ResponseWriter) error {
	s := newEventStream(x, w)
	sequence := 0
	send := func(name, field string, value any) {
		s.event(name, `{"type":"`, name, `","sequence_number":`, strconv.Itoa(sequence), `,`, field, mustJSON(value), `}`)
		sequence++
	}
	if err := x.waitFor(0); err != nil {
		return err
	}
	item := x.responseItem("in_progress")
	place := `"item_id":"` + item.ID + `","output_index":0,"content_index":0`
	part := responsePart{"output_text", "", []any{}}
	send("response.created", `"response":`, x.begunResponse())
	send("response.in_progress", `"response":`, x.begunResponse())
	send("response.output_item.added", `"output_index":0,"item":`, item)
	send("response.content_part.added", place+`,"part":`, part)
	err := s.tokens(func(token string) {
		send("response.output_text.delta", place+`,"delta":`, token)
	})
	if err != nil {
		return err
	}
	ended := x.endedResponse()
	send("response.output_text.done", place+`,"text":`, ended.Output[0].Content[0].Text)
	send("response.content_part.done", place+`,"part":`, ended.Output[0].Content[0])
	send("response.output_item.done", `"output_index":0,"item":`, ended.Output[0])
	send("response."+ended.Status, `"response":`, ended)
	x.end(nil)
	return s.flush()
}
