package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"quotabroker/internal/provider"
	"quotabroker/internal/testlines"
	"quotabroker/wire"
)

// tokens is how what a body told reads in the tests.
func tokens(t testing.TB, s provider.Seen) string {
	t.Helper()
	var words []string
	if s.Usage != nil {
		words = append(words, strings.TrimSuffix(said(t, wire.OutcomeOK, s.Usage, nil), "}")[len(`"outcome":"ok","usage":`):])
	}
	if s.Final {
		words = append(words, "final")
	}
	if s.Ended {
		words = append(words, "ended")
	}
	if f := s.Failure; f != nil {
		said(t, f.Kind.Outcome(), nil, &f.State)
		words = append(words, kinds[f.Kind])
	}
	return strings.Join(words, " ")
}

func TestBodyOfEachFamily(t *testing.T) {
	for name, row := range map[string]struct{ body, want string }{
		"chat": {
			`{"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},` +
				`"completion_tokens_details":{"reasoning_tokens":3,"rejected_prediction_tokens":1}}}`,
			`{"input_tokens":19,"cached_input_tokens":4,"cache_write_tokens":2,"output_tokens":10,"reasoning_tokens":3} final ended`,
		},
		"embeddings": {`{"usage":{"prompt_tokens":8,"total_tokens":8}}`, `{"input_tokens":8,"output_tokens":0} final ended`},
		"reasoning apart": {
			`{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115,"completion_tokens_details":{"reasoning_tokens":100}}}`,
			`{"input_tokens":10,"output_tokens":105,"reasoning_tokens":100} final ended`,
		},
		"hidden thoughts":   {`{"usage":{"prompt_tokens":66,"completion_tokens":6,"total_tokens":100}}`, `{"input_tokens":66,"output_tokens":34} final ended`},
		"a total too small": {`{"usage":{"prompt_tokens":66,"completion_tokens":6,"total_tokens":70}}`, `{"input_tokens":66,"output_tokens":6} final ended`},
		"responses": {
			`{"status":"completed","error":null,"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":1},"output_tokens":5,` +
				`"output_tokens_details":{"reasoning_tokens":4}}}`,
			`{"input_tokens":9,"cached_input_tokens":2,"cache_write_tokens":1,"output_tokens":5,"reasoning_tokens":4} final ended`,
		},
		"responses, failed": {`{"status":"failed","error":{"code":"rate_limit_exceeded","message":"x"},"usage":null}`, `ended rate`},
		"anthropic": {
			`{"type":"message","usage":{"input_tokens":781,"output_tokens":74,"cache_creation_input_tokens":100,"cache_read_input_tokens":20,` +
				`"cache_creation":{"ephemeral_5m_input_tokens":100},"output_tokens_details":{"thinking_tokens":7}}}`,
			`{"input_tokens":901,"cached_input_tokens":20,"cache_write_tokens":100,"output_tokens":74,"reasoning_tokens":7} final ended`,
		},
		"gemini": {
			`{"usageMetadata":{"promptTokenCount":15,"cachedContentTokenCount":5,"candidatesTokenCount":40,"thoughtsTokenCount":257,"toolUsePromptTokenCount":288,"totalTokenCount":600}}`,
			`{"input_tokens":303,"cached_input_tokens":5,"output_tokens":297,"reasoning_tokens":257} final ended`,
		},
		"gemini, chunks in an array": {
			`[{"usageMetadata":{"promptTokenCount":15,"candidatesTokenCount":4}},{"usageMetadata":{"promptTokenCount":15,"candidatesTokenCount":9}}]`,
			`{"input_tokens":15,"output_tokens":9} final ended`,
		},
		"interactions": {
			`{"usage":{"total_input_tokens":15,"total_output_tokens":4,"total_thought_tokens":6,"total_cached_tokens":3,"total_tool_use_tokens":2,"total_tokens":27}}`,
			`{"input_tokens":17,"cached_input_tokens":3,"output_tokens":10,"reasoning_tokens":6} final ended`,
		},
		"converse": {
			`{"usage":{"inputTokens":11,"outputTokens":264,"totalTokens":1303,"cacheReadInputTokens":0,"cacheWriteInputTokens":1028}}`,
			`{"input_tokens":1039,"cache_write_tokens":1028,"output_tokens":264} final ended`,
		},
		"cohere": {
			`{"usage":{"billed_units":{"input_tokens":8,"output_tokens":50},"tokens":{"input_tokens":1394,"output_tokens":55,"reasoning_tokens":38},"cached_tokens":1360}}`,
			`{"input_tokens":1394,"cached_input_tokens":1360,"output_tokens":55,"reasoning_tokens":38} final ended`,
		},
		"cohere, first version": {`{"meta":{"tokens":{"input_tokens":14,"output_tokens":5}}}`, `{"input_tokens":14,"output_tokens":5} final ended`},
		"mistral":               {`{"usage":{"prompt_tokens":77,"completion_tokens":12,"num_cached_tokens":76}}`, `{"input_tokens":77,"cached_input_tokens":76,"output_tokens":12} final ended`},
		"groq":                  {`{"x_groq":{"usage":{"prompt_tokens":18,"completion_tokens":73}}}`, `{"input_tokens":18,"output_tokens":73} final ended`},
		"deepseek":              {`{"usage":{"prompt_tokens":18,"completion_tokens":73,"prompt_cache_hit_tokens":8}}`, `{"input_tokens":18,"cached_input_tokens":8,"output_tokens":73} final ended`},
		"openrouter, an error":  {`{"error":{"code":502,"message":"Provider returned error"}}`, `ended transient`},
		"xai, an error":         {`{"code":"x","error":"no"}`, `ended rejected`},
		"half a usage":          {`{"usage":{"prompt_tokens":5}}`, `ended`},
		"words":                 {`{"usage":{"prompt_tokens":"five","completion_tokens":1}}`, `ended`},
		"negative":              {`{"usage":{"prompt_tokens":-5,"completion_tokens":1}}`, `ended`},
		"too many":              {`{"usage":{"prompt_tokens":1000000001,"completion_tokens":1}}`, `ended`},
		"too many together":     {`{"usage":{"input_tokens":1000000000,"cache_read_input_tokens":1,"output_tokens":1}}`, `ended`},
		"whole floats":          {`{"usage":{"prompt_tokens":5.0,"completion_tokens":1e1}}`, `{"input_tokens":5,"output_tokens":10} final ended`},
		"half a token":          {`{"usage":{"prompt_tokens":5.5,"completion_tokens":1}}`, `ended`},
		"strange details":       {`{"usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":[1]}}`, `{"input_tokens":5,"output_tokens":1} final ended`},
		"parts over the whole":  {`{"usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":9,"cache_write_tokens":9},"completion_tokens_details":{"reasoning_tokens":9}}}`, `{"input_tokens":5,"cached_input_tokens":5,"output_tokens":1,"reasoning_tokens":1} final ended`},
		"a count":               {`{"input_tokens":14}`, `ended`},
		"no usage":              {`{"choices":[],"error":null}`, `ended`},
		"no object":             {`hello`, ``},
		"cut off":               {`{"usage":{"prompt_tokens":5,"completion_tokens":1}`, ``},
		"nothing":               {``, ``},
		"too large":             {`"` + strings.Repeat("x", provider.MaxEvent) + `"`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tokens(t, provider.Body(arrival, nil, []byte(row.body))); got != row.want {
				t.Errorf("is   %s\nwant %s", got, row.want)
			}
		})
	}
}

// A failure within a body is read with the headers of its response.
func TestFailureInABodyHasTheHeaders(t *testing.T) {
	h := header("retry-after: 7\nx-ratelimit-remaining-tokens: 0")
	got := provider.Body(arrival, h, []byte(`{"error":{"code":429}}`)).Failure
	if want := `{"retry_after_ms":7000,"tokens":{"remaining":0}}`; got == nil || state(t, got.State) != want {
		t.Errorf("%+v, want %s", got, want)
	}
}

func TestRecordedUsage(t *testing.T) {
	type report struct {
		Provider string          `json:"provider"`
		API      string          `json:"api"`
		Usage    json.RawMessage `json:"usage"`
	}
	var b strings.Builder
	for i, r := range testlines.Read[report](t, testdata("usage/usage.jsonl")) {
		body := `{"usage":` + string(r.Usage) + `}`
		if strings.Contains(r.API, "enerateContent") {
			body = `{"usageMetadata":` + string(r.Usage) + `}`
		}
		fmt.Fprintf(&b, "%d %s %s %s\n", i+1, r.Provider, r.API, tokens(t, provider.Body(arrival, nil, []byte(body))))
	}
	golden(t, "usage/counts.txt", b.String())
}
