package window

import (
	"math/bits"
	"time"
)

// Line is the level of a leaky bucket that everything charged is poured into and
// that drains at a rate which may change at any moment.
//
// The level is kept in tokens, not in time, so that a changed rate acts at once,
// and the fraction of a token that has drained is kept, so that a line that is
// read every microsecond drains as fast as one that is read once a minute.
//
// The zero Line is empty at time 0. A Line is not safe for concurrent use.
type Line struct {
	level int64
	at    time.Duration
	rem   uint64 // what has drained beyond level, in 1/span tokens; < span
}

// Level returns the level as of the last [Line.Drain].
func (l *Line) Level() int64 { return l.level }

// Drain lets the line leak until now at perSpan tokens per span (positive).
func (l *Line) Drain(now time.Duration, perSpan int64, span time.Duration) {
	if now <= l.at {
		return
	}
	dt := uint64(now - l.at)
	l.at = now
	if l.level == 0 || perSpan <= 0 {
		return
	}
	hi, lo := bits.Mul64(uint64(perSpan), dt)
	lo, carry := bits.Add64(lo, l.rem, 0)
	hi += carry
	if hi >= uint64(span) { // more than 2^64 tokens
		l.level, l.rem = 0, 0
		return
	}
	drained, rem := bits.Div64(hi, lo, uint64(span))
	if drained >= uint64(l.level) {
		l.level, l.rem = 0, 0
		return
	}
	l.level -= int64(drained)
	l.rem = rem
}

// Pour raises the level by n, to ceiling at most.
func (l *Line) Pour(n, ceiling int64) { l.level = max(l.level, min(l.level+n, ceiling)) }

// Take lowers the level by n, to 0 at least.
func (l *Line) Take(n int64) {
	if l.level -= n; l.level <= 0 {
		l.level, l.rem = 0, 0
	}
}

// Leaks returns how long from the last [Line.Drain] it takes until n more tokens
// have leaked at perSpan tokens per span, exact to the nanosecond; 0 for n <= 0.
// At a rate of 0 it returns span: the caller looks again then.
func (l *Line) Leaks(n, perSpan int64, span time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	if perSpan <= 0 {
		return span
	}
	hi, lo := bits.Mul64(uint64(n), uint64(span))
	lo, borrow := bits.Sub64(lo, l.rem, 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(perSpan)-1, 0)
	hi += carry
	if hi >= uint64(perSpan) {
		return forever
	}
	dt, _ := bits.Div64(hi, lo, uint64(perSpan))
	return time.Duration(min(dt, uint64(forever)))
}

// forever is longer than any wait and still has room for sums.
const forever = 1 << 60 * time.Nanosecond

// Scale multiplies the level by num/den, for a line that goes on under another
// quota. den must be positive where the level is.
func (l *Line) Scale(num, den int64) {
	if den <= 0 || num == den {
		return
	}
	hi, lo := bits.Mul64(uint64(l.level), uint64(num))
	if hi >= uint64(den) {
		return
	}
	q, _ := bits.Div64(hi, lo, uint64(den))
	l.level, l.rem = int64(q), 0
}
