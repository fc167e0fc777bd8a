package mockprovider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// maxBodyBytes bounds a request's body.
const maxBodyBytes = 32 << 20

// exchange is one admitted request and its answer.
type exchange struct {
	server *Server
	ctx    context.Context // ends when the caller leaves or the server must close
	req    *Request
	id     int64
	charge Charge
	begun  time.Duration // when it was admitted, in the server's own time
	answer Answer        // its OutputTokens already cut at the limits
	cut    bool          // OutputTokens was cut
	broken int64         // break off after so many tokens; 0: do not
	sent   int64         // output tokens of each choice that count as produced
	ended  bool          // settled
}

var errCut = errors.New("mockprovider: cut off by a fault")

// metered makes the handler of an endpoint whose requests draw on the limits.
func (s *Server) metered(parse func([]byte) (*Request, *apiError), answer func(*exchange, http.ResponseWriter) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req, bad := s.read(w, r, parse)
		if bad != nil {
			s.count(func(c *Stats) { c.Sent++; c.Invalid++ })
			bad.write(w)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.quit, cancel)()

		fault := s.takeFault()
		if fault.Status != 0 {
			s.count(func(c *Stats) { c.Sent++; c.Failed++ })
			s.fail(ctx, w, fault)
			return
		}
		x := &exchange{server: s, ctx: ctx, req: req, id: s.lastID.Add(1), broken: fault.CutTokens}
		x.decide(fault.Delay)
		if refusal := s.admit(x, w.Header()); refusal != nil {
			s.rateError(req.Model, refusal).write(w)
			return
		}
		err := answer(x, w)
		x.end(err)
		if err != nil {
			panic(http.ErrAbortHandler) // closes the connection: half an answer must not look whole
		}
	}
}

// read takes the request in and checks all that is not a matter of quota.
func (s *Server) read(w http.ResponseWriter, r *http.Request, parse func([]byte) (*Request, *apiError)) (*Request, *apiError) {
	if s.opts.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.opts.Key {
		return nil, wrongKey()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		return nil, badJSON(err)
	}
	req, bad := parse(body)
	if bad != nil {
		return nil, bad
	}
	if len(s.opts.Models) > 0 && !slices.Contains(s.opts.Models, req.Model) {
		return nil, unknownModel(req.Model)
	}
	return req, req.setHeader(r.Header)
}

func (s *Server) fail(ctx context.Context, w http.ResponseWriter, f Fault) {
	if f.Delay > 0 && s.sleepUntil(ctx, s.now()+f.Delay) != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Body) // a caller that has left misses nothing
}

// decide fixes length and pace of the answer.
func (x *exchange) decide(delay time.Duration) {
	x.answer = x.server.opts.Answer(x.req)
	x.answer.FirstToken += delay
	if x.req.outputTokens >= 0 {
		x.answer.OutputTokens = x.req.outputTokens
	}
	bound := x.req.Ask.outputBound() / x.req.choices
	x.cut = x.answer.OutputTokens > bound
	x.answer.OutputTokens = min(max(x.answer.OutputTokens, 0), bound)
}

// admit charges the request and writes the headers of either outcome.
func (s *Server) admit(x *exchange, h http.Header) *Refusal {
	amount := s.opts.Profile.Admission(x.req.Ask)
	s.mu.Lock()
	now, c := s.now(), &s.mu.counts
	c.Sent++
	charge, refusal := s.mu.meter.Admit(now, amount)
	switch {
	case refusal == nil:
		c.Admitted++
		c.ChargedTokens += charge.Tokens
		c.InFlight++
		c.PeakInFlight = max(c.PeakInFlight, c.InFlight)
	case refusal.TooLarge():
		c.TooLarge++
	case refusal.Metric == Requests:
		c.RefusedRequests++
	default:
		c.RefusedTokens++
	}
	if refusal != nil && refusal.Metric == Tokens && s.opts.Profile.CountsRefused {
		s.mu.meter.CountRefused(now)
	}
	tokens, requests := s.mu.meter.Levels(now)
	s.mu.Unlock()

	x.charge, x.begun = charge, now
	h.Set("X-Request-Id", fmt.Sprintf("req_mock_%08d", x.id))
	s.setLevelHeaders(h, tokens, requests)
	if refusal != nil {
		s.setRetryHeaders(h, refusal)
	}
	return refusal
}

// end settles an admitted request, the first time it is called. An answer calls it
// just before the last bytes leave, so that a caller who has them all finds the
// account corrected. Output is what was sent; an answer that is not a stream is
// produced whole, whether its caller waits for it or not.
func (x *exchange) end(err error) {
	if x.ended {
		return
	}
	x.ended = true
	output, s := x.sent*x.req.choices, x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.mu.counts
	c.InFlight--
	if err == nil {
		c.Completed++
	} else {
		c.Aborted++
	}
	c.InputTokens += x.req.Ask.InputTokens
	c.OutputTokens += output
	if s.opts.Profile.Settles {
		c.CorrectedTokens += s.mu.meter.Settle(s.now(), x.charge, x.req.Ask.InputTokens+output)
	}
}

func (s *Server) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.mu.counts)
}

// due is when the first n tokens are produced, in the server's own time; with n = 0
// as with 1, when the first could be.
func (x *exchange) due(n int64) time.Duration {
	at := x.begun + x.answer.FirstToken
	if n > 1 && x.answer.TokensPerSecond > 0 {
		at += time.Duration(float64(n-1) / x.answer.TokensPerSecond * float64(time.Second))
	}
	return at
}

// waitFor waits until the first n tokens are produced.
func (x *exchange) waitFor(n int64) error { return x.server.sleepUntil(x.ctx, x.due(n)) }

// produceWhole waits for an answer that is not streamed.
func (x *exchange) produceWhole() error {
	x.sent = x.answer.OutputTokens
	if x.broken > 0 && x.broken <= x.sent {
		x.sent = x.broken
		return errors.Join(x.waitFor(x.sent), errCut)
	}
	return x.waitFor(x.sent)
}
