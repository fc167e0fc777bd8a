package mockprovider

import (
	"math"
	"math/bits"
	"time"
)

// unitsPerOne is how finely a bucket counts: one token (or request) is 60 000 000
// units, so that a limit of L per minute refills exactly L units in a
// microsecond and no remainder is ever lost.
const unitsPerOne = 60_000_000

// Bounds that keep the arithmetic of a bucket inside an int64.
const (
	maxLimitPerMinute = 10_000_000_000
	maxAmount         = 1_000_000_000 // of one charge; more is taken as this
	maxUsedUnits      = math.MaxInt64 / 2
)

// bucket is one limit: depth limitPerMinute, refilled at limitPerMinute per 60 s.
// It holds what is used up, which falls to 0 as the bucket fills. The zero bucket
// has no limit: all fits, nothing is counted.
type bucket struct {
	limitPerMinute int64
	usedUnits      int64 // above the depth only after a debt
	atUS           int64 // when usedUnits was true, µs since the origin
}

// advance refills the bucket up to now. A now before the latest one changes nothing.
func (b *bucket) advance(now time.Duration) {
	nowUS := now.Microseconds()
	elapsedUS := nowUS - b.atUS
	if elapsedUS <= 0 {
		return
	}
	b.atUS = nowUS
	if b.limitPerMinute == 0 || elapsedUS > b.usedUnits/b.limitPerMinute {
		b.usedUnits = 0
		return
	}
	b.usedUnits -= elapsedUS * b.limitPerMinute
}

// fits reports whether n more fit now.
func (b *bucket) fits(n int64) bool {
	return b.limitPerMinute == 0 || b.usedUnits+n*unitsPerOne <= b.limitPerMinute*unitsPerOne
}

// add uses n more (a negative n gives back, never below empty). It does not ask
// whether they fit.
func (b *bucket) add(n int64) {
	if b.limitPerMinute == 0 {
		return
	}
	b.usedUnits = min(max(b.usedUnits+n*unitsPerOne, 0), maxUsedUnits)
}

// used returns what is used, rounded up to a whole one.
func (b *bucket) used() int64 { return (b.usedUnits + unitsPerOne - 1) / unitsPerOne }

// remaining returns what would fit now, rounded down to a whole one.
func (b *bucket) remaining() int64 {
	return max(b.limitPerMinute*unitsPerOne-b.usedUnits, 0) / unitsPerOne
}

// full returns how long it takes until nothing is used, rounded up to a µs.
func (b *bucket) full() time.Duration {
	if b.limitPerMinute == 0 {
		return 0
	}
	us := b.usedUnits / b.limitPerMinute
	if b.usedUnits%b.limitPerMinute != 0 {
		us++
	}
	return time.Duration(us) * time.Microsecond
}

// refillTime returns how long a limit takes to refill n: n / (limit/60 s), rounded
// up to a nanosecond.
func refillTime(n, limitPerMinute int64) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(time.Minute))
	lo, carry := bits.Add64(lo, uint64(limitPerMinute-1), 0)
	hi += carry
	if hi >= uint64(limitPerMinute) {
		return math.MaxInt64
	}
	ns, _ := bits.Div64(hi, lo, uint64(limitPerMinute))
	return time.Duration(min(ns, math.MaxInt64))
}
