package estimator

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"quotabroker/wire"
)

func estimate(t *testing.T, e *Estimator, model, body string) Result {
	t.Helper()
	res, err := e.Estimate(Input{Model: model, Body: json.RawMessage(body)})
	if err != nil {
		t.Fatalf("%.200s: %v", body, err)
	}
	if got := res.TextTokens + res.FramingTokens + res.MediaTokens; got != res.Cost.InputTokens {
		t.Fatalf("%.200s: parts add up to %d of %+v", body, got, res.Cost)
	}
	if got := max(1, res.Cost.InputTokens+res.Cost.OutputTokens); got != res.Cost.Tokens || res.Cost.Requests != 1 {
		t.Fatalf("%.200s: cost %+v", body, res.Cost)
	}
	return res
}

// count returns the o200k tokens of a text.
func count(t *testing.T, texts ...string) (sum int64) {
	t.Helper()
	e := newEstimator(t, nil)
	for _, text := range texts {
		n, exact := e.Count(O200K, text)
		if !exact {
			t.Fatalf("%.20q is not counted exactly", text)
		}
		sum += n
	}
	return sum
}

// TestInput checks the input tokens of every shape against the sum of its parts
// for gpt-4o: 3 a message, 1 its role, 3 the primer.
func TestInput(t *testing.T) {
	e := newEstimator(t, nil)
	sentence := "The quick brown fox jumps over the lazy dog."
	s := count(t, sentence)
	image := Default().ImageTokens
	for _, c := range []struct {
		body  string
		shape Shape
		want  int64
	}{
		{`{"messages":[{"role":"user","content":"` + sentence + `"}]}`, ShapeChat, s + 7},
		{`{"messages":[{"role":"user","name":"bob","content":"` + sentence + `"}]}`, ShapeChat, s + 8 + count(t, "bob")},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"` + sentence + `"},{"type":"text","text":"` + sentence + `"}]}]}`, ShapeChat, 2*s + 7},
		{`{"messages":[{"role":"developer","content":"` + sentence + `"},{"role":"user","content":null}]}`, ShapeChat, s + 11},
		{`{"messages":[{"role":"wizard","content":"hi"}]}`, ShapeChat, count(t, "wizard", "hi") + 6},
		{`{"messages":[]}`, ShapeChat, 3},
		{
			`{"messages":[{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}}]}]}`,
			ShapeChat, count(t, "get_weather", `{"city":"Paris"}`) + 7 + 7,
		},
		{
			`{"messages":[{"role":"assistant","function_call":{"name":"get_weather","arguments":{"city": "Paris"}}}]}`,
			ShapeChat, count(t, "get_weather", `{"city":"Paris"}`) + 7 + 3,
		},
		{
			`{"messages":[{"role":"user","content":"` + sentence + `"}],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type": "object"}}}}`,
			ShapeChat, s + 7 + count(t, `{"name":"x","schema":{"type":"object"}}`),
		},
		{`{"messages":[{"role":"user","content":"` + sentence + `"}],"response_format":{"type":"json_object"}}`, ShapeChat, s + 7},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}},{"type":"text","text":"hi"}]}]}`, ShapeChat, image + 8},
		{`{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`, ShapeChat, Default().AudioTokens + 7},
		{`{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}`, ShapeChat, Default().FileTokens + 7},
		{`{"messages":[{"role":"user","content":[{"type":"telepathy","thought": "hi"}]}]}`, ShapeChat, count(t, `{"type":"telepathy","thought":"hi"}`) + 7},
		{`{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`, ShapeChat, 8},

		{`{"system":"` + sentence + `","messages":[{"role":"user","content":"` + sentence + `"}],"max_tokens":5}`, ShapeMessages, 2*s + 11},
		{`{"system":[{"type":"text","text":"` + sentence + `","cache_control":{"type":"ephemeral"}}],"messages":[]}`, ShapeMessages, s + 7},
		{
			`{"system":"","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"` + sentence + `"},` +
				`{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"` + sentence + `"},{"type":"image","source":{"type":"url","url":"u"}}]}]}]}`,
			ShapeMessages, 2*s + 11 + image,
		},
		{
			`{"system":"","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"look","input":{"at": "it"}}]}]}`,
			ShapeMessages, count(t, "look", `{"at":"it"}`) + 11 + 7,
		},
		{
			`{"system":"","messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + sentence + `"}},` +
				`{"type":"document","source":{"type":"content","content":"` + sentence + `"}},{"type":"document","source":{"type":"base64","data":"AAAA"}}]}]}`,
			ShapeMessages, 2*s + 11 + Default().FileTokens,
		},

		{`{"input":"` + sentence + `"}`, ShapeResponses, s + 7},
		{`{"input":[{"role":"user","content":[{"type":"input_text","text":"` + sentence + `"}]}],"instructions":"` + sentence + `"}`, ShapeResponses, 2*s + 11},
		{
			`{"input":[{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"` + sentence + `"}]}`,
			ShapeResponses, s + count(t, "f", "{}") + 17,
		},
		{`{"input":"hi","text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"}}}}`, ShapeResponses, count(t, "hi", `{"type":"object"}`) + 7},
		{`{"instructions":"","input":[{"type":"item_reference","id":"i"}]}`, ShapeResponses, count(t, `{"type":"item_reference","id":"i"}`) + 3},
		{`{"prompt":{"id":"pmpt_1","variables":{"a":"b"}}}`, ShapeResponses, count(t, `{"a":"b"}`) + 3},

		{`{"prompt":"` + sentence + `"}`, ShapeCompletions, s},
		{`{"prompt":["` + sentence + `","` + sentence + `"],"suffix":"hi"}`, ShapeCompletions, 2*s + 1},
		{`{"prompt":[1,2,3]}`, ShapeCompletions, 3},
		{`{"prompt":[[1,2],[3]]}`, ShapeCompletions, 3},

		{`{"input":["` + sentence + `","hi"]}`, ShapeEmbeddings, s + 1},
		{`{"input":"` + sentence + `","dimensions":256}`, ShapeEmbeddings, s},
		{`{"input":[[1,2],[3]],"encoding_format":"float"}`, ShapeEmbeddings, 3},
	} {
		res := estimate(t, e, "gpt-4o", c.body)
		if res.Cost.InputTokens != c.want || res.Shape != c.shape || res.Cost.Method != wire.MethodExact {
			t.Errorf("%s\n is %s, %d tokens (text %d, framing %d, media %d), %s; want %s, %d exact",
				c.body, res.Shape, res.Cost.InputTokens, res.TextTokens, res.FramingTokens, res.MediaTokens, res.Cost.Method, c.shape, c.want)
		}
	}
}

// TestEncryptedReasoning counts until the next user message.
func TestEncryptedReasoning(t *testing.T) {
	e := newEstimator(t, nil)
	sealed := strings.Repeat("x", 6900)
	loop := `{"input":[{"role":"user","content":"hi"},{"type":"reasoning","summary":[],"encrypted_content":"` + sealed + `"}`
	open := estimate(t, e, "gpt-5", loop+`]}`).Cost.InputTokens
	closed := estimate(t, e, "gpt-5", loop+`,{"role":"user","content":"hi"}]}`).Cost.InputTokens
	if open < 1000 || open > 1020 || closed > 20 {
		t.Errorf("%d tokens in a tool loop, %d after the next message", open, closed)
	}
}

// TestMediaIsNotText is scenario TOK-07.
func TestMediaIsNotText(t *testing.T) {
	e := newEstimator(t, nil)
	data := base64.StdEncoding.EncodeToString(make([]byte, 1_875_000))
	text := strings.Repeat("one two three four five six seven eight nine ten ", 100)
	for _, body := range []string{
		`{"messages":[{"role":"user","content":[{"type":"text","text":"` + text + `"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}]}]}`,
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"` + text + `"},{"type":"input_image","image_url":"data:image/png;base64,` + data + `"}]}]}`,
		`{"system":"","messages":[{"role":"user","content":[{"type":"text","text":"` + text + `"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}]}]}`,
		`{"input":[{"role":"user","content":"` + text + `"},{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,` + data + `"}}]}`,
	} {
		res := estimate(t, e, "gpt-4o", body)
		if most := (count(t, text) + Default().ImageTokens) * 105 / 100; res.Cost.InputTokens > most || res.MediaTokens != Default().ImageTokens {
			t.Errorf("%.60s: %d input tokens, %d of them media; want at most %d", body, res.Cost.InputTokens, res.MediaTokens, most)
		}
		if res.Cost.Method != wire.MethodExact {
			t.Errorf("%.60s: method %s", body, res.Cost.Method)
		}
	}
}

// TestToolsAreCounted is scenario TOK-09, for every shape that has tools.
func TestToolsAreCounted(t *testing.T) {
	e := newEstimator(t, nil)
	var list []any
	size := 0
	for i := 0; size < 30_000; i++ {
		tool := map[string]any{"type": "function", "function": map[string]any{
			"name": fmt.Sprintf("tool_%d", i), "description": "Looks up what the user asks for — in every source.",
			"parameters": map[string]any{"type": "object", "properties": map[string]any{"query": map[string]any{"type": "string", "description": "what to look for"}}},
		}}
		data, _ := json.Marshal(tool)
		size += len(data)
		list = append(list, tool)
	}
	compact, _ := json.Marshal(list)
	spaced, _ := json.MarshalIndent(list, "", "    ")
	serialised, _ := e.Count(O200K, string(compact))
	for _, with := range []string{
		`{"messages":[{"role":"user","content":"hi"}],"tools":%s}`,
		`{"messages":[{"role":"user","content":"hi"}],"functions":%s}`,
		`{"input":"hi","tools":%s}`,
		`{"system":"be brief","messages":[{"role":"user","content":"hi"}],"max_tokens":9,"tools":%s}`,
	} {
		bare := estimate(t, e, "gpt-4o", fmt.Sprintf(with, "null")).Cost.InputTokens
		full := estimate(t, e, "gpt-4o", fmt.Sprintf(with, compact)).Cost.InputTokens
		wide := estimate(t, e, "gpt-4o", fmt.Sprintf(with, spaced)).Cost.InputTokens
		if 10*(full-bare) < 9*serialised || full-bare > serialised*105/100 {
			t.Errorf("%s: the tools add %d tokens, serialised they are %d", with, full-bare, serialised)
		}
		if wide != full {
			t.Errorf("%s: %d tokens, %d when indented", with, full, wide)
		}
	}
}

// TestOutput is scenario TOK-11.
func TestOutput(t *testing.T) {
	e := newEstimator(t, func(o *Options) { o.DefaultOutputTokens = 20_000 })
	chat := `{"messages":[{"role":"user","content":"hi"}]%s}`
	for _, c := range []struct {
		model, body string
		override    wire.OptInt
		want        int64
		limit       wire.OptInt
	}{
		{"gpt-5", fmt.Sprintf(chat, ``), wire.OptInt{}, 20_000, wire.OptInt{}},
		{"gpt-4", fmt.Sprintf(chat, ``), wire.OptInt{}, 8192, wire.OptInt{}},
		{"gpt-4", fmt.Sprintf(chat, `,"n":2`), wire.OptInt{}, 16_384, wire.OptInt{}},
		{"who", fmt.Sprintf(chat, `,"max_tokens":null`), wire.OptInt{}, 20_000, wire.OptInt{}},
		{"gpt-4o", fmt.Sprintf(chat, `,"max_tokens":50`), wire.OptInt{}, 50, wire.Int(50)},
		{"gpt-4o", fmt.Sprintf(chat, `,"max_tokens":50,"max_completion_tokens":700`), wire.OptInt{}, 700, wire.Int(700)},
		{"gpt-4o", fmt.Sprintf(chat, `,"max_tokens":900,"max_completion_tokens":7e2,"n":3`), wire.OptInt{}, 2700, wire.Int(2700)},
		{"gpt-4o", fmt.Sprintf(chat, `,"max_tokens":900`), wire.Int(12), 12, wire.Int(12)},
		{"gpt-4o", fmt.Sprintf(chat, ``), wire.Int(12), 12, wire.Int(12)},
		{"gpt-4o", `{"input":"hi","max_output_tokens":33}`, wire.OptInt{}, 33, wire.Int(33)},
		{"gpt-4o", `{"prompt":"hi","max_tokens":0}`, wire.OptInt{}, 0, wire.Int(0)},
		{"gpt-4o", `{"prompt":"hi","max_tokens":4,"n":2,"best_of":5}`, wire.OptInt{}, 20, wire.Int(20)},
		{"text-embedding-3-small", `{"input":"hi"}`, wire.OptInt{}, 0, wire.OptInt{}},
		{"text-embedding-3-small", `{"input":"hi","max_tokens":7}`, wire.OptInt{}, 0, wire.OptInt{}},
		{"claude-3-opus", `{"messages":[],"max_tokens":64}`, wire.OptInt{}, 64, wire.Int(64)},
		{"gpt-4o", fmt.Sprintf(chat, `,"max_tokens":1000000000,"n":1000000000`), wire.OptInt{}, wire.MaxTokens, wire.Int(wire.MaxTokens)},
	} {
		res, err := e.Estimate(Input{Model: c.model, Body: json.RawMessage(c.body), MaxOutputTokens: c.override})
		if err != nil || res.Cost.OutputTokens != c.want || res.LimitTokens != c.limit {
			t.Errorf("%s %s: output %d, limit %v, %v; want %d, %v", c.model, c.body, res.Cost.OutputTokens, res.LimitTokens, err, c.want, c.limit)
		}
	}
}

func TestCountedByTheProducer(t *testing.T) {
	e := newEstimator(t, nil)
	res, err := e.Estimate(Input{Model: "gpt-4o", InputTokens: wire.Int(500)})
	want := wire.Cost{Requests: 1, InputTokens: 500, OutputTokens: 1024, Tokens: 1524, Method: wire.MethodCounted}
	if err != nil || res.Cost != want || res.Shape != ShapeCounted || !res.ModelKnown || res.Encoding != "o200k_base" {
		t.Errorf("%+v, %v", res, err)
	}
	res, err = e.Estimate(Input{Model: "nobody", InputTokens: wire.Int(0), MaxOutputTokens: wire.Int(0)})
	want = wire.Cost{Requests: 1, Tokens: 1, Method: wire.MethodCounted}
	if err != nil || res.Cost != want || res.ModelKnown {
		t.Errorf("%+v, %v", res, err)
	}
	for _, model := range []string{"text-embedding-3-small", "mistral-embed"} {
		res, err = e.Estimate(Input{Model: model, InputTokens: wire.Int(9)})
		if err != nil || res.Cost.OutputTokens != 0 || res.Cost.Tokens != 9 {
			t.Errorf("%s: %+v, %v", model, res, err)
		}
	}
}

// TestUnknownModels is scenario TOK-13: never an error, counted with the
// fallback, by the family's ratio.
func TestUnknownModels(t *testing.T) {
	e := newEstimator(t, nil)
	text := strings.Repeat("All work and no play makes a dull day. ", 50)
	body := `{"messages":[{"role":"user","content":"` + text + `"}],"max_tokens":1}`
	tokens := count(t, text)
	for model, ratio := range map[string]float64{"claude-sonnet-4-5": 1.2, "claude-opus-4-8": 1.55, "": 1.1, "who": 1.1, "mistral-small": 1.15} {
		res := estimate(t, e, model, body)
		want := int64(float64(tokens) * ratio)
		if res.ModelKnown || res.Cost.Method != wire.MethodFallback || res.TextTokens < want || res.TextTokens > want+1 {
			t.Errorf("%q: %+v, want %d text tokens", model, res, want)
		}
	}
	a, b := estimate(t, e, "openai/gpt-4o", body), estimate(t, e, "gpt-4o", body)
	if a.Cost != b.Cost || !a.ModelKnown || a.TextTokens != tokens {
		t.Errorf("openai/gpt-4o costs %+v, gpt-4o %+v", a.Cost, b.Cost)
	}
	if res := estimate(t, e, "", `{"model":"gpt-4o-mini","input":"hi"}`); !res.ModelKnown || res.Model != "gpt-4o-mini" {
		t.Errorf("the body's own model is not used: %+v", res)
	}
	if res := estimate(t, e, "gpt-4", `{"model":"gpt-4o-mini","input":"hi"}`); res.Encoding != "cl100k_base" {
		t.Errorf("the body's model wins over the input's: %+v", res)
	}
}

// TestLongBodiesAreSampled: the method says so, the framing stays exact.
func TestLongBodiesAreSampled(t *testing.T) {
	e := newEstimator(t, func(o *Options) { o.ExactBytes = minExactBytes })
	text := strings.Repeat("All work and no play makes a dull day. ", 3000)
	res := estimate(t, e, "gpt-4o", `{"messages":[{"role":"system","content":"`+text+`"},{"role":"user","content":"`+text+`"}]}`)
	truth := int64(2 * (3000*10 + 1))
	if res.Cost.Method != wire.MethodSampled || res.FramingTokens != 11 || res.TextTokens < truth*98/100 || res.TextTokens > truth*104/100 {
		t.Errorf("%+v, want some %d text tokens", res, truth)
	}
}
