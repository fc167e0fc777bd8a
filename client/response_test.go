package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"quotabroker/client"
	"quotabroker/wire"
)

// settled is how a settlement reads on the wire.
func settled(t *testing.T, s client.Settlement) string {
	t.Helper()
	r := wire.SettleRequest{Lease: wire.LeaseID{N: 1}, Outcome: s.Outcome, Usage: s.Usage, Provider: s.Provider}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	text := strings.TrimPrefix(string(wire.AppendSettle(nil, &r)), `{"lease":"0-1",`)
	return strings.TrimSuffix(text, "}")
}

func TestFromResponse(t *testing.T) {
	const (
		chat   = `{"choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10}}`
		events = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":10}}\n\n"
		usage  = `"outcome":"ok","usage":{"input_tokens":19,"output_tokens":10}`
		large  = `{"error":{"message":"Request too large on tokens per min (TPM): Limit 30000, Requested 30601.","code":"rate_limit_exceeded"}}`
		busy   = `{"error":{"code":"429","message":"The system is currently experiencing high demand. Please retry after 20 seconds."}}`
		day    = `{"error":{"code":"429","message":"Please retry after 86400 seconds."}}`
	)
	limits := http.Header{"X-Ratelimit-Limit-Tokens": {"1000"}, "X-Ratelimit-Remaining-Tokens": {"900"}}
	for name, row := range map[string]struct {
		status int
		header http.Header
		body   string
		want   string
	}{
		"an answer":               {200, nil, chat, usage},
		"with limits":             {200, limits, chat, usage + `,"provider":{"status":200,"tokens":{"limit":1000,"remaining":900}}`},
		"retry-after with a 200":  {200, http.Header{"Retry-After": {"32"}}, chat, usage},
		"no usage":                {200, nil, `{}`, `"outcome":"ok"`},
		"still packed":            {200, http.Header{"Content-Encoding": {"gzip"}}, chat, `"outcome":"ok"`},
		"a stream":                {200, stream, events + "data: [DONE]\n\n", usage},
		"a stream cut off":        {200, stream, events, `"outcome":"unknown"`},
		"an error in a 200":       {200, nil, `{"error":{"code":429,"message":"Try again in 2 seconds."}}`, `"outcome":"throttled","provider":{"status":429,"retry_after_ms":2000}`},
		"an error that has usage": {200, stream, "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"},\"usage\":{\"input_tokens\":9,\"output_tokens\":5}}}\n\n", `"outcome":"failed","usage":{"input_tokens":9,"output_tokens":5},"provider":{"status":200}`},
		"too large":               {429, http.Header{"Retry-After": {"9"}}, large, `"outcome":"failed","provider":{"status":429,"tokens":{"limit":30000}}`},
		"no limit of ours":        {429, nil, busy, `"outcome":"overloaded","provider":{"status":429,"retry_after_ms":20000}`},
		"a day":                   {429, nil, day, `"outcome":"throttled","provider":{"status":429,"retry_after_ms":86400000}`},
		"no money":                {429, http.Header{"Retry-After": {"9"}}, `{"error":{"type":"insufficient_quota"}}`, `"outcome":"exhausted","provider":{"status":429}`},
		"a packed error":          {429, http.Header{"Content-Encoding": {"gzip"}}, "try again in 5s", `"outcome":"throttled","provider":{"status":429}`},
		"no body":                 {500, nil, ``, `"outcome":"failed","provider":{"status":500}`},
	} {
		t.Run(name, func(t *testing.T) {
			header := row.header
			if header == nil {
				header = http.Header{}
			}
			s := client.FromResponse(&http.Response{StatusCode: row.status, Header: header}, []byte(row.body))
			if got := settled(t, s); got != row.want {
				t.Errorf("is   %s\nwant %s", got, row.want)
			}
		})
	}
}

// What the caller does to a response's header meanwhile is none of the settlement's.
func TestTransportReadsTheHeaderThatItGot(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		u := &upstream{
			header: http.Header{"Content-Type": {"text/event-stream"}, "Retry-After": {"3"}},
			body:   "data: {\"error\":{\"code\":429}}\n\n",
			cut:    errors.New("reset"),
		}
		hc := http.Client{Transport: &client.Transport{Client: c, Base: u}}
		resp, err := hc.Post("https://api.example.com/", "", strings.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		resp.Header.Set("Retry-After", "99")
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, u.cut) {
			t.Errorf("reading: %v", err)
		}
		c.Close()
		w.checkSettled(t, `"outcome":"throttled","provider":{"status":429,"retry_after_ms":3000}`)
	})
}
