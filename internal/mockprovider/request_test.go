package mockprovider

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

func TestInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Models: []string{"gpt-4o", "gpt-5"}, Key: "right"})
		defer c.stop()
		const chat, responses, embeddings = "/v1/chat/completions", "/v1/responses", "/v1/embeddings"
		for _, tt := range []struct {
			path, body string
			status     int
			want       string
		}{
			{chat, `{`, 400, "We could not parse the JSON body of your request: unexpected end of JSON input"},
			{chat, `{"model":"gpt-4o"}`, 400, `"Missing required parameter: 'messages'.","type":"invalid_request_error","param":"messages","code":null`},
			{chat, `{"messages":[{"content":"a"}]}`, 400, "you must provide a model parameter"},
			{chat, `{"model":"gpt-4o","messages":[{"content":7}]}`, 400, "cannot unmarshal number"},
			{chat, chatOf(`,"max_tokens":0`), 400, "Invalid 'max_tokens'"},
			{chat, chatOf(`,"max_completion_tokens":-1`), 400, "Invalid 'max_completion_tokens'"},
			{chat, chatOf(`,"n":0`), 400, "Invalid 'n'"},
			{chat, chatOf(`,"n":1000`), 400, "Invalid 'n'"},
			{chat, chatOf(`,"metadata":{"x-mock-output-tokens":"many"}`), 400, "expected an integer from 0 to 1000000000, but got 'many'"},
			{chat, strings.ReplaceAll(chatOf(""), "gpt-4o", "gpt-9"), 404, "The model `gpt-9` does not exist or you do not have access to it.\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"model_not_found\""},
			{responses, `{"model":"gpt-5"}`, 400, "Missing required parameter: 'input'."},
			{responses, `{"model":"gpt-5","input":1}`, 400, "cannot unmarshal number"},
			{responses, `[]`, 400, "cannot unmarshal array"},
			{embeddings, `{"model":"gpt-5"}`, 400, "Missing required parameter: 'input'."},
			{embeddings, `{"model":"gpt-5","input":{}}`, 400, "input is neither text nor token ids"},
			{embeddings, `{"model":"gpt-5","input":"a","dimensions":5000}`, 400, "Invalid 'dimensions'"},
		} {
			r := c.post(tt.path, tt.body, "Authorization", "Bearer right")
			if r.status != tt.status || !strings.Contains(r.body, tt.want) {
				t.Errorf("%s %s\n got %d %s\nwant %d %s", tt.path, tt.body, r.status, r.body, tt.status, tt.want)
			}
		}
		r := c.post(chat, chatOf(""), "Authorization", "Bearer wrong")
		if r.status != 401 || !strings.Contains(r.body, `"code":"invalid_api_key"`) || strings.Contains(r.body, "wrong") {
			t.Errorf("wrong key: %d %s", r.status, r.body)
		}
		if r := c.post(chat, chatOf(""), "Authorization", "Bearer right", OutputTokensName, "-1"); r.status != 400 {
			t.Errorf("wrong header: %d %s", r.status, r.body)
		}
		if st := c.server.Stats(); st.Invalid != 18 || st.Sent != 18 || st.Admitted != 0 || st.ChargedTokens != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Models: []string{"gpt-4o", "gpt-5"}})
		defer c.stop()
		for path, want := range map[string]string{
			"/v1/models":        `200 {"data":[{"created":0,"id":"gpt-4o","object":"model","owned_by":"mockprovider"},{"created":0,"id":"gpt-5","object":"model","owned_by":"mockprovider"}],"object":"list"}`,
			"/v1/models/gpt-5":  `200 {"created":0,"id":"gpt-5","object":"model","owned_by":"mockprovider"}`,
			"/v1/models/gpt-99": "404 {\"error\":{\"message\":\"The model `gpt-99` does not exist or you do not have access to it.\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"model_not_found\"}}",
			"/v1/files":         "404 404 page not found\n",
		} {
			r, err := c.do(t.Context(), "GET", path, "")
			if got := fmt.Sprintf("%d %s", r.status, r.body); err != nil || got != want {
				t.Errorf("%s\n got %s\nwant %s", path, got, want)
			}
		}
	})
}

// TestCounting: what a request's text is taken as.
func TestCounting(t *testing.T) {
	s := newTestServer(t, Options{TokenCount: func(text string) int { return len(strings.Fields(text)) }})
	for _, tt := range []struct {
		name, body string
		parse      func([]byte) (*Request, *apiError)
		want       Ask
	}{
		{
			"text", `{"model":"m","messages":[{"role":"user","content":"one two"}]}`, s.parseChat,
			Ask{Chat, 1, 7, 3 + 4 + 2, 0, 16_384},
		},
		{
			"characters, not bytes", `{"model":"m","messages":[{"role":"user","content":"日本語"}]}`, s.parseChat,
			Ask{Chat, 1, 3, 3 + 4 + 1, 0, 16_384},
		},
		{
			"parts; an image counts nothing", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"image_url","image_url":{"url":"x"}}]},{"role":"assistant","content":null}]}`, s.parseChat,
			Ask{Chat, 2, 3, 3 + 4 + 1 + 4, 0, 16_384},
		},
		{
			"a name", `{"model":"m","messages":[{"role":"user","name":"ann","content":"one"}]}`, s.parseChat,
			Ask{Chat, 1, 6, 3 + 4 + 1 + 1 + 1, 0, 16_384},
		},
		{
			"tools count as tokens, not as characters", `{"model":"m","tools":[{"a": 1}],"messages":[{"role":"user","content":"one"}]}`, s.parseChat,
			Ask{Chat, 1, 3, 3 + 4 + 1 + 2, 0, 16_384},
		},
		{
			"choices multiply the output", `{"model":"m","n":3,"max_tokens":10,"messages":[{"role":"user","content":"one"}]}`, s.parseChat,
			Ask{Chat, 1, 3, 3 + 4 + 1, 30, 3 * 16_384},
		},
		{
			"the newer limit goes first", `{"model":"m","max_tokens":10,"max_completion_tokens":20,"messages":[{"role":"user","content":"one"}]}`, s.parseChat,
			Ask{Chat, 1, 3, 3 + 4 + 1, 20, 16_384},
		},
		{
			"a tool's result", `{"model":"m","input":[{"type":"function_call","arguments":"{}"},{"type":"function_call_output","output":"it rains"}]}`, s.parseResponses,
			Ask{Responses, 2, 10, 3 + 4 + 1 + 4 + 2, 0, 16_384},
		},
	} {
		r, bad := tt.parse([]byte(tt.body))
		if bad != nil {
			t.Errorf("%s: %s", tt.name, bad.message)
		} else if r.Ask != tt.want {
			t.Errorf("%s\n got %+v\nwant %+v", tt.name, r.Ask, tt.want)
		}
	}
}

// TestAnswerLength: the header before the metadata, before the options.
func TestAnswerLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{
			Answer:               func(r *Request) Answer { return Answer{OutputTokens: 10 * r.Ask.Messages} },
			ModelMaxOutputTokens: 100,
		})
		defer c.stop()
		for _, tt := range []struct {
			extra  string
			header []string
			want   string
		}{
			{"", nil, `"completion_tokens":10,`},
			{`,"metadata":{"x-mock-output-tokens":"20"}`, nil, `"completion_tokens":20,`},
			{`,"metadata":{"x-mock-output-tokens":"20"}`, []string{OutputTokensName, "30"}, `"completion_tokens":30,`},
			{`,"n":2`, []string{OutputTokensName, "30"}, `"completion_tokens":60,`},
			{`,"max_tokens":4,"n":2`, nil, `"completion_tokens":8,`},
			{"", []string{OutputTokensName, "0"}, `"completion_tokens":0,`},
			{"", []string{OutputTokensName, "101"}, `"completion_tokens":100,`},
		} {
			if r := c.post("/v1/chat/completions", chatOf(tt.extra), tt.header...); r.status != 200 || !strings.Contains(r.body, tt.want) {
				t.Errorf("%s %v: %d %s, want %s", tt.extra, tt.header, r.status, r.body, tt.want)
			}
		}
	})
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Speed: -1}, {Speed: 1e9}, {Limits: Limits{TokensPerMinute: -1}}, {ModelMaxOutputTokens: -1}} {
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), "mockprovider: ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
