package window

import "time"

// Span is the shape of a [Sparse] meter: a window cut into buckets.
type Span struct {
	width   int64
	buckets int64
}

// NewSpan returns a window of at least span in the given number of buckets.
func NewSpan(span time.Duration, buckets int) Span {
	return Span{width: (int64(span) + int64(buckets) - 1) / int64(buckets), buckets: int64(buckets)}
}

// Sparse is a rolling-window meter of one row that holds only the buckets in
// which something was charged: an idle one holds nothing. It keeps the same
// invariant as [Ring]: a charge never leaves early. Every call takes the shape,
// so that a million meters share one.
//
// The zero Sparse is empty. It is not safe for concurrent use.
type Sparse struct {
	cells []sparseCell // oldest first
	total int64
}

type sparseCell struct {
	bucket int64
	n      int64
}

// Advance drops what has left the window.
func (s *Sparse) Advance(w Span, now time.Duration) {
	oldest := int64(now)/w.width - w.buckets
	i := 0
	for ; i < len(s.cells) && s.cells[i].bucket < oldest; i++ {
		s.total -= s.cells[i].n
	}
	if i > 0 {
		s.cells = append(s.cells[:0], s.cells[i:]...)
	}
}

// Charge counts n now. Advance must have been called for now.
func (s *Sparse) Charge(w Span, now time.Duration, n int64) {
	if n == 0 {
		return
	}
	s.total += n
	bucket := int64(now) / w.width
	if last := len(s.cells) - 1; last >= 0 && s.cells[last].bucket >= bucket {
		s.cells[last].n += n
		return
	}
	s.cells = append(s.cells, sparseCell{bucket, n})
}

// Refund gives back up to n of what was charged at the given time and returns how
// much that was.
func (s *Sparse) Refund(w Span, charged time.Duration, n int64) int64 {
	bucket := int64(charged) / w.width
	for i := range s.cells {
		if c := &s.cells[i]; c.bucket == bucket {
			n = min(n, c.n)
			c.n -= n
			s.total -= n
			return n
		}
	}
	return 0
}

// Total returns what the window holds, as of the last Advance.
func (s *Sparse) Total() int64 { return s.total }

// FreeAt returns the first moment at which n of quota is free if nothing more is
// charged; for n over the quota, a whole window more for each quota that is missing.
func (s *Sparse) FreeAt(w Span, now time.Duration, quota, n int64) time.Duration {
	total := s.total
	if total+n <= quota {
		return now
	}
	at := now
	for _, c := range s.cells {
		total -= c.n
		at = time.Duration((c.bucket + 1 + w.buckets) * w.width)
		if total+n <= quota {
			return at
		}
	}
	windows := (n - quota + max(quota, 1) - 1) / max(quota, 1)
	return at + time.Duration(w.width*w.buckets*min(windows, 1_000_000))
}
