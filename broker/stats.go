package broker

import (
	"slices"
	"time"

	"quotabroker/window"
	"quotabroker/wire"
)

// classStats counts what happened in one class. Counters only rise; what was
// given back is a counter of its own.
type classStats struct {
	inFlight                       int64 // the only one that falls
	asks, grants                   uint64
	grantedTokens, refunded, extra uint64
	abandoned, expired, cancelled  uint64
	vanished                       uint64 // tickets that nobody came back for
	defers, refusals               [wire.NumCauses]uint64
	waits                          histogram
	recent                         [2]window.Spread // this period and the one before, in ms, for the percentiles
}

func (s *classStats) granted(waited time.Duration, c *wire.Cost) {
	s.grants++
	s.grantedTokens += uint64(c.Tokens)
	s.waits.add(waited)
	s.recent[0].Add(int64((waited + time.Millisecond - 1) / time.Millisecond))
}

func (s *classStats) corrected(less, more int64) {
	s.refunded += uint64(less)
	s.extra += uint64(more)
}

// percentilePeriod is how long a wait counts in the percentiles, once to twice.
const percentilePeriod = 5 * time.Minute

// turn begins another period; the one before is kept if it is the last.
func (s *classStats) turn(last bool) {
	s.recent[1] = window.Spread{}
	if last {
		s.recent[1] = s.recent[0]
	}
	s.recent[0] = window.Spread{}
}

// waitBounds are the upper bounds of the wait histogram.
var waitBounds = [...]time.Duration{
	0, 1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6,
	1e9, 2e9, 5e9, 10e9, 20e9, 30e9, 60e9, 120e9, 300e9, 600e9, 1800e9, 3600e9,
}

// histogram counts waits by bound; a wait counts where it first fits.
type histogram struct {
	counts [len(waitBounds) + 1]uint64
	sum    time.Duration
}

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(waitBounds) && d > waitBounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += d
}

// wire returns the cumulative form.
func (h *histogram) wire() wire.Histogram {
	out := wire.Histogram{
		BoundsMS: make([]int64, len(waitBounds)), Counts: make([]uint64, len(waitBounds)), SumMS: uint64(h.sum.Milliseconds()),
	}
	for i, c := range h.counts {
		out.Count += c
		if i < len(waitBounds) {
			out.BoundsMS[i], out.Counts[i] = waitBounds[i].Milliseconds(), out.Count
		}
	}
	return out
}

// topTenants finds the tenants that use most, in bounded memory: the counters of
// the space-saving algorithm (Metwally and others, 2005), which never
// under-estimate a tenant they hold and miss none above 1/topSize of the total.
// They halve every minute.
type topTenants struct {
	rows [topSize]topRow
	used int
}

type topRow struct {
	key    tenantKey
	hash   uint32
	tokens int64
}

const (
	topSize  = 64
	topShown = 20
)

func (t *topTenants) add(key tenantKey, hash uint32, tokens int64) {
	least := 0
	for i := range t.rows[:t.used] {
		r := &t.rows[i]
		if r.hash == hash && r.key == key {
			r.tokens += tokens
			return
		}
		if r.tokens < t.rows[least].tokens {
			least = i
		}
	}
	if t.used < topSize {
		t.rows[t.used] = topRow{key, hash, tokens}
		t.used++
		return
	}
	t.rows[least] = topRow{key, hash, t.rows[least].tokens + tokens}
}

// hash spreads a tenant's identity over 32 bits (FNV-1a).
func (k *tenantKey) hash() uint32 {
	h := uint32(2166136261) ^ uint32(k.source)
	for i := range len(k.name) {
		h = (h ^ uint32(k.name[i])) * 16777619
	}
	return h
}

// age halves what is held for every minute that has passed.
func (t *topTenants) age(minutes int64) {
	kept := t.rows[:0]
	for _, r := range t.rows[:t.used] {
		if r.tokens >>= min(minutes, 62); r.tokens > 0 {
			kept = append(kept, r)
		}
	}
	t.used = len(kept)
	clear(t.rows[t.used:])
}

func (t *topTenants) largest() []topRow {
	rows := slices.Clone(t.rows[:t.used])
	slices.SortFunc(rows, func(a, b topRow) int {
		switch {
		case a.tokens != b.tokens:
			return int(max(min(b.tokens-a.tokens, 1), -1))
		case a.key.name < b.key.name:
			return -1
		case a.key.name > b.key.name:
			return 1
		}
		return int(a.key.source - b.key.source)
	})
	return rows[:min(len(rows), topShown)]
}
