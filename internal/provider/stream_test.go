package provider_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"quotabroker/internal/provider"
	"quotabroker/internal/testlines"
)

// told reads a stream in pieces of n bytes.
func told(t testing.TB, text string, n int, eof bool) string {
	t.Helper()
	var s provider.Stream
	for len(text) > 0 {
		piece := text[:min(n, len(text))]
		if k, err := s.Write([]byte(piece)); k != len(piece) || err != nil {
			t.Fatalf("Write: %d, %v", k, err)
		}
		text = text[len(piece):]
	}
	return tokens(t, s.End(arrival, nil, eof))
}

func TestStreams(t *testing.T) {
	const (
		chat      = "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\"\"}}],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":10}}\n\n"
		start     = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"cache_read_input_tokens\":5,\"output_tokens\":1}}}\n\n"
		delta     = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":null,\"output_tokens\":15}}\n\n"
		stop      = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
		overload  = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
		completed = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"error\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":5}}}\n\n"
		whole     = `{"input_tokens":19,"output_tokens":10}`
	)
	for name, row := range map[string]struct {
		text     string
		eof, cut string // what is told where it was read to its end, and where it was not
	}{
		"chat":                  {chat + "data: [DONE]\n\n", whole + " final ended", whole + " final ended"},
		"chat without its end":  {chat, whole + " final ended", whole},
		"anthropic":             {start + delta + stop, `{"input_tokens":30,"cached_input_tokens":5,"output_tokens":15} final ended`, `{"input_tokens":30,"cached_input_tokens":5,"output_tokens":15} final ended`},
		"anthropic, no output":  {start, `{"input_tokens":30,"cached_input_tokens":5,"output_tokens":1} ended`, `{"input_tokens":30,"cached_input_tokens":5,"output_tokens":1}`},
		"anthropic, overloaded": {start + overload, `{"input_tokens":30,"cached_input_tokens":5,"output_tokens":1} ended capacity`, `{"input_tokens":30,"cached_input_tokens":5,"output_tokens":1} capacity`},
		"responses":             {completed, `{"input_tokens":9,"output_tokens":5} final ended`, `{"input_tokens":9,"output_tokens":5} final ended`},
		"responses, incomplete": {strings.ReplaceAll(completed, "completed", "incomplete"), `{"input_tokens":9,"output_tokens":5} final ended`, `{"input_tokens":9,"output_tokens":5} final ended`},
		"responses, failed": {
			"data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\"},\"usage\":{\"input_tokens\":9,\"output_tokens\":5}}}\n\n",
			`{"input_tokens":9,"output_tokens":5} final ended rate`, `{"input_tokens":9,"output_tokens":5} final ended rate`,
		},
		"responses, broken":           {"data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"}}}\n\n", "ended transient", "ended transient"},
		"responses, an error event":   {"data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"x\"}\n\n", "ended rate", "rate"},
		"an error event without JSON": {"event: error\ndata: upstream went away\n\n", "ended rejected", "rejected"},
		"an error event without data": {"event: error\n\n", "ended rejected", "rejected"},
		"gemini": {
			"data: {\"candidates\":[{}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":7,\"thoughtsTokenCount\":35}}\r\n\r\n" +
				"data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":87,\"thoughtsTokenCount\":78}}\r\n\r\n",
			`{"input_tokens":87,"output_tokens":78,"reasoning_tokens":78} final ended`, `{"input_tokens":87,"output_tokens":78,"reasoning_tokens":78} final ended`,
		},
		"vllm, running usage": {
			"data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\n",
			`{"input_tokens":9,"output_tokens":2} final ended`, `{"input_tokens":9,"output_tokens":2}`,
		},
		"converse":            {"data: {\"metadata\":{\"usage\":{\"inputTokens\":9,\"outputTokens\":2}}}\n\n", `{"input_tokens":9,"output_tokens":2} final ended`, `{"input_tokens":9,"output_tokens":2}`},
		"comments and others": {": OPENROUTER PROCESSING\n\nid: 7\nretry: 10\n" + chat + ": data: {\"error\":1}\n\n", whole + " final ended", whole},
		"carriage returns":    {strings.ReplaceAll(chat, "\n", "\r") + "data: [DONE]\r", whole + " final ended", whole + " final ended"},
		"no space":            {strings.ReplaceAll(chat, "data: ", "data:"), whole + " final ended", whole},
		"no empty lines":      {strings.ReplaceAll(chat, "\n\n", "\n") + "data: [DONE]\n", whole + " final ended", whole + " final ended"},
		"data on two lines":   {"data: {\"usage\":\ndata: {\"prompt_tokens\":19,\"completion_tokens\":10}}\n\n", whole + " final ended", whole},
		"no line break":       {strings.TrimSpace(chat), whole + " final ended", whole},
		"a broken event":      {"data: {\"usage\n\n" + chat, whole + " final ended", whole},
		"an endless line":     {chat + "data: " + strings.Repeat("x", provider.MaxEvent) + "\n\ndata: [DONE]\n\n", whole + " final ended", whole + " final ended"},
		"an endless event":    {strings.Repeat("data: "+strings.Repeat("x", 1<<19)+"\n", 9) + "\n" + chat, whole + " final ended", whole},
		"an endless error":    {"event: error\ndata: " + strings.Repeat("x", provider.MaxEvent) + "\n\n", "ended rejected", "rejected"},
		"nothing":             {"", "ended", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pieces := []int{len(row.text) + 1, 65_537}
			if len(row.text) < 4096 {
				pieces = append(pieces, 1, 2, 3, 7)
			}
			for _, n := range pieces {
				if got := told(t, row.text, n, true); got != row.eof {
					t.Errorf("in pieces of %d:\nis   %s\nwant %s", n, got, row.eof)
				}
				if got := told(t, row.text, n, false); got != row.cut {
					t.Errorf("cut off, in pieces of %d:\nis   %s\nwant %s", n, got, row.cut)
				}
			}
		})
	}
}

// recordings are the streams of testdata, by name, in order.
func recordings(t testing.TB) (names, texts []string) {
	t.Helper()
	type recording struct {
		File string `json:"file"`
	}
	for _, r := range testlines.Read[recording](t, testdata("streams/index.jsonl")) {
		text, err := os.ReadFile(testdata("streams/" + r.File))
		if err != nil {
			t.Fatal(err)
		}
		names, texts = append(names, r.File), append(texts, string(text))
	}
	return names, texts
}

func TestRecordedStreams(t *testing.T) {
	var b strings.Builder
	names, texts := recordings(t)
	for i, text := range texts {
		got := told(t, text, len(text), false)
		fmt.Fprintf(&b, "%s %s\n", names[i], got)
		for _, n := range []int{1, 3, 1000} {
			if other := told(t, text, n, false); other != got {
				t.Errorf("%s in pieces of %d: %s", names[i], n, other)
			}
		}
		for cut := 0; cut < len(text); cut += 1 + len(text)/50 {
			if s := told(t, text[:cut], 1000, false); strings.Contains(s, "final") && s != got {
				t.Errorf("%s cut off at %d: %s", names[i], cut, s)
			}
		}
	}
	golden(t, "streams/seen.txt", b.String())
}
