package service

import (
	"slices"
	"sync/atomic"
	"time"

	"quotabroker/wire"
)

// Counts are what the shell counted since the service was made; what the core
// counts is in the statuses. No number but ReloadFailed ever falls.
type Counts struct {
	Requests  map[wire.Verb]uint64 // messages that arrived
	Errors    map[ErrorKey]uint64  // error replies
	QueueWait Histogram            // from a message's arrival to its decision

	Confirmed     uint64 // grants that their producer confirmed
	Abandoned     uint64 // grants of which NATS said that nobody listens, or that could not be published
	StaleDropped  uint64 // asks whose deadline passed in the broker's own queues
	UnknownModels uint64 // requests whose model the estimator does not know
	NoReply       uint64 // messages without a reply subject, dropped
	Misdirected   uint64 // messages whose reply subject is not the source's to name, dropped
	Unpublished   uint64 // answers that could not be published
	Overflows     uint64 // times that messages came faster than they were read, and some were lost
	Panics        uint64 // bugs that were caught
	Groups        uint64 // groups of decisions whose answers left together
	Decisions     uint64 // what those groups held

	Reloads       uint64 // that were put in force
	ReloadsFailed uint64 // that were refused
	ReloadFailed  bool   // the last one was
}

// ErrorKey is what error replies are counted by.
type ErrorKey struct {
	Verb wire.Verb
	Code wire.Code
}

// Histogram is a cumulative histogram: Counts[i] counts what was at most
// Bounds[i]; Count and Sum cover everything.
type Histogram struct {
	Bounds []time.Duration
	Counts []uint64
	Count  uint64
	Sum    time.Duration
}

// codes are the error codes in the order in which they are counted.
var codes = [...]wire.Code{
	wire.CodeBadRequest, wire.CodeForbidden, wire.CodeUnknownSource, wire.CodeUnknownPool, wire.CodeUnknownLease,
	wire.CodeAlreadySettled, wire.CodePayloadTooLarge, wire.CodeUnavailable, wire.CodeInternal,
}

var verbs = wire.Verbs()

// counters are the live Counts. They are atomic because handlers, loops and
// workers all count; they are not read together, so a snapshot may be off by
// what is under way.
type counters struct {
	requests [8]atomic.Uint64
	errors   [8][len(codes)]atomic.Uint64
	wait     waitCounters

	confirmed, abandoned, stale, unknownModels, noReply, misdirected atomic.Uint64
	unpublished, overflows, panics, groups, decisions                atomic.Uint64
	reloads, reloadsFailed                                           atomic.Uint64
	reloadFailed                                                     atomic.Bool
}

func verbIndex(v wire.Verb) int { return max(0, slices.Index(verbs, v)) }

func (c *counters) request(v wire.Verb) { c.requests[verbIndex(v)].Add(1) }

func (c *counters) failed(v wire.Verb, code wire.Code) {
	i := slices.Index(codes[:], code)
	if i < 0 {
		i = len(codes) - 1
	}
	c.errors[verbIndex(v)][i].Add(1)
}

// queueBounds are the upper bounds of the queue wait. Up to a second they are
// fine: that is where a broker lives that is well.
var queueBounds = [...]time.Duration{
	20 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

type waitCounters struct {
	counts [len(queueBounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

// add counts a wait. A clock that ran backwards counts as none.
func (w *waitCounters) add(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(queueBounds) && d > queueBounds[i] {
		i++
	}
	w.counts[i].Add(1)
	w.sum.Add(int64(d))
}

func (w *waitCounters) snapshot() Histogram {
	h := Histogram{Bounds: queueBounds[:], Counts: make([]uint64, len(queueBounds)), Sum: time.Duration(w.sum.Load())}
	for i := range w.counts {
		h.Count += w.counts[i].Load()
		if i < len(h.Counts) {
			h.Counts[i] = h.Count
		}
	}
	return h
}

// Counts returns what the shell has counted.
func (s *Service) Counts() Counts {
	c := &s.counters
	out := Counts{
		Requests:  map[wire.Verb]uint64{},
		Errors:    map[ErrorKey]uint64{},
		QueueWait: c.wait.snapshot(),
		Confirmed: c.confirmed.Load(), Abandoned: c.abandoned.Load(), StaleDropped: c.stale.Load(),
		UnknownModels: c.unknownModels.Load(), NoReply: c.noReply.Load(), Misdirected: c.misdirected.Load(),
		Unpublished: c.unpublished.Load(), Overflows: c.overflows.Load(), Panics: c.panics.Load(),
		Groups: c.groups.Load(), Decisions: c.decisions.Load(),
		Reloads: c.reloads.Load(), ReloadsFailed: c.reloadsFailed.Load(), ReloadFailed: c.reloadFailed.Load(),
	}
	for i, v := range verbs {
		out.Requests[v] = c.requests[i].Load()
		for k, code := range codes {
			if n := c.errors[i][k].Load(); n > 0 {
				out.Errors[ErrorKey{v, code}] = n
			}
		}
	}
	return out
}
