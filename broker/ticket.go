package broker

import (
	"math"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// ticket is a waiting place. It stands in the tree of its tier until it is
// granted, refused, cancelled or given up, except while it is parked.
type ticket struct {
	n         uint64 // the number in its id
	class     int32
	tier      int32
	source    int32
	tenant    int32
	requestID string
	cost      wire.Cost
	need      classes.Vec
	weight    int64 // size for fairness between tenants

	born     time.Duration // when it first asked
	due      time.Duration // when it was told to come back
	deadline time.Duration // when the work is of no more use; never for no bound
	since    time.Duration // when it was first tried as head
	tried    bool          // since is set
	booked   bool
	asks     int64

	holder    uint64 // who waits for the answer; 0: nobody, it was deferred
	hold      bool
	holdUntil time.Duration
	ttl       time.Duration
	confirm   bool

	late   bool // due, not come back: weight 0, place kept
	parked bool // its tenant is at its cap: out of the tree, in the tenant's chain
	chain  int32

	tag, seq int64 // its place in the tier's order
	key      rank  // among the tiers

	left, right, parent int32
	prio                uint32
	below               sums // of the subtree
}

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// rank is the static form of an effective priority between tiers: own is enqueued +
// base × ageing, and key the same, or as much more as keeps a newcomer behind a
// booking. Those that one booking holds up keep their own order behind it.
type rank struct{ key, own int64 }

func (r rank) less(o rank) bool { return r.key < o.key || r.key == o.key && r.own < o.own }

func maxRank(r, o rank) rank {
	if r.less(o) {
		return o
	}
	return r
}

// noKey is the key of no ticket: smaller than every key.
const noKey = math.MinInt64

var noRank = rank{noKey, noKey}

// sums is what a stretch of a tier's order holds. Late tickets count nothing.
type sums struct {
	need  classes.Vec
	count int32
	held  int32
	key   rank // the largest in it, noRank where there is none
}

func (s *sums) add(o *sums) {
	for i := range s.need {
		s.need[i] += o.need[i]
	}
	s.count += o.count
	s.held += o.held
	s.key = maxRank(s.key, o.key)
}

func (s *sums) addTicket(t *ticket) {
	if t.late {
		return
	}
	for i := range s.need {
		s.need[i] += t.need[i]
	}
	s.count++
	if t.hold {
		s.held++
	}
	s.key = maxRank(s.key, t.key)
}
