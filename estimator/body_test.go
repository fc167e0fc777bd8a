package estimator

import (
	"encoding/json"
	"strings"
	"testing"

	"quotabroker/wire"
)

func TestBadRequestsNameTheField(t *testing.T) {
	e := newEstimator(t, nil)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ body, field string }{
		{``, "request"},
		{`nonsense`, "request"},
		{`{"messages":[}`, "request"},
		{`{"messages":[]`, "request"},
		{`{"messages":[]} x`, "request"},
		{`[]`, "request"},
		{`"text"`, "request"},
		{`null`, "request"},
		{`{}`, "request"},
		{`{"messages":null}`, "request"},
		{`{"contents":[]}`, "request"},
		{`{"messages":[],"x":` + deep(64) + `}`, "request"},
		{`{"messages":"hi"}`, "request.messages"},
		{`{"messages":{}}`, "request.messages"},
		{`{"messages":[1]}`, "request.messages[0]"},
		{`{"messages":[{},[]]}`, "request.messages[1]"},
		{`{"messages":[{"role":1}]}`, "request.messages[0].role"},
		{`{"messages":[{"role":"user","content":5}]}`, "request.messages[0].content"},
		{`{"messages":[{"content":{}}]}`, "request.messages[0].content"},
		{`{"messages":[{"content":["a",7]}]}`, "request.messages[0].content[1]"},
		{`{"messages":[{"content":[{"type":"text","text":5}]}]}`, "request.messages[0].content[0].text"},
		{`{"messages":[{"content":[{"type":5}]}]}`, "request.messages[0].content[0].type"},
		{`{"messages":[{"content":[{"type":"tool_result","content":true}]}]}`, "request.messages[0].content[0].content"},
		{`{"messages":[{"content":[{"type":"document","source":{"type":"text","data":5}}]}]}`, "request.messages[0].content[0].source.data"},
		{`{"messages":[{"name":{}}]}`, "request.messages[0].name"},
		{`{"messages":[{"tool_calls":{}}]}`, "request.messages[0].tool_calls"},
		{`{"messages":[{"tool_calls":[7]}]}`, "request.messages[0].tool_calls[0]"},
		{`{"messages":[{"tool_calls":[{"function":"f"}]}]}`, "request.messages[0].tool_calls[0].function"},
		{`{"messages":[{"function_call":{"name":7}}]}`, "request.messages[0].function_call.name"},
		{`{"messages":[],"system":7}`, "request.system"},
		{`{"messages":[],"tools":{}}`, "request.tools"},
		{`{"messages":[],"functions":"f"}`, "request.functions"},
		{`{"messages":[],"response_format":"json"}`, "request.response_format"},
		{`{"messages":[],"max_tokens":"12"}`, "request.max_tokens"},
		{`{"messages":[],"max_tokens":-1}`, "request.max_tokens"},
		{`{"messages":[],"max_tokens":1.5}`, "request.max_tokens"},
		{`{"messages":[],"max_completion_tokens":1e400}`, "request.max_completion_tokens"},
		{`{"messages":[],"max_output_tokens":1000000001}`, "request.max_output_tokens"},
		{`{"messages":[],"n":0}`, "request.n"},
		{`{"messages":[],"n":[]}`, "request.n"},
		{`{"messages":[],"model":5}`, "request.model"},
		{`{"input":5}`, "request.input"},
		{`{"input":{}}`, "request.input"},
		{`{"input":[{"role":"user"},5]}`, "request.input[1]"},
		{`{"input":[{"type":7}]}`, "request.input[0].type"},
		{`{"input":[{"type":"function_call","name":5}]}`, "request.input[0].name"},
		{`{"input":[{"type":"function_call_output","output":5}]}`, "request.input[0].output"},
		{`{"input":"hi","instructions":5}`, "request.instructions"},
		{`{"input":"hi","text":5}`, "request.text"},
		{`{"input":"hi","text":{"format":5}}`, "request.text.format"},
		{`{"input":["a",true]}`, "request.input[1]"},
		{`{"input":[[1,"a"]]}`, "request.input[0][1]"},
		{`{"prompt":true}`, "request.prompt"},
		{`{"prompt":"a","suffix":1}`, "request.suffix"},
		{`{"prompt":"a","best_of":-3}`, "request.best_of"},
	} {
		_, err := e.Estimate(Input{Body: json.RawMessage(c.body)})
		if err == nil || err.Code != wire.CodeBadRequest || err.Field != c.field || err.Message == "" {
			t.Errorf("%.80s: %v (field %q), want a bad_request for %s", c.body, err, fieldOf(err), c.field)
		}
	}
	if _, err := e.Estimate(Input{Body: json.RawMessage(`{"messages":[],"x":` + deep(63) + `}`)}); err != nil {
		t.Errorf("64 levels: %v", err)
	}
}

func fieldOf(err *wire.Error) string {
	if err == nil {
		return ""
	}
	return err.Field
}

func TestExactlyOneInput(t *testing.T) {
	e := newEstimator(t, nil)
	body := json.RawMessage(`{"input":"hi"}`)
	for _, c := range []struct {
		in    Input
		field string
	}{
		{Input{}, "request"},
		{Input{Body: body, InputTokens: wire.Int(3)}, "request"},
		{Input{InputTokens: wire.Int(-1)}, "input_tokens"},
		{Input{InputTokens: wire.Int(wire.MaxTokens + 1)}, "input_tokens"},
		{Input{Body: body, MaxOutputTokens: wire.Int(-1)}, "max_output_tokens"},
	} {
		if _, err := e.Estimate(c.in); fieldOf(err) != c.field {
			t.Errorf("%+v: %v, want an error for %s", c.in, err, c.field)
		}
	}
}

// TestErrorsAreSentences: a person can act on them.
func TestErrorsAreSentences(t *testing.T) {
	e := newEstimator(t, nil)
	for body, want := range map[string]string{
		`{"messages":[{"content":5}]}`:    "request.messages[0].content is a number; it must be a string or an array of parts",
		`{"messages":[],"max_tokens":-4}`: "request.max_tokens is -4; it must be a whole number from 0 to 1000000000",
		`{"messages":[],"n":0}`:           "request.n is 0; it must be 1 or more",
		`{"messages":[`:                   "request is not valid JSON: it ends too early",
		`{"messages":[;]}`:                "request is not valid JSON at byte 13",
	} {
		if _, err := e.Estimate(Input{Body: json.RawMessage(body)}); err == nil || err.Message != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// FuzzEstimate: no panic, errors are bad requests with a path, costs are in
// bounds, and what is accepted is JSON.
func FuzzEstimate(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"role":"user","content":[{"type":"text","text":"h\u00e9 \ud83d\ude00"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}],"tools":[{"a":1}],"n":2}`,
		`{"system":[{"type":"text","text":"x"}],"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{}},{"type":"document","source":{"type":"content","content":[]}}]}],"max_tokens":1e2}`,
		`{"input":[{"type":"function_call","arguments":{"a":[]}},{"type":"reasoning","encrypted_content":"x"}],"text":{"format":{"schema":{}}}}`,
		`{"prompt":[[1,2],"a"],"best_of":2,"max_tokens":0}`,
		`{"input":["a","\uD800"],"dimensions":1,"input":7}`,
		`{"messages":[{"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":\"\\u0000\"}"}}]}],"response_format":{"json_schema":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	e := newEstimator(f, func(o *Options) { o.ExactBytes = minExactBytes })
	f.Fuzz(func(t *testing.T, body []byte) {
		before := string(body)
		res, err := e.Estimate(Input{Model: "gpt-4o", Body: body})
		if string(body) != before {
			t.Fatal("the body was changed")
		}
		if err != nil {
			if err.Code != wire.CodeBadRequest || !strings.HasPrefix(err.Field, "request") {
				t.Fatalf("%v for field %q", err, err.Field)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatal("accepted what is no JSON")
		}
		c := res.Cost
		for _, n := range []int64{c.InputTokens, c.OutputTokens, c.Tokens - 1} {
			if n < 0 || n > 2*wire.MaxTokens {
				t.Fatalf("cost %+v", c)
			}
		}
	})
}
