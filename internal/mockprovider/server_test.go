package mockprovider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// paced answers 50 tokens: the first after 500 ms, then 100 a second.
var paced = Answer{OutputTokens: 50, FirstToken: 500 * ms, TokensPerSecond: 100}

const pacedLatency = 500*ms + 490*ms

func TestChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Limits: Limits{60_000, 600}, DefaultAnswer: paced})
		defer c.stop()
		begun := time.Now()
		r := c.post("/v1/chat/completions", chatOf(`,"max_tokens":200`))
		if took := time.Since(begun); r.status != 200 || took != pacedLatency {
			t.Errorf("%d after %v, want 200 after %v", r.status, took, pacedLatency)
		}
		got := decode[struct {
			Object  string
			Model   string
			Created int64
			Choices []struct {
				Message      struct{ Role, Content string }
				FinishReason string `json:"finish_reason"`
			}
			Usage struct {
				PromptTokens     int64 `json:"prompt_tokens"`
				CompletionTokens int64 `json:"completion_tokens"`
				TotalTokens      int64 `json:"total_tokens"`
			}
		}](t, r)
		if u := got.Usage; u.PromptTokens != 12 || u.CompletionTokens != 50 || u.TotalTokens != 62 {
			t.Errorf("usage %+v", u)
		}
		if len(got.Choices) != 1 || got.Choices[0].FinishReason != "stop" || got.Object != "chat.completion" || got.Created != begun.Unix() {
			t.Errorf("answer %s", r.body)
		}
		if words := strings.Fields(got.Choices[0].Message.Content); len(words) != 50 {
			t.Errorf("%d words, want one a token", len(words))
		}
		wantHeaders(t, r.header, map[string]string{
			"x-ratelimit-limit-tokens": "60000", "x-ratelimit-remaining-tokens": "59788", "x-ratelimit-reset-tokens": "212ms",
			"x-ratelimit-limit-requests": "600", "x-ratelimit-remaining-requests": "599", "x-ratelimit-reset-requests": "100ms",
			"retry-after": "", "x-request-id": "req_mock_00000001",
		})
		st := c.server.Stats()
		want := Stats{
			Sent: 1, Admitted: 1, Completed: 1, PeakInFlight: 1, ChargedTokens: 212, CorrectedTokens: -150, InputTokens: 12, OutputTokens: 50,
			Limits: Limits{60_000, 600}, WindowTokens: 62, WindowRequests: 1, Peak: Peak{Tokens: 212, Requests: 1}, Now: pacedLatency,
		}
		if st != want {
			t.Errorf("\n got %+v\nwant %+v", st, want)
		}
	})
}

func wantHeaders(t *testing.T, h http.Header, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if h.Get(k) != v {
			t.Errorf("%s: %q, want %q", k, h.Get(k), v)
		}
	}
}

func TestChatStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Limits: Limits{TokensPerMinute: 60_000}, DefaultAnswer: paced})
		defer c.stop()
		for _, withUsage := range []bool{true, false} {
			begun := time.Now()
			r := c.post("/v1/chat/completions", chatOf(fmt.Sprintf(`,"max_completion_tokens":20,"stream":true,"stream_options":{"include_usage":%v}`, withUsage)))
			if took := time.Since(begun); r.err != nil || took != 500*ms+190*ms {
				t.Errorf("%v after %v", r.err, took)
			}
			if kind := r.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
				t.Errorf("content type %q", kind)
			}
			all := events(t, r.body)
			if all[len(all)-1]["done"] != true {
				t.Error("the stream does not end with [DONE]")
			}
			all = all[:len(all)-1]
			if withUsage {
				last := all[len(all)-1]
				if choices := last["choices"].([]any); len(choices) != 0 {
					t.Errorf("the usage chunk has choices: %v", last)
				}
				if u := last["usage"].(map[string]any); u["prompt_tokens"] != 12.0 || u["completion_tokens"] != 20.0 || u["total_tokens"] != 32.0 {
					t.Errorf("usage %v", u)
				}
				all = all[:len(all)-1]
			}
			checkChunks(t, all, 20, withUsage)
		}
		if st := c.server.Stats(); st.OutputTokens != 40 || st.Completed != 2 || st.WindowTokens != 64 {
			t.Errorf("stats %+v", st)
		}
	})
}

// checkChunks: role, one chunk a token, finish.
func checkChunks(t *testing.T, chunks []map[string]any, tokens int, withUsage bool) {
	t.Helper()
	var text strings.Builder
	for i, chunk := range chunks {
		if _, has := chunk["usage"]; has != withUsage {
			t.Errorf("chunk %d: usage there is %v, want %v", i, has, withUsage)
		}
		choice := chunk["choices"].([]any)[0].(map[string]any)
		if s, ok := choice["delta"].(map[string]any)["content"].(string); ok {
			text.WriteString(s)
		}
		if finish := choice["finish_reason"]; i == len(chunks)-1 && finish != "length" || i < len(chunks)-1 && finish != nil {
			t.Errorf("chunk %d: finish_reason %v", i, finish)
		}
	}
	if len(chunks) != tokens+2 || text.String() != fillerText(int64(tokens)) {
		t.Errorf("%d chunks: %q", len(chunks), text.String())
	}
}

func TestResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Profile: profile(t, "openai"), Limits: Limits{TokensPerMinute: 60_000}})
		defer c.stop()
		type response struct {
			Status     string
			Incomplete *struct{ Reason string } `json:"incomplete_details"`
			Output     []struct {
				Content []struct{ Type, Text string }
			}
			Usage struct {
				InputTokens  int64 `json:"input_tokens"`
				OutputTokens int64 `json:"output_tokens"`
			}
		}
		const input = `"model":"gpt-5","instructions":"Be short.","input":[{"role":"user","content":[{"type":"input_text","text":"Hello"}]}],"metadata":{"x-mock-output-tokens":"7"}`
		r := decode[response](t, c.post("/v1/responses", "{"+input+"}"))
		if r.Status != "completed" || r.Usage.InputTokens != 3+4+3+4+2 || r.Usage.OutputTokens != 7 || r.Output[0].Content[0].Text != fillerText(7) {
			t.Errorf("response %+v", r)
		}
		r = decode[response](t, c.post("/v1/responses", "{"+input+`,"max_output_tokens":5}`))
		if r.Status != "incomplete" || r.Incomplete.Reason != "max_output_tokens" || r.Usage.OutputTokens != 5 {
			t.Errorf("response cut at its limit: %+v", r)
		}
		s := c.post("/v1/responses", `{"model":"gpt-5","input":"Hello","stream":true,"metadata":{"x-mock-output-tokens":"3"}}`)
		var types []string
		all := events(t, s.body)
		for i, e := range all {
			types = append(types, strings.TrimPrefix(e["type"].(string), "response."))
			if e["sequence_number"] != float64(i) {
				t.Errorf("event %d has sequence number %v", i, e["sequence_number"])
			}
		}
		if got, want := strings.Join(types, " "), "created in_progress output_item.added content_part.added output_text.delta output_text.delta output_text.delta output_text.done content_part.done output_item.done completed"; got != want {
			t.Errorf("events\n got %s\nwant %s", got, want)
		}
		usage := all[len(all)-1]["response"].(map[string]any)["usage"].(map[string]any)
		if usage["input_tokens"] != 9.0 || usage["output_tokens"] != 3.0 || usage["total_tokens"] != 12.0 {
			t.Errorf("usage of the stream %v", usage)
		}
		if st := c.server.Stats(); st.ChargedTokens != (16+19)*2+9+19 || st.CorrectedTokens != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestEmbeddings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Limits: Limits{TokensPerMinute: 60_000}, DefaultAnswer: paced})
		defer c.stop()
		type list struct {
			Data []struct {
				Index     int
				Embedding []float64
			}
			Usage struct {
				PromptTokens int64 `json:"prompt_tokens"`
				TotalTokens  int64 `json:"total_tokens"`
			}
		}
		for _, tt := range []struct {
			input       string
			data, usage int
		}{{`"four by four"`, 1, 3}, {`["a","bcdef"]`, 2, 3}, {`[1,2,3]`, 1, 3}, {`[[1,2,3],[4]]`, 2, 4}} {
			begun := time.Now()
			r := decode[list](t, c.post("/v1/embeddings", `{"model":"text-embedding-3-small","dimensions":8,"input":`+tt.input+`}`))
			if len(r.Data) != tt.data || len(r.Data[0].Embedding) != 8 || r.Usage.PromptTokens != int64(tt.usage) || r.Usage.TotalTokens != int64(tt.usage) || time.Since(begun) != 500*ms {
				t.Errorf("%s: %+v after %v", tt.input, r, time.Since(begun))
			}
		}
		r := decode[struct{ Data []struct{ Embedding string } }](t, c.post("/v1/embeddings", `{"model":"m","dimensions":4,"input":"a","encoding_format":"base64"}`))
		if r.Data[0].Embedding != "AAAAPwAAAD8AAAA/AAAAPw==" {
			t.Errorf("base64 %q", r.Data[0].Embedding)
		}
		if st := c.server.Stats(); st.ChargedTokens != 14 || st.OutputTokens != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Limits: Limits{1000, 10}, Profile: profile(t, "openai-max")})
		defer c.stop()
		ask := func(maxTokens int) reply {
			return c.post("/v1/chat/completions", chatOf(fmt.Sprintf(`,"max_tokens":%d`, maxTokens)))
		}
		if r := ask(900); r.status != 200 {
			t.Fatalf("first: %d %s", r.status, r.body)
		}
		r := ask(200)
		const want = `{"error":{"message":"Rate limit reached for gpt-4o in organization org-mock on tokens per min (TPM): Limit 1000, Used 900, Requested 200. Please try again in 6s. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`
		if r.status != 429 || r.body != want {
			t.Errorf("%d %s\nwant 429 %s", r.status, r.body, want)
		}
		wantHeaders(t, r.header, map[string]string{
			"retry-after": "6", "retry-after-ms": "6000", "x-ratelimit-remaining-tokens": "100", "x-ratelimit-reset-tokens": "54s",
			"x-ratelimit-remaining-requests": "8", // the refused one counts
		})
		time.Sleep(6*time.Second - time.Microsecond)
		if r := ask(200); r.status != 429 {
			t.Errorf("a moment before the named wait is over: %d", r.status)
		}
		time.Sleep(time.Microsecond)
		if r := ask(200); r.status != 200 {
			t.Errorf("after the named wait: %d %s", r.status, r.body)
		}
		r = ask(1001)
		if r.status != 429 || !strings.Contains(r.body, "Request too large for gpt-4o in organization org-mock on tokens per min (TPM): Limit 1000, Requested 1001. The input") {
			t.Errorf("too large: %d %s", r.status, r.body)
		}
		wantHeaders(t, r.header, map[string]string{"retry-after": "", "retry-after-ms": ""})
		for range 8 {
			r = ask(1)
		}
		if r.status != 429 || !strings.Contains(r.body, "on requests per min (RPM): Limit 10, Used 10, Requested 1. Please try again in 6s.") || !strings.Contains(r.body, `"type":"requests"`) {
			t.Errorf("requests: %d %s", r.status, r.body)
		}
		st := c.server.Stats()
		if st.Sent != 13 || st.RefusedTokens+st.RefusedRequests+st.TooLarge+st.Admitted != 13 || st.TooLarge != 1 || st.Peak.Tokens != 1100 {
			t.Errorf("stats %+v", st)
		}
	})
}

// TestSpeed: at 60 the minute lasts a second, in metering, latency and on the wire.
func TestSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveInBubble(t, Options{Limits: Limits{TokensPerMinute: 1000}, Profile: profile(t, "openai-max"), Speed: 60, DefaultAnswer: Answer{OutputTokens: 1, FirstToken: 30 * time.Second}})
		defer c.stop()
		begun := time.Now()
		c.post("/v1/chat/completions", chatOf(`,"max_tokens":1000`))
		if took := time.Since(begun); took != 500*ms {
			t.Errorf("answered after %v", took)
		}
		r := c.post("/v1/chat/completions", chatOf(`,"max_tokens":1000`))
		if r.status != 429 || !strings.Contains(r.body, "try again in 500ms.") {
			t.Errorf("%d %s", r.status, r.body)
		}
		wantHeaders(t, r.header, map[string]string{"retry-after": "1", "retry-after-ms": "500", "x-ratelimit-reset-tokens": "500ms"})
		time.Sleep(500 * ms)
		if r = c.post("/v1/chat/completions", chatOf(`,"max_tokens":1000`)); r.status != 200 {
			t.Errorf("after the wait: %d %s", r.status, r.body)
		}
		if st := c.server.Stats(); st.Peak.Tokens != 1000 || st.Now != 90*time.Second {
			t.Errorf("stats %+v; a minute is over between the two", st)
		}
	})
}

// TestRetryObeyed: callers that wait as they are told share the account, whatever the
// speed, without more than one refusal each a turn.
func TestRetryObeyed(t *testing.T) {
	for _, speed := range []float64{1, 7, 60, 977} {
		synctest.Test(t, func(t *testing.T) {
			c := serveInBubble(t, Options{Limits: Limits{TokensPerMinute: 997}, Profile: profile(t, "openai-max"), Speed: speed})
			defer c.stop()
			for i := range 100 {
				body := chatOf(fmt.Sprintf(`,"max_tokens":%d`, 100+7*i))
				r := c.post("/v1/chat/completions", body)
				if r.status == 429 {
					wait, err := time.ParseDuration(r.header.Get("Retry-After-Ms") + "ms")
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(wait)
					r = c.post("/v1/chat/completions", body)
				}
				if r.status != 200 {
					t.Fatalf("speed %v, request %d: %d %s", speed, i, r.status, r.body)
				}
			}
		})
	}
}
