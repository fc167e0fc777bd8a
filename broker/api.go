package broker

import (
	"time"

	"quotabroker/wire"
)

// Ask is an acquire with its cost already estimated.
type Ask struct {
	To        uint64 // what the answer is addressed to: echoed in [Effect.To]
	Source    string // where the work entered; its class follows from it
	RequestID string // idempotency key within the source; "" has none
	Tenant    string // whose work it is, within the source
	Cost      wire.Cost
	Wait      time.Duration // how long the answer may be held for a grant; 0: answer at once
	Deadline  time.Duration // how long the work stays useful; negative: no bound
	TTL       time.Duration // how long the lease lasts without renewal; 0: the pool's default
	Ticket    wire.TicketID // from an earlier deferral; zero: a new ask
	Confirm   bool          // the producer will confirm the grant, or it is taken back
}

// Effect is something the shell must do: send the decision to whoever asked.
type Effect struct {
	To       uint64
	Decision wire.Decision
	Confirm  bool // the grant must be confirmed: give its reply a reply subject
}
