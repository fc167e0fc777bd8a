package wire

import "encoding/json"

// Bounds on what a message may hold. They keep memory bounded and hostile
// figures out of the meters; a value outside is a bad_request.
const (
	MaxRequestIDBytes = 128
	MaxTextBytes      = 256           // tenant, kind, model
	MaxTokens         = 1_000_000_000 // one request's tokens, in or out, estimated or used
	MaxDurationMS     = 31_536_000_000
	MaxLimitAmount    = 1_000_000_000_000_000 // a provider's limit or what remains of it; exact in a float64
)

// AcquireRequest asks: may I send this now? See protocol §2. The same type is
// the request of estimate and explain.
type AcquireRequest struct {
	RequestID       string          `json:"request_id,omitempty"`
	Model           string          `json:"model,omitempty"`
	Request         json.RawMessage `json:"request,omitempty"`          // a provider request body; a view of the decoded bytes
	InputTokens     OptInt          `json:"input_tokens,omitzero"`      // instead of Request
	MaxOutputTokens OptInt          `json:"max_output_tokens,omitzero"` // overrides the body's limit
	Tenant          string          `json:"tenant,omitempty"`
	Kind            string          `json:"kind,omitempty"`
	WaitMS          int64           `json:"wait_ms,omitempty"`    // 0: answer at once
	DeadlineMS      OptInt          `json:"deadline_ms,omitzero"` // absent: no bound but the class's
	TTLMS           int64           `json:"ttl_ms,omitempty"`     // 0: the pool's default
	Ticket          TicketID        `json:"ticket,omitzero"`      // from an earlier defer
	Confirm         bool            `json:"confirm,omitempty"`    // the producer will confirm the grant
}

// Cost is what a request is charged, or was: a vector over the metrics a
// provider may limit. Tokens is what counts against a combined token limit.
type Cost struct {
	Requests     int64  `json:"requests"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	Tokens       int64  `json:"tokens"`
	Method       Method `json:"method,omitempty"`
}

// Decision answers an acquire or an explain. Which fields are sent follows from
// Verdict; [AppendDecision] writes exactly those of protocol §2.
type Decision struct {
	Verdict Verdict
	Class   string
	Pool    string
	Cost    Cost

	// Grant.
	Lease    LeaseID
	TTLMS    int64
	Borrowed bool  // the class now holds more than its share on some limit
	WaitedMS int64 // since the first ask
	Epoch    uint64

	// Defer and refuse.
	Cause        Cause
	RetryAfterMS int64 // 0 on a permanent refusal, and then not sent
	Message      string

	// Defer.
	Ticket      TicketID
	EtaMS       int64 // the expected wait, without the max_defer ceiling
	Booked      bool  // a booking (kept against later asks of the class), not an estimate
	Position    int64 // from 1 within the class
	TokensAhead int64
	Limit       string // the limit that binds, "tokens/60s"

	// Refuse.
	LimitTokens int64 // too_large: the largest job the class can be given, in the metric of Limit
}

// SettleRequest says what a granted call really took. See protocol §3.
type SettleRequest struct {
	Lease    LeaseID        `json:"lease"`
	Outcome  Outcome        `json:"outcome"`
	Usage    *Usage         `json:"usage,omitempty"`    // nil: the reservation stands
	Provider *ProviderState `json:"provider,omitempty"` // nil: the response's headers said nothing
}

// Usage is what the provider counted. Input includes cached input, output
// includes reasoning.
type Usage struct {
	InputTokens       int64 `json:"input_tokens"`
	CachedInputTokens int64 `json:"cached_input_tokens,omitempty"`
	CacheWriteTokens  int64 `json:"cache_write_tokens,omitempty"`
	OutputTokens      int64 `json:"output_tokens"`
	ReasoningTokens   int64 `json:"reasoning_tokens,omitempty"`
}

// ProviderState is what a response's headers said, normalised.
type ProviderState struct {
	Status       int64       `json:"status,omitempty"`
	RetryAfterMS OptInt      `json:"retry_after_ms,omitzero"`
	Tokens       *LimitState `json:"tokens,omitempty"`
	InputTokens  *LimitState `json:"input_tokens,omitempty"`
	OutputTokens *LimitState `json:"output_tokens,omitempty"`
	Requests     *LimitState `json:"requests,omitempty"`
}

// LimitState is one metric's limit as the provider reported it.
type LimitState struct {
	Limit     OptInt `json:"limit,omitzero"`
	Remaining OptInt `json:"remaining,omitzero"`
	ResetMS   OptInt `json:"reset_ms,omitzero"`
}

// SettleReply confirms a settlement. DeltaTokens is charged minus reserved.
type SettleReply struct {
	Settled     bool    `json:"settled"`
	Late        bool    `json:"late,omitempty"` // the lease had expired: taken as a correction
	Lease       LeaseID `json:"lease"`
	Charged     Cost    `json:"charged"`
	DeltaTokens int64   `json:"delta_tokens"`
}

// RenewRequest prolongs a lease. TTLMS 0 means the pool's default.
type RenewRequest struct {
	Lease LeaseID `json:"lease"`
	TTLMS int64   `json:"ttl_ms,omitempty"`
}

// RenewReply says how long the lease lasts from now.
type RenewReply struct {
	Lease LeaseID `json:"lease"`
	TTLMS int64   `json:"ttl_ms"`
}

// CancelRequest takes back a waiting request or a lease. Exactly one field is set.
type CancelRequest struct {
	RequestID string   `json:"request_id,omitempty"`
	Ticket    TicketID `json:"ticket,omitzero"`
	Lease     LeaseID  `json:"lease,omitzero"`
}

// CancelReply says whether there was anything to take back.
type CancelReply struct {
	Cancelled bool `json:"cancelled"`
}

// EstimateReply answers an estimate.
type EstimateReply struct {
	Cost       Cost    `json:"cost"`
	ModelKnown bool    `json:"model_known"`
	Encoding   string  `json:"encoding"`
	Learned    Learned `json:"learned"`
}

// Learned is what settlements have taught about a source, kind and model.
// Samples 0 means nothing yet: InputRatio is then 1 and OutputP85 0.
type Learned struct {
	InputRatio float64 `json:"input_ratio"`
	OutputP85  int64   `json:"output_p85"`
	Samples    int64   `json:"samples"`
}
