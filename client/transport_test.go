package client_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"quotabroker/client"
	"quotabroker/wire"
)

// upstream is a provider that answers one thing.
type upstream struct {
	status int
	header http.Header
	body   string
	cut    error // the body ends with it, not with io.EOF
	err    error // there is no response
	heard  []*http.Request
	bodies []string
}

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	u.heard = append(u.heard, r)
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		u.bodies = append(u.bodies, string(body))
	}
	if u.err != nil {
		return nil, u.err
	}
	var body io.Reader = strings.NewReader(u.body)
	if u.cut != nil {
		body = io.MultiReader(body, iotest.ErrReader(u.cut))
	}
	header := u.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: max(u.status, 200), Header: header, Body: io.NopCloser(body), Request: r}, nil
}

var stream = http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}

const question = `{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}`

// post sends the question through a Transport and reads the answer to its end.
func post(t *testing.T, w *world, u *upstream) string {
	t.Helper()
	c := w.client(nil)
	defer c.Close()
	hc := http.Client{Transport: &client.Transport{Client: c, Base: u}}
	resp, err := hc.Post("https://api.example.com/v1/chat/completions", "application/json", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(iotest.OneByteReader(resp.Body))
	if !errors.Is(err, u.cut) {
		t.Errorf("reading: %v", err)
	}
	return string(body)
}

func TestTransportSettlesWithTheReportedUsage(t *testing.T) {
	const (
		chat = `{"id":"x","choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,` +
			`"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}}`
		embeddings = `{"data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`
		responses  = `{"output":[],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":1},` +
			`"output_tokens":5,"output_tokens_details":{"reasoning_tokens":4}}}`
		messages = `{"type":"message","role":"assistant","usage":{"input_tokens":781,"output_tokens":74,` +
			`"cache_creation_input_tokens":100,"cache_read_input_tokens":20,"output_tokens_details":{"thinking_tokens":7}}}`
		chatStream = "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\"\"}}],\"usage\":null}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n"
		responsesStream = "event: response.created\r\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\r\n\r\n" +
			"event: response.completed\r\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":5}}}\r\n\r\n"
		messagesStream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"cache_read_input_tokens\":5,\"output_tokens\":1}}}\n\n" +
			"event: ping\ndata: {\"type\": \"ping\"}\n\n: a comment\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"input_tokens\":null,\"output_tokens\":15}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	)
	cut := errors.New("connection reset")
	deltaAt := strings.Index(messagesStream, "event: message_delta")
	for name, row := range map[string]struct {
		u    upstream
		want string
	}{
		"chat":                      {upstream{body: chat}, `"outcome":"ok","usage":{"input_tokens":19,"cached_input_tokens":4,"output_tokens":10,"reasoning_tokens":3}`},
		"embeddings":                {upstream{body: embeddings}, `"outcome":"ok","usage":{"input_tokens":8,"output_tokens":0}`},
		"responses":                 {upstream{body: responses}, `"outcome":"ok","usage":{"input_tokens":9,"cached_input_tokens":2,"cache_write_tokens":1,"output_tokens":5,"reasoning_tokens":4}`},
		"messages":                  {upstream{body: messages}, `"outcome":"ok","usage":{"input_tokens":901,"cached_input_tokens":20,"cache_write_tokens":100,"output_tokens":74,"reasoning_tokens":7}`},
		"no usage":                  {upstream{body: `{"choices":[]}`}, `"outcome":"ok"`},
		"half a usage":              {upstream{body: `{"usage":{"prompt_tokens":5}}`}, `"outcome":"ok"`},
		"usage of words":            {upstream{body: `{"usage":{"prompt_tokens":"five","completion_tokens":1}}`}, `"outcome":"ok"`},
		"no object":                 {upstream{body: `hello`}, `"outcome":"ok"`},
		"packed":                    {upstream{body: chat, header: http.Header{"Content-Encoding": {"br"}}}, `"outcome":"ok"`},
		"broken off":                {upstream{body: chat[:len(chat)-30], cut: cut}, `"outcome":"unknown"`},
		"chat stream":               {upstream{body: chatStream, header: stream}, `"outcome":"ok","usage":{"input_tokens":19,"output_tokens":10}`},
		"responses stream":          {upstream{body: responsesStream, header: stream}, `"outcome":"ok","usage":{"input_tokens":9,"output_tokens":5}`},
		"messages stream":           {upstream{body: messagesStream, header: stream}, `"outcome":"ok","usage":{"input_tokens":30,"cached_input_tokens":5,"output_tokens":15}`},
		"no usage asked for":        {upstream{body: "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", header: stream}, `"outcome":"ok"`},
		"stream without its end":    {upstream{body: messagesStream[:deltaAt], header: stream}, `"outcome":"ok"`},
		"stream broken off":         {upstream{body: messagesStream[:deltaAt], header: stream, cut: cut}, `"outcome":"unknown"`},
		"stream broken after usage": {upstream{body: chatStream[:strings.Index(chatStream, "data: [DONE]")], header: stream, cut: cut}, `"outcome":"unknown"`},
		"stream that fails":         {upstream{body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", header: stream}, `"outcome":"overloaded","provider":{"status":200}`},
		"last line unended":         {upstream{body: strings.TrimRight(responsesStream, "\r\n"), header: stream}, `"outcome":"ok","usage":{"input_tokens":9,"output_tokens":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				if got := post(t, w, &row.u); got != row.u.body {
					t.Errorf("the answer came through as %q", got)
				}
				if got := row.u.bodies; len(got) != 1 || got[0] != question {
					t.Errorf("the provider heard %q", got)
				}
				if got := w.broker.heard(wire.VerbAcquire); len(got) != 1 || string(got[0].ask.Request) != question || got[0].ask.Model != "gpt-5" {
					t.Errorf("the broker heard %+v", got)
				}
				w.checkSettled(t, row.want)
			})
		})
	}
}

func (w *world) checkSettled(t *testing.T, want string) {
	t.Helper()
	log := w.broker.heard(wire.VerbSettle)
	if len(log) != 1 {
		t.Fatalf("%d settlements", len(log))
	}
	if got := string(log[0].msg.Data); got != `{"lease":"7-1",`+want+`}` {
		t.Errorf("settled %s\nwant %s", got, want)
	}
}

func TestTransportReportsFailures(t *testing.T) {
	date := http.Header{"Date": {"Mon, 04 May 2026 12:00:00 GMT"}, "Retry-After": {"Mon, 04 May 2026 12:00:07 GMT"}}
	after := func(name, value string) http.Header { return http.Header{name: {value}} }
	for name, row := range map[string]struct {
		u    upstream
		want string
	}{
		"429 with seconds":     {upstream{status: 429, header: after("Retry-After", "56"), body: `{"error":{"type":"tokens","code":"rate_limit_exceeded"}}`}, `"outcome":"throttled","provider":{"status":429,"retry_after_ms":56000}`},
		"429 with a fraction":  {upstream{status: 429, header: after("Retry-After", "0.4241")}, `"outcome":"throttled","provider":{"status":429,"retry_after_ms":425}`},
		"429 with ms":          {upstream{status: 429, header: after("Retry-After-Ms", "250")}, `"outcome":"throttled","provider":{"status":429,"retry_after_ms":250}`},
		"429 with a date":      {upstream{status: 429, header: date}, `"outcome":"throttled","provider":{"status":429,"retry_after_ms":7000}`},
		"429 with zero ms":     {upstream{status: 429, header: http.Header{"Retry-After-Ms": {"0"}, "Retry-After": {"1"}}}, `"outcome":"throttled","provider":{"status":429,"retry_after_ms":1000}`},
		"429 with nonsense":    {upstream{status: 429, header: after("Retry-After", "NaN")}, `"outcome":"throttled","provider":{"status":429}`},
		"429 with a long wait": {upstream{status: 429, header: after("Retry-After", "1e300")}, `"outcome":"throttled","provider":{"status":429,"retry_after_ms":31536000000}`},
		"429 without":          {upstream{status: 429}, `"outcome":"throttled","provider":{"status":429}`},
		"out of money":         {upstream{status: 429, body: `{"error":{"type":"insufficient_quota","code":null}}`}, `"outcome":"exhausted","provider":{"status":429}`},
		"spend cap":            {upstream{status: 429, body: `{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}`}, `"outcome":"exhausted","provider":{"status":429}`},
		"payment required":     {upstream{status: 402}, `"outcome":"exhausted","provider":{"status":402}`},
		"quota per minute":     {upstream{status: 429, body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota","details":[{"a":1}]}}`}, `"outcome":"throttled","provider":{"status":429}`},
		"overloaded":           {upstream{status: 529, body: `{"type":"error","error":{"type":"overloaded_error"}}`}, `"outcome":"overloaded","provider":{"status":529}`},
		"bad request":          {upstream{status: 400, body: `{"error":{"type":"invalid_request_error"}}`}, `"outcome":"failed","provider":{"status":400}`},
		"broken error":         {upstream{status: 500, body: `half`, cut: errors.New("reset")}, `"outcome":"failed","provider":{"status":500}`},
		"large error":          {upstream{status: 500, body: strings.Repeat("x", 200_000)}, `"outcome":"failed","provider":{"status":500}`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				if got := post(t, w, &row.u); got != row.u.body {
					t.Errorf("the answer came through as %q", got)
				}
				w.checkSettled(t, row.want)
			})
		})
	}
}

func TestTransportWithoutAResponse(t *testing.T) {
	for err, want := range map[error]string{
		&net.OpError{Op: "dial", Err: errors.New("connection refused")}: `"outcome":"unsent"`,
		&net.OpError{Op: "read", Err: errors.New("connection reset")}:   `"outcome":"unknown"`,
		io.ErrUnexpectedEOF: `"outcome":"unknown"`,
	} {
		inBubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			hc := http.Client{Transport: &client.Transport{Client: c, Base: &upstream{err: err}}}
			if _, got := hc.Post("https://api.example.com/", "", strings.NewReader(question)); !errors.Is(got, err) {
				t.Errorf("Post: %v", got)
			}
			c.Close()
			w.checkSettled(t, want)
		})
	}
}

// Many SDKs close a stream when it says that it is over, and do not wait for EOF.
func TestStreamClosedByItsReader(t *testing.T) {
	const chunk = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":10}}\n\n"
	const delta = "data: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":9,\"output_tokens\":5}}\n\n"
	for body, want := range map[string]string{
		delta + "data: {\"type\":\"message_stop\"}\n\n": `"outcome":"ok","usage":{"input_tokens":9,"output_tokens":5}`,
		delta:                      `"outcome":"unknown"`,
		chunk + "data: [DONE]\n\n": `"outcome":"ok","usage":{"input_tokens":19,"output_tokens":10}`,
		chunk:                      `"outcome":"unknown"`,
	} {
		inBubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			hc := http.Client{Transport: &client.Transport{Client: c, Base: &upstream{header: stream, body: body + ": never read"}}}
			resp, err := hc.Post("https://api.example.com/", "", strings.NewReader(question))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, len(body))); err != nil {
				t.Error(err)
			}
			resp.Body.Close()
			resp.Body.Close()
			c.Close()
			w.checkSettled(t, want)
		})
	}
}

func TestTransportSendsNothingWithoutAGrant(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.broker.on(wire.VerbAcquire, func(h heard) {
			w.broker.decide(h, wire.Decision{Verdict: wire.Refuse, Cause: wire.CauseQueueFull, RetryAfterMS: 1000, Message: "full"})
		})
		c := w.client(nil)
		defer c.Close()
		u := &upstream{body: `{}`}
		hc := http.Client{Transport: &client.Transport{Client: c, Base: u}}
		_, err := hc.Post("https://api.example.com/", "", strings.NewReader(question))
		var r *client.Refused
		if !errors.As(err, &r) || r.RetryAfter != time.Second {
			t.Errorf("Post: %v", err)
		}
		var bad *wire.Error
		if _, err := hc.Post("https://api.example.com/", "", strings.NewReader("no JSON")); !errors.As(err, &bad) {
			t.Errorf("a body that nobody can count: %v", err)
		}
		if _, err := hc.Post("https://api.example.com/", "", http.NoBody); !errors.As(err, &bad) {
			t.Errorf("no body: %v", err)
		}
		if _, err := hc.Post("https://api.example.com/", "", iotest.ErrReader(io.ErrNoProgress)); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("a body that cannot be read: %v", err)
		}
		large := io.LimitReader(endless{}, 40<<20)
		if _, err := hc.Post("https://api.example.com/", "", large); !errors.Is(err, client.ErrPayloadTooLarge) {
			t.Errorf("a body without end: %v", err)
		}
		if len(u.heard) != 0 {
			t.Errorf("%d were sent", len(u.heard))
		}
		if _, err := hc.Get("https://api.example.com/v1/models"); err != nil || len(u.heard) != 1 {
			t.Errorf("what costs nothing: %v", err)
		}
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestTransportIsToldWhatItAsksFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		tr := &client.Transport{
			Client: c, Base: &upstream{body: `{}`},
			Describe: func(r *http.Request, ask *client.Request) {
				ask.Tenant = r.Header.Get("X-Tenant")
				ask.InputTokens = client.Tokens(int64(len(ask.Body)) / 4)
			},
			Pass: func(r *http.Request) bool { return r.URL.Path == "/count" },
		}
		for _, path := range []string{"/count", "/chat"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com"+path, strings.NewReader(question))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Tenant", "acme")
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		asks := w.broker.heard(wire.VerbAcquire)
		if len(asks) != 1 || asks[0].ask.Tenant != "acme" || asks[0].ask.InputTokens != wire.Int(int64(len(question))/4) || asks[0].ask.Request != nil {
			t.Errorf("asked %+v", asks)
		}
	})
}
