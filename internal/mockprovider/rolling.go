package mockprovider

import "time"

// rollingSpan is the length of the window that peaks are measured over.
const rollingSpan = time.Minute

// rolling is the exact list of what was charged in the last 60 s, (now−60 s, now],
// and the highest sum that list ever had. The zero rolling is ready to use.
type rolling struct {
	ring     []entry // length a power of two
	first    uint64  // sequence number of the oldest entry kept
	next     uint64  // sequence number of the next entry
	tokens   int64   // sum of the entries kept
	requests int64
	peak     Peak
}

// entry is one charge; requests is 0 for a correction.
type entry struct {
	at       time.Duration
	tokens   int64
	requests int64
}

// Peak is the most that was charged in any rolling minute so far: for every
// moment t, the charges made in (t−60 s, t], as they stood at t. A reservation
// counts in full until it is corrected.
type Peak struct {
	Tokens   int64         `json:"tokens"`
	TokensAt time.Duration `json:"tokens_at_ns"` // end of the minute of Tokens, in the meter's time
	Requests int64         `json:"requests"`
}

// expire drops what is 60 s old or older.
func (r *rolling) expire(now time.Duration) {
	for r.first < r.next {
		e := &r.ring[r.first&uint64(len(r.ring)-1)]
		if e.at > now-rollingSpan {
			return
		}
		r.tokens -= e.tokens
		r.requests -= e.requests
		r.first++
	}
}

// add appends a charge and returns its sequence number.
func (r *rolling) add(e entry) uint64 {
	if r.next-r.first == uint64(len(r.ring)) {
		r.grow()
	}
	seq := r.next
	r.ring[seq&uint64(len(r.ring)-1)] = e
	r.next++
	r.tokens += e.tokens
	r.requests += e.requests
	if r.tokens > r.peak.Tokens {
		r.peak.Tokens, r.peak.TokensAt = r.tokens, e.at
	}
	r.peak.Requests = max(r.peak.Requests, r.requests)
	return seq
}

// giveBack lowers the charge seq by tokens, if it is still in the list, and
// reports whether it was.
func (r *rolling) giveBack(seq uint64, tokens int64) bool {
	if seq < r.first {
		return false
	}
	r.ring[seq&uint64(len(r.ring)-1)].tokens -= tokens
	r.tokens -= tokens
	return true
}

// grow doubles the ring.
func (r *rolling) grow() {
	ring := make([]entry, max(64, 2*len(r.ring)))
	for seq := r.first; seq < r.next; seq++ {
		ring[seq&uint64(len(ring)-1)] = r.ring[seq&uint64(len(r.ring)-1)]
	}
	r.ring = ring
}
