package mockprovider

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Stats is what happened since the server began. Every request to a metered
// endpoint is in exactly one of Admitted, RefusedTokens, RefusedRequests, TooLarge,
// Invalid and Failed. Of those admitted, one that is no longer under way is in
// Completed or Aborted.
type Stats struct {
	Sent            int64 `json:"sent"` // requests to metered endpoints
	Admitted        int64 `json:"admitted"`
	RefusedTokens   int64 `json:"refused_tokens"`   // 429 on tokens per minute, with a wait
	RefusedRequests int64 `json:"refused_requests"` // 429 on requests per minute
	TooLarge        int64 `json:"too_large"`        // 429 without a wait
	Invalid         int64 `json:"invalid"`          // 4xx: not metered
	Failed          int64 `json:"failed"`           // answered by a Fault: not metered
	Completed       int64 `json:"completed"`
	Aborted         int64 `json:"aborted"` // the caller left, or a Fault cut it off
	Faulted         int64 `json:"faulted"` // requests that a Fault was played on, of any kind
	InFlight        int64 `json:"in_flight"`
	PeakInFlight    int64 `json:"peak_in_flight"`

	ChargedTokens   int64 `json:"charged_tokens"`   // at admission
	CorrectedTokens int64 `json:"corrected_tokens"` // by settling: below 0 what was given back
	InputTokens     int64 `json:"input_tokens"`     // real usage, as answered
	OutputTokens    int64 `json:"output_tokens"`

	Limits         Limits        `json:"limits"`
	WindowTokens   int64         `json:"window_tokens"`   // what stands charged in the last 60 s
	WindowRequests int64         `json:"window_requests"` // of the server's own time
	Peak           Peak          `json:"peak"`            // the highest these two ever were
	Now            time.Duration `json:"now_ns"`          // the server's own time since it began
}

// Stats returns the counters and the state of the meter.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.mu.counts
	st.Now = s.now()
	st.WindowTokens, st.WindowRequests, st.Peak = s.mu.meter.Rolling(st.Now)
	tokens, requests := s.mu.meter.Levels(st.Now)
	st.Limits = Limits{TokensPerMinute: tokens.LimitPerMinute, RequestsPerMinute: requests.LimitPerMinute}
	return st
}

// SetLimits changes the account's limits from now on. What is used stays used.
func (s *Server) SetLimits(l Limits) error {
	if err := l.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.meter.SetLimits(s.now(), l)
	return nil
}

// newRoutes lists every endpoint.
func (s *Server) newRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.metered(s.parseChat, (*exchange).answerChat))
	mux.HandleFunc("POST /v1/responses", s.metered(s.parseResponses, (*exchange).answerResponses))
	mux.HandleFunc("POST /v1/embeddings", s.metered(s.parseEmbeddings, (*exchange).answerEmbeddings))
	mux.HandleFunc("GET /v1/models", s.handleModels)
	mux.HandleFunc("GET /v1/models/{model}", s.handleModel)
	mux.HandleFunc("GET /mock/stats", s.handleStats)
	mux.HandleFunc("PUT /mock/limits", s.handleLimits)
	mux.HandleFunc("POST /mock/faults", s.handleInject)
	mux.HandleFunc("DELETE /mock/faults", s.handleClearFaults)
	return mux
}

func (s *Server) handleStats(w http.ResponseWriter, _ *http.Request) {
	_ = writeJSON(w, http.StatusOK, s.Stats())
}

func (s *Server) handleLimits(w http.ResponseWriter, r *http.Request) {
	var l Limits
	if err := readAdmin(r, &l); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.SetLimits(l); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// handleInject takes a Fault, or {"kind": …} for one that has a name.
func (s *Server) handleInject(w http.ResponseWriter, r *http.Request) {
	var f struct {
		Kind string `json:"kind"`
		Fault
	}
	if err := readAdmin(r, &f); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if f.Kind != "" {
		named, ok := faultsByKind[f.Kind]
		if !ok {
			http.Error(w, fmt.Sprintf("no fault of kind %q", f.Kind), http.StatusBadRequest)
			return
		}
		times := f.Times
		f.Fault = named()
		f.Times = times
	}
	s.Inject(f.Fault)
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) handleClearFaults(w http.ResponseWriter, _ *http.Request) {
	s.ClearFaults()
	w.WriteHeader(http.StatusNoContent)
}

func readAdmin(r *http.Request, v any) error {
	d := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
