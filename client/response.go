package client

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"quotabroker/internal/provider"
	"quotabroker/wire"
)

// FromResponse settles a call with what the provider answered: the usage that its
// body reports, what its headers say of the account's limits, and, where it is an
// error, of what kind and how long to wait. resp's own Body is not touched; body is
// what the caller has read of it, the whole of it where it can be.
//
//	resp, err := http.DefaultClient.Do(req)
//	if err != nil {
//		return client.Unknown(), err
//	}
//	defer resp.Body.Close()
//	body, err := io.ReadAll(resp.Body)
//	return client.FromResponse(resp, body), err
//
// JSON and event streams are understood in the forms of OpenAI (and those who speak
// like it), Azure, Anthropic, Gemini, Bedrock's Converse, Groq, Mistral, Cohere,
// Together and OpenRouter. Where there is no usage, or body is a stream that does
// not say that it has ended, what was reserved stays charged. So it does where body
// is still compressed.
//
// An error is throttled, overloaded or exhausted as the provider means it, which its
// status alone does not tell: a 429 may be any of them. A request that is larger than
// its whole limit has failed, as the account is well; sending it again is pointless.
// An error that comes within a stream under a status of 200 is found as well.
func FromResponse(resp *http.Response, body []byte) Settlement {
	if resp.StatusCode >= http.StatusBadRequest {
		return fromError(resp, body)
	}
	r := newResponseReader(resp)
	r.read(body)
	return r.settlement(r.stream == nil)
}

// fromError settles an error response; body may be only the beginning.
func fromError(resp *http.Response, body []byte) Settlement {
	if packed(resp) {
		body = nil
	}
	return failed(provider.Error(time.Now(), resp.StatusCode, resp.Header, body))
}

func failed(f provider.Failure) Settlement {
	return Settlement{Outcome: f.Kind.Outcome(), Provider: &f.State}
}

// failure settles an error response, and leaves its body as it was.
func failure(resp *http.Response) Settlement {
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	resp.Body = &restored{Reader: io.MultiReader(bytes.NewReader(head), &rest{resp.Body, err}), Closer: resp.Body}
	return fromError(resp, head)
}

// restored is a body whose beginning has been read and is given again.
type restored struct {
	io.Reader
	io.Closer
}

// rest is what follows: the error that the beginning ended with, or more.
type rest struct {
	body io.Reader
	err  error
}

func (r *rest) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return r.body.Read(p)
}

// responseReader is shown the body of a response with a good status piece by piece
// and says in the end what it settles to.
type responseReader struct {
	header http.Header
	limits *wire.ProviderState // nil: the header says nothing of them
	stream *provider.Stream    // nil: the body is one JSON object
	data   []byte              // of the object
	skip   bool                // the body cannot be read, or is too large to be kept
}

// newResponseReader copies the header, which belongs to whoever gets the response.
func newResponseReader(resp *http.Response) *responseReader {
	r := &responseReader{header: resp.Header.Clone(), skip: packed(resp)}
	state := provider.Headers(time.Now(), resp.StatusCode, resp.Header)
	if state.Tokens != nil || state.InputTokens != nil || state.OutputTokens != nil || state.Requests != nil {
		r.limits = &state
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		r.stream = &provider.Stream{}
	}
	return r
}

// packed reports whether the body is compressed, and so not read: net/http has
// unpacked what it asked to be packed.
func packed(resp *http.Response) bool { return resp.Header.Get("Content-Encoding") != "" }

func (r *responseReader) read(p []byte) {
	switch {
	case r.skip:
	case r.stream != nil:
		_, _ = r.stream.Write(p) // never fails
	case len(r.data)+len(p) > provider.MaxEvent:
		r.data, r.skip = nil, true
	default:
		r.data = append(r.data, p...)
	}
}

// settlement is what the response settles to. atEnd says that it was read to its end
// without an error; where it was not, and did not itself say that it had ended, the
// usage that was seen so far is not the usage, and what was reserved stays charged.
func (r *responseReader) settlement(atEnd bool) Settlement {
	seen := r.seen(atEnd)
	var s Settlement
	switch {
	case seen.Failure != nil:
		s = failed(*seen.Failure)
	case seen.Ended || atEnd:
		s = Settlement{Outcome: wire.OutcomeOK, Provider: r.limits}
	default:
		s = Settlement{Outcome: wire.OutcomeUnknown, Provider: r.limits}
	}
	if seen.Final {
		s.Usage = seen.Usage
	}
	return s
}

// seen is what the body has told. Of an object nothing is told before its end, but an
// SDK that decodes it may close the body without reading to EOF.
func (r *responseReader) seen(atEnd bool) provider.Seen {
	switch now := time.Now(); {
	case r.skip:
		return provider.Seen{}
	case r.stream != nil:
		return r.stream.End(now, r.header, atEnd)
	default:
		return provider.Body(now, r.header, r.data)
	}
}
