package mockprovider

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// eventStream writes server-sent events. It gathers what is due now and sends it
// with one flush, so that an answer without a pace costs one write.
type eventStream struct {
	x       *exchange
	w       http.ResponseWriter
	flusher *http.ResponseController
	pending bytes.Buffer
}

// flushBytes is how much may gather before it is sent, due or not.
const flushBytes = 32 << 10

func newEventStream(x *exchange, w http.ResponseWriter) *eventStream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	return &eventStream{x: x, w: w, flusher: http.NewResponseController(w)}
}

// data adds an event of data alone, put together from parts of one line.
func (s *eventStream) data(parts ...string) {
	s.pending.WriteString("data: ")
	for _, p := range parts {
		s.pending.WriteString(p)
	}
	s.pending.WriteString("\n\n")
}

// event adds an event with a name.
func (s *eventStream) event(name string, parts ...string) {
	s.pending.WriteString("event: " + name + "\n")
	s.data(parts...)
}

func (s *eventStream) flush() error {
	if s.pending.Len() == 0 {
		return nil
	}
	if _, err := s.w.Write(s.pending.Bytes()); err != nil {
		return err
	}
	s.pending.Reset()
	return s.flusher.Flush()
}

// tokens adds every token of the answer at its time, and keeps count of them in the
// exchange. It ends early when the caller leaves or a fault cuts the answer.
func (s *eventStream) tokens(add func(token string)) error {
	x := s.x
	for i := range x.answer.OutputTokens {
		if x.due(i+1) > x.server.now() || s.pending.Len() > flushBytes {
			if err := s.flush(); err != nil {
				return err
			}
			if err := x.waitFor(i + 1); err != nil {
				return err
			}
		}
		add(fillerToken(i))
		x.sent++
		if x.broken > 0 && x.sent >= x.broken {
			// The caller gets what was sent so far; that it may have left does not matter.
			_ = s.flush()
			return errCut
		}
	}
	return nil
}

// mustJSON encodes a value that cannot fail to encode: strings and numbers.
func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
