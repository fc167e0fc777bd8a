package wire

// Status is a pool's snapshot (protocol §5): what top, the dashboard and the
// metrics show.
type Status struct {
	Pool       string         `json:"pool"`
	Version    string         `json:"version"`
	ConfigHash string         `json:"config_hash"`
	Leader     string         `json:"leader"`
	Epoch      uint64         `json:"epoch"`
	UptimeMS   int64          `json:"uptime_ms"`
	Draining   bool           `json:"draining,omitempty"`
	Limits     []LimitStatus  `json:"limits"`
	Classes    []ClassStatus  `json:"classes"`
	Tenants    []TenantStatus `json:"tenants"` // the largest by use, at most 20
	Leases     LeaseStatus    `json:"leases"`
	Provider   ProviderStatus `json:"provider"`
}

// LimitStatus is one limit of the pool. The amounts are in the limit's metric.
type LimitStatus struct {
	Limit      string `json:"limit"`        // "tokens/60s"; "leases" for the concurrency cap
	Configured int64  `json:"configured"`   // as in the file
	Quota      int64  `json:"quota"`        // what is given out: configured less margin
	Used       int64  `json:"used"`         // charged within the window
	Level      int64  `json:"level"`        // the pacing line
	LeakPerMin int64  `json:"leak_per_min"` // what the line drains per minute
	WindowMS   int64  `json:"window_ms"`    // span and guard; 0 for the concurrency cap
}

// ClassStatus is one class. Amounts[i] belongs to the pool's Limits[i].
type ClassStatus struct {
	Class           string            `json:"class"`
	Amounts         []ClassAmounts    `json:"limits"`
	WaitingRequests int64             `json:"waiting_requests"`
	WaitingTokens   int64             `json:"waiting_tokens"`
	ParkedRequests  int64             `json:"parked_requests"` // waiting for their tenant's own leases to end
	LateRequests    int64             `json:"late_requests"`   // deferred, due, and not come back
	OldestWaitMS    int64             `json:"oldest_wait_ms"`
	WaitP50MS       int64             `json:"wait_p50_ms"`
	WaitP95MS       int64             `json:"wait_p95_ms"`
	WaitP99MS       int64             `json:"wait_p99_ms"`
	LeasesInFlight  int64             `json:"leases_in_flight"`
	Asks            uint64            `json:"asks"`
	Grants          uint64            `json:"grants"`
	GrantedTokens   uint64            `json:"granted_tokens"`
	RefundedTokens  uint64            `json:"refunded_tokens"`
	OverrunTokens   uint64            `json:"overrun_tokens"`
	Abandoned       uint64            `json:"abandoned"`
	Expired         uint64            `json:"expired"`
	Cancelled       uint64            `json:"cancelled"`
	Vanished        uint64            `json:"vanished"` // tickets that nobody came back for
	Defers          map[string]uint64 `json:"defers"`   // by cause
	Refusals        map[string]uint64 `json:"refusals"` // by cause
	WaitHistogram   Histogram         `json:"wait_histogram"`
}

// ClassAmounts is a class's standing on one limit, in the limit's metric.
type ClassAmounts struct {
	Limit     string `json:"limit"`
	Used      int64  `json:"used"`
	Share     int64  `json:"share"`
	Floor     int64  `json:"floor"`
	Reserve   int64  `json:"reserve"`   // M: the part of the floor that is never lent, as learned
	Protected int64  `json:"protected"` // P: what borrowers may not touch, in use included
	Borrowed  int64  `json:"borrowed"`  // used above the share
	Lent      int64  `json:"lent"`      // of the unused share, what others are using
	Waiting   int64  `json:"waiting"`   // wanted by waiting requests that are not late or parked
	Largest   int64  `json:"largest"`   // X: the largest job the class can ever be given
}

// Histogram is a cumulative histogram of waits before a grant. Counts[i] counts
// waits of at most BoundsMS[i]; Count and SumMS cover all of them.
type Histogram struct {
	BoundsMS []int64  `json:"bounds_ms"`
	Counts   []uint64 `json:"counts"`
	Count    uint64   `json:"count"`
	SumMS    uint64   `json:"sum_ms"`
}

// TenantStatus is one of the largest tenants by recent use. Tokens is an upper
// estimate that halves as windows pass; it is for reading, not for billing.
type TenantStatus struct {
	Tenant         string `json:"tenant"`
	Source         string `json:"source"`
	Tokens         int64  `json:"tokens"`
	LeasesInFlight int64  `json:"leases_in_flight"`
	Parked         int64  `json:"parked"`
}

// LeaseStatus counts leases.
type LeaseStatus struct {
	InFlight    int64 `json:"in_flight"`
	Concurrency int64 `json:"concurrency"` // 0: no cap
	Unconfirmed int64 `json:"unconfirmed"`
	Remembered  int64 `json:"remembered"` // ended, kept for late settlements
}

// ProviderStatus is what the broker believes about the account.
type ProviderStatus struct {
	State       string `json:"state"` // "ok", "paused", "probing", "exhausted"
	PausedForMS int64  `json:"paused_for_ms,omitempty"`
	Throttled   uint64 `json:"throttled"`
	Overloaded  uint64 `json:"overloaded"`
	Exhausted   uint64 `json:"exhausted"`
}

// Explanation answers an explain: what acquire would say now, and the sums
// behind it.
type Explanation struct {
	Decision Decision       `json:"decision"`
	Why      string         `json:"why"` // one sentence an operator can read out
	Limits   []LimitStatus  `json:"limits"`
	Classes  []ClassExplain `json:"classes"`
}

// ClassExplain is a class's part of an explanation.
type ClassExplain struct {
	Class           string         `json:"class"`
	Amounts         []ClassAmounts `json:"limits"`
	WaitingRequests int64          `json:"waiting_requests"`
}
