package mockprovider

import "time"

// Fault is a failure that the server plays instead of, or on top of, its normal
// answer. With a Status the request is answered so, and is not metered. Without
// one it is metered and answered as ever, but later by Delay, and cut off after
// CutTokens.
type Fault struct {
	Status int               `json:"status,omitempty"` // 0: the normal answer
	Header map[string]string `json:"header,omitempty"` // with Status; nothing else is sent but the type
	Body   string            `json:"body,omitempty"`   // with Status
	Delay  time.Duration     `json:"delay_ns,omitempty"`
	// CutTokens above 0 closes the connection once that many tokens have been produced:
	// sent, in a stream; nothing was sent otherwise. An embedding is never cut.
	CutTokens int64 `json:"cut_tokens,omitempty"`
	// Times is how many requests it spoils; 0: all, until ClearFaults.
	Times int `json:"times,omitempty"`
}

// BareRateLimit is a 429 that says nothing of limits or waits, as was seen on the
// Responses API.
func BareRateLimit() Fault {
	return Fault{Status: 429, Body: `{"error":{"message":"Rate limit reached.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`}
}

// Unavailable is OpenAI's 503.
func Unavailable() Fault {
	return Fault{Status: 503, Body: `{"error":{"message":"The engine is currently overloaded, please try again later.","type":"server_error","param":null,"code":null}}`}
}

// Overloaded is the 529 of the Anthropic API.
func Overloaded() Fault {
	return Fault{Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}
}

// InsufficientQuota is the 429 that no wait helps against: the money is spent.
func InsufficientQuota() Fault {
	return Fault{Status: 429, Body: `{"error":{"message":"You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`}
}

// Slow makes answers begin later, by a delay in the server's own time.
func Slow(delay time.Duration) Fault { return Fault{Delay: delay} }

// Cut breaks off answers after so many output tokens, at least 1.
func Cut(tokens int64) Fault { return Fault{CutTokens: max(tokens, 1)} }

// faultsByKind names the faults that need no figure, for the admin endpoint.
var faultsByKind = map[string]func() Fault{
	"bare_rate_limit":    BareRateLimit,
	"unavailable":        Unavailable,
	"overloaded":         Overloaded,
	"insufficient_quota": InsufficientQuota,
}

// Inject plays a fault on the requests to come, f.Times of them. Several faults are
// played one after the other, in the order they were injected.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.faults = append(s.mu.faults, f)
}

// ClearFaults ends all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.faults = nil
}

// takeFault returns the fault of this request; the zero Fault if there is none.
func (s *Server) takeFault() Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.faults) == 0 {
		return Fault{}
	}
	s.mu.counts.Faulted++
	f := &s.mu.faults[0]
	taken := *f
	if f.Times > 0 {
		if f.Times--; f.Times == 0 {
			s.mu.faults = s.mu.faults[1:]
		}
	}
	return taken
}
