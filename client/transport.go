package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"quotabroker/wire"
)

const (
	maxRequestBody = 32 << 20 // what the largest provider takes
	maxErrorBody   = 64 << 10
)

// Transport is an http.RoundTripper that meters the calls of a provider's SDK: it
// acquires a lease for each request before it forwards it, and settles it with the
// usage that the response reports.
//
//	sdk := openai.NewClient(option.WithHTTPClient(&http.Client{
//		Transport: &client.Transport{Client: c},
//	}))
//
// The response passes through untouched, streams included, and is read along the
// way, as FromResponse does. Where it reports no usage, or the caller closes a
// stream before its end, what was reserved stays charged. The settlement is sent in
// the background, which Client.Close waits for.
//
// A request that is not granted fails with Acquire's error, which errors.Is and
// errors.As find through the *url.Error of http.Client; its context says how long
// to wait. Nothing is ever sent without a grant but what Pass lets through.
//
// It is safe for concurrent use; the fields are not to be changed meanwhile.
type Transport struct {
	// Client asks for the leases. Required.
	Client *Client

	// Base forwards the requests. nil: http.DefaultTransport.
	Base http.RoundTripper

	// Describe completes what is asked for a request: its Tenant, its Kind, its
	// Deadline. Body is set, and Model where the body names one. A Describe that
	// counts by itself sets InputTokens, and Body is then not sent. nil: nothing.
	Describe func(*http.Request, *Request)

	// Pass reports whether a request costs no tokens and is forwarded as it is.
	// nil: everything but POST is.
	Pass func(*http.Request) bool
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.passes(r) {
		return t.base().RoundTrip(r)
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	lease, err := t.Client.Acquire(r.Context(), t.describe(r, body))
	if err != nil {
		return nil, err
	}
	out := r.WithContext(r.Context())
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, _ = out.GetBody() // never fails
	out.ContentLength = int64(len(body))
	resp, err := t.base().RoundTrip(out)
	if err != nil {
		t.settle(lease, withoutResponse(err))
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		t.settle(lease, failure(resp))
		return resp, nil
	}
	resp.Body = &meteredBody{
		body:   resp.Body,
		reader: newResponseReader(resp),
		settle: func(s Settlement) { t.settle(lease, s) },
	}
	return resp, nil
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}

func (t *Transport) passes(r *http.Request) bool {
	if t.Pass != nil {
		return t.Pass(r)
	}
	return r.Method != http.MethodPost
}

func (t *Transport) describe(r *http.Request, body []byte) Request {
	ask := Request{Body: body}
	var named struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(body, &named) == nil && len(named.Model) <= wire.MaxTextBytes {
		ask.Model = named.Model
	}
	if t.Describe != nil {
		t.Describe(r, &ask)
	}
	if ask.InputTokens.Set {
		ask.Body = nil
	}
	return ask
}

// settle delivers a settlement in the background, so that neither a response nor
// its end waits for the broker.
func (t *Transport) settle(lease *Lease, s Settlement) {
	started := t.Client.run(&t.Client.mu.settling, func() {
		if err := t.Client.settleFinally(context.Background(), lease, s); err != nil {
			t.Client.opts.Logger.Warn("settlement refused; what was reserved stays charged",
				"lease", lease.ID().String(), "error", err)
		}
	})
	if !started {
		lease.Close()
	}
}

// readBody reads a request's body, which a RoundTripper closes whatever happens.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBody+1))
	if err != nil {
		return nil, fmt.Errorf("reading the request's body: %w", err)
	}
	if len(body) > maxRequestBody {
		return nil, fmt.Errorf("%w: the request's body has more than %d bytes", ErrPayloadTooLarge, maxRequestBody)
	}
	return body, nil
}

// withoutResponse settles a request that brought no response. Only where there
// was no connection to send it on is it certain that it was not sent.
func withoutResponse(err error) Settlement {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return Unsent()
	}
	return Unknown()
}

// meteredBody is a response's body that settles when it has been read. As with
// other bodies, Close may interrupt a Read.
type meteredBody struct {
	body io.ReadCloser

	mu     sync.Mutex // of what follows
	reader *responseReader
	settle func(Settlement) // nil once it has been called
}

// Read implements io.Reader.
func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.settle != nil {
		b.reader.read(p[:n])
		if err != nil {
			b.finish(errors.Is(err, io.EOF))
		}
	}
	return n, err
}

// Close implements io.Closer.
func (b *meteredBody) Close() error {
	err := b.body.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.settle != nil {
		b.finish(false)
	}
	return err
}

// finish settles, once. The caller holds b.mu.
func (b *meteredBody) finish(atEnd bool) {
	settle := b.settle
	b.settle = nil
	settle(b.reader.settlement(atEnd))
}
