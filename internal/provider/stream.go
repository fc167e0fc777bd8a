package provider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
)

// Stream reads server-sent events as they arrive, in pieces cut anywhere. It keeps
// no more of them than the event that has begun, up to MaxEvent. The zero Stream is
// ready; it belongs to one goroutine at a time.
type Stream struct {
	tale tale

	line   []byte // begun, not ended
	data   []byte // of the event that has begun: its data lines, each ended by \n
	name   bool   // the event is named "error"
	over   bool   // the line, or the event's data, was too long to be kept
	midway bool   // the line that has begun is part of an event that is over
	cr     bool   // the last byte was a \r, of which a \n may be the other half
}

// Write takes the next piece. It never fails.
func (s *Stream) Write(p []byte) (int, error) {
	n := len(p)
	if s.cr && n > 0 {
		s.cr = false
		if p[0] == '\n' {
			p = p[1:]
		}
	}
	for {
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			break
		}
		s.keep(p[:i])
		s.endLine()
		if p[i] == '\r' {
			if i+1 == len(p) {
				s.cr = true
			} else if p[i+1] == '\n' {
				i++
			}
		}
		p = p[i+1:]
	}
	s.keep(p)
	return n, nil
}

// End says what the stream has told; eof that it was read to its end without an
// error. now is when that was, h the response's header. The stream is not to be
// written to afterwards.
//
// An answer that neither said that it was complete nor was read to its end is not
// Ended, so that its usage is not Final.
func (s *Stream) End(now time.Time, h http.Header, eof bool) Seen {
	if len(s.line) > 0 {
		s.endLine() // it lacks its line break
	}
	s.endEvent()
	s.tale.ended = s.tale.ended || eof
	return s.tale.seen(now, h)
}

// keep keeps a piece of a line, unless it is too long.
func (s *Stream) keep(p []byte) {
	if s.midway || len(s.line)+len(p) > MaxEvent {
		s.line, s.midway, s.over = nil, true, true
		return
	}
	s.line = append(s.line, p...)
}

// endLine takes the line that has ended. Comments, ids and retry times say nothing.
func (s *Stream) endLine() {
	line := s.line
	s.line = s.line[:0]
	if s.midway {
		s.midway = false
		return
	}
	if len(line) == 0 {
		s.endEvent()
		return
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		s.name = string(value) == "error"
	case "data":
		if s.over || len(s.data)+len(value) >= MaxEvent {
			s.data, s.over = nil, true
			return
		}
		s.data = append(append(s.data, value...), '\n')
	}
}

// endEvent takes the event that has ended.
func (s *Stream) endEvent() {
	data, name, over := bytes.TrimSpace(s.data), s.name, s.over
	s.data, s.name, s.over = s.data[:0], false, false
	switch {
	case over || len(data) == 0:
		if name {
			s.tale.fail(nil)
		}
	case name:
		s.tale.fail(data)
	case json.Valid(data):
		s.tale.event(data)
	default: // [DONE], or events that nobody has parted by an empty line
		for line := range bytes.Lines(data) {
			line = bytes.TrimSpace(line)
			if string(line) == "[DONE]" {
				s.tale.ended = true
				continue
			}
			s.tale.event(line)
		}
	}
}
