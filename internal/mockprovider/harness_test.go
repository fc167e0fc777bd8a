package mockprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func newTestServer(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func profile(t testing.TB, name string) Profile {
	t.Helper()
	p, err := ProfileNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pipes is a listener and its dialer in memory, so that a synctest bubble sees every
// goroutine that waits for the network.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// caller sends requests to a server inside a synctest bubble.
type caller struct {
	t      *testing.T
	server *Server
	client *http.Client
	served chan error
}

// serveInBubble must be called in a bubble; stop must be called before it ends.
func serveInBubble(t *testing.T, o Options) *caller {
	t.Helper()
	p := newPipes()
	c := &caller{
		t: t, server: newTestServer(t, o), served: make(chan error, 1),
		client: &http.Client{Transport: &http.Transport{DialContext: p.dial, MaxIdleConnsPerHost: 1000}},
	}
	go func() { c.served <- c.server.Serve(p) }()
	return c
}

func (c *caller) stop() {
	c.t.Helper()
	c.client.CloseIdleConnections()
	if err := c.server.Close(c.t.Context()); err != nil {
		c.t.Errorf("close: %v", err)
	}
	if err := <-c.served; err != nil {
		c.t.Errorf("serve: %v", err)
	}
}

// reply is an answer read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func (c *caller) do(ctx context.Context, method, path, body string, header ...string) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://mock"+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w, err := c.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer w.Body.Close()
	b, err := io.ReadAll(w.Body)
	return reply{w.StatusCode, w.Header, string(b), err}, nil
}

func (c *caller) post(path, body string, header ...string) reply {
	c.t.Helper()
	r, err := c.do(c.t.Context(), http.MethodPost, path, body, header...)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// hello is a chat whose true input is 3 + 4 + ⌈20/4⌉ = 12 tokens by the default count.
const hello = `"model":"gpt-4o","messages":[{"role":"user","content":"Count from one to 10"}]`

func chatOf(extra string) string { return "{" + hello + extra + "}" }

// decode reads the body of a reply as JSON.
func decode[T any](t *testing.T, r reply) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	return v
}

// events returns the data of a stream's events, decoded where it is JSON.
func events(t *testing.T, body string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for block := range bytes.SplitSeq([]byte(body), []byte("\n\n")) {
		_, data, ok := bytes.Cut(block, []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			all = append(all, map[string]any{"done": true})
			continue
		}
		var v map[string]any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		all = append(all, v)
	}
	return all
}
