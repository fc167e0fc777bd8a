package classes

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"quotabroker/window"
)

// naive is the rule for one limit, written down once more from its description,
// in the plainest way: an exact list of charges that is summed at every question,
// and numbers of any size where the rule has scaled integers. It shares no arithmetic with
// the rule but the forecast rates, which are measured, not decided, and the factor by
// which a reserve falls in a bucket.
type naive struct {
	table  []Class
	quota  int64
	window time.Duration
	bucket time.Duration
	now    time.Duration

	list     []naiveCharge
	share    []int64
	floor    []int64
	exact    []int64 // M in 1/2^16 tokens
	risen    []int64 // what it was above least when it last rose
	age      []int64 // in buckets, since then
	reserve  []int64 // M
	least    []int64 // what M falls to
	fall     *window.Decay
	level    *big.Int // L, in tokens·ns: exact
	unmet    int64    // H as of the last event
	demand   []Demand
	forecast func(class int, t time.Duration) int64 // r·t
}

type naiveCharge struct {
	at    time.Duration
	class int
	n     int64
}

// leaves is 4.1: a charge made in bucket b leaves when now >= (b+1)·w + W.
func (m *naive) leaves(at time.Duration) time.Duration {
	return (at/m.bucket+1)*m.bucket + m.window
}

// usedAt returns u of each class and U at a moment, if nothing more is charged.
func (m *naive) usedAt(at time.Duration) (u []int64, total int64) {
	u = make([]int64, len(m.table))
	for _, c := range m.list {
		if at < m.leaves(c.at) {
			u[c.class] += c.n
			total += c.n
		}
	}
	return u, total
}

// advance lets time pass: to each boundary the line drains at the rate that held
// until it, there charges leave and reserves fall, and the rate is another one.
func (m *naive) advance(now time.Duration) {
	for at := (m.now/m.bucket + 1) * m.bucket; at <= now; at += m.bucket {
		m.drain(at)
		for e := range m.exact {
			m.age[e]++
			m.exact[e] = m.least[e]<<16 + m.fall.Apply(m.risen[e], m.age[e])
			m.reserve[e] = m.exact[e] >> 16
		}
		m.measure()
	}
	m.drain(now)
	m.list = slices.DeleteFunc(m.list, func(c naiveCharge) bool { return now >= m.leaves(c.at) })
}

func (m *naive) drain(now time.Duration) {
	m.level.Sub(m.level, m.leaked(max(0, now-m.now)))
	if m.level.Sign() < 0 {
		m.level.SetInt64(0)
	}
	m.now = max(m.now, now)
}

// leaked returns R·dt with R = (Q - H)/W, in tokens·ns.
func (m *naive) leaked(dt time.Duration) *big.Int { return product(m.quota-m.unmet, int64(dt)) }

// tokens returns a whole number of tokens in tokens·ns.
func (m *naive) tokens(n int64) *big.Int { return product(n, int64(m.window)) }

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// measure recomputes H after something changed.
func (m *naive) measure() {
	u, _ := m.usedAt(m.now)
	m.unmet = 0
	for e := range m.table {
		m.unmet += max(0, min(m.reserve[e], m.floor[e]-u[e]))
	}
}

func (m *naive) charge(c int, n int64) {
	m.list = append(m.list, naiveCharge{m.now, c, n})
	// L = min(L + x, Q): what is above Q already stays, and the fraction is kept.
	before := m.shown()
	m.level.Add(m.level, m.tokens(max(before, min(before+n, m.quota))-before))
	m.measure()
}

// shown is L as a whole number, rounded up.
func (m *naive) shown() int64 {
	n := new(big.Int).Add(m.level, big.NewInt(int64(m.window)-1))
	return n.Div(n, big.NewInt(int64(m.window))).Int64()
}

// refund takes back from the original bucket, as far as that still holds it, and
// off L.
func (m *naive) refund(c int, at time.Duration, n int64) {
	var back int64
	for i := range m.list {
		x := &m.list[i]
		if x.class == c && x.at/m.bucket == at/m.bucket && m.now < m.leaves(x.at) {
			part := min(n-back, x.n)
			x.n -= part
			back += part
		}
	}
	if m.level.Sub(m.level, m.tokens(back)); m.level.Sign() < 0 {
		m.level.SetInt64(0)
	}
	m.measure()
}

// less compares a/b with c/d.
func less(a, b, c, d int64) bool {
	return product(a, d).Cmp(product(c, b)) < 0
}

// times returns a·b/c rounded down.
func times(a, b, c int64) int64 {
	n := product(a, b)
	return n.Div(n, big.NewInt(c)).Int64()
}

// largestBounded is G.
func (m *naive) largestBounded(c int) int64 {
	g := m.quota
	for e := range m.table {
		if e != c {
			g -= m.floor[e]
		}
	}
	return g
}

func (m *naive) aged(e int) bool {
	d := m.demand[e]
	return m.table[e].AgeAfter > 0 && d.Count > 0 && d.HeadTried &&
		m.now-d.HeadSince >= m.table[e].AgeAfter && d.Head[Tokens] <= m.largestBounded(e)
}

// older breaks a tie of age by rank, so that the order is total.
func (m *naive) older(e, c int) bool {
	a, b := m.demand[e].HeadSince, m.demand[c].HeadSince
	return a < b || a == b && e < c
}

// fits is 4.3, line by line.
func (m *naive) fits(c int, n int64, u []int64, total int64) bool {
	free := m.quota - total - n
	if free < 0 {
		return false
	}
	var held int64
	for e := range m.table {
		if e == c {
			continue
		}
		q, head := m.demand[e].Queued[Tokens], m.demand[e].Head[Tokens]
		pending := m.demand[e].Count > 0
		var hold int64
		if u[c]+n <= m.floor[c] {
			hold = m.reserve[e]
			if e < c && pending {
				hold = max(hold, min(m.floor[e], u[e]+q))
			}
		} else {
			hold = min(m.floor[e], u[e]+q+m.reserve[e])
			if pending {
				if m.aged(e) || m.aged(c) {
					if m.aged(e) && (!m.aged(c) || m.older(e, c)) {
						hold = max(hold, u[e]+head)
					}
				} else if less(u[e], m.share[e], u[c], m.share[c]) {
					level := times(u[c], m.share[e], m.share[c])
					if head <= m.largestBounded(e) {
						level = max(level, u[e]+head)
					}
					hold = max(hold, min(level, u[e]+q))
				}
			}
		}
		held += max(0, hold-u[e])
	}
	return free >= held
}

// fitsThen is FITS_EST of 4.7: in the guaranteed ring every pending class below its
// floor goes first, and the level rule uses the level that c would reach.
func (m *naive) fitsThen(c int, n int64, u []int64, total int64) bool {
	free := m.quota - total - n
	if free < 0 {
		return false
	}
	var held int64
	for e := range m.table {
		if e == c {
			continue
		}
		q, head := m.demand[e].Queued[Tokens], m.demand[e].Head[Tokens]
		pending := m.demand[e].Count > 0
		var hold int64
		if u[c]+n <= m.floor[c] {
			hold = m.reserve[e]
			if pending {
				hold = max(hold, min(m.floor[e], u[e]+q))
			}
		} else {
			hold = min(m.floor[e], u[e]+q+m.reserve[e])
			if pending {
				if m.aged(e) || m.aged(c) {
					if m.aged(e) && (!m.aged(c) || m.older(e, c)) {
						hold = max(hold, u[e]+head)
					}
				} else if less(u[e], m.share[e], u[c]+n, m.share[c]) {
					level := times(u[c]+n, m.share[e], m.share[c])
					if head <= m.largestBounded(e) {
						level = max(level, u[e]+head)
					}
					hold = max(hold, min(level, u[e]+q))
				}
			}
		}
		held += max(0, hold-u[e])
	}
	return free >= held
}

// pacedOut is 4.4 at a time t from now with f more poured in until then; u is what
// the class uses then, and until the time at which it is not paced any more.
func (m *naive) pacedOut(c int, n, ahead, u, f int64, t, until time.Duration) bool {
	if m.table[c].Pace == 0 || u+n <= m.share[c] || t >= until {
		return false
	}
	left := m.tokens(f + ahead - m.forgiven(c))
	return left.Add(left, m.level).Cmp(m.leaked(t)) > 0
}

// pacedFor returns for how long a job may be paced: not at all when its booking is
// due, for a window since it was first tried when it is a head that ages.
func (m *naive) pacedFor(a *Ask) time.Duration {
	d := m.demand[a.Class]
	switch {
	case a.Due:
		return 0
	case a.Head && d.HeadTried && m.table[a.Class].AgeAfter > 0 && d.Head[Tokens] <= m.largestBounded(a.Class):
		return d.HeadSince + m.window - m.now
	}
	return longest
}

// forgiven is tau·R in whole tokens.
func (m *naive) forgiven(c int) int64 {
	return times(m.quota-m.unmet, int64(m.table[c].Pace), int64(m.window))
}

// then returns u' and U' at a time t from now, what the classes with precedence are
// expected to charge until then included, and that sum itself.
func (m *naive) then(c int, n int64, t time.Duration) (u []int64, total, f int64) {
	now, _ := m.usedAt(m.now)
	u, total = m.usedAt(m.now + t)
	stays := now[c]+n <= m.floor[c]
	for e := range m.table {
		if e == c {
			continue
		}
		if now[e] <= m.floor[e] || !stays && !less(now[c]+n, m.share[c], now[e], m.share[e]) {
			more := m.forecast(e, t)
			u[e] += more
			total += more
			f += more
		}
	}
	return u, total, f
}

// wait is 4.7 for a job that may not go now. boundary is the first bucket boundary
// at which it may; exact is the first moment at all, where pacing ends between two
// boundaries. Both are 0 where neither comes within a window and a bucket.
func (m *naive) wait(a *Ask) (exact, boundary time.Duration) {
	c, ahead, until := a.Class, a.Ahead[Tokens], m.pacedFor(a)
	n := ahead + a.Cost[Tokens]
	u, total := m.usedAt(m.now)
	first := m.now / m.bucket
	last := int(m.window/m.bucket) + 1
	for j := 0; j <= last; j++ {
		t := (first+time.Duration(j))*m.bucket - m.now
		fits, f := m.fits(c, n, u, total), int64(0)
		if j == 0 {
			t = 0
		} else {
			u, total, f = m.then(c, n, t)
			fits = m.fitsThen(c, n, u, total)
		}
		if !fits {
			continue
		}
		paced := func(t time.Duration) bool { return m.pacedOut(c, n, ahead, u[c], f, t, until) }
		if j > 0 && !paced(t) {
			if exact == 0 {
				exact = t
			}
			return exact, t
		}
		if exact != 0 {
			continue
		}
		end := (first+time.Duration(j)+1)*m.bucket - m.now
		if j < last && paced(end-1) {
			continue
		}
		// The first moment at which pacing ends: it only leaks meanwhile.
		if exact = until; m.quota > m.unmet {
			exact = max(min(until, m.levels(f+ahead-m.forgiven(c))), t)
		}
	}
	return exact, 0
}

// levels returns the first moment from now at which L plus an amount is gone.
func (m *naive) levels(plus int64) time.Duration {
	rate := big.NewInt(m.quota - m.unmet)
	need := m.tokens(plus)
	need.Add(need, m.level).Add(need, rate).Sub(need, big.NewInt(1))
	return time.Duration(need.Div(need, rate).Int64())
}

// beyond is the estimate of 4.7 for a wait of more than a window.
func (m *naive) beyond(a *Ask) time.Duration {
	c, ahead := a.Class, a.Ahead[Tokens]
	n := ahead + a.Cost[Tokens]
	u, _ := m.usedAt(m.now)
	served := m.quota
	for e := range m.table {
		if e == c {
			continue
		}
		q := m.demand[e].Queued[Tokens]
		takes := max(min(m.floor[e], u[e]+q+m.reserve[e]), u[e])
		if m.demand[e].Count > 0 {
			takes = max(takes, min(u[e]+q, times(u[c], m.share[e], m.share[c])))
		}
		served -= takes
	}
	served = max(served, m.share[c])
	t := m.window + m.bucket + time.Duration(times(max(0, n-served), int64(m.window), served))
	if m.table[c].Pace > 0 && m.pacedFor(a) > 0 {
		over := m.shown() + ahead - m.forgiven(c)
		t = max(t, time.Duration(times(max(0, over), int64(m.window), served)))
	}
	return min(t, longest)
}

func (m *naive) String() string {
	u, total := m.usedAt(m.now)
	s := fmt.Sprintf("at %s: Q %d, U %d, L %d, H %d\n", m.now, m.quota, total, m.shown(), m.unmet)
	for e, c := range m.table {
		s += fmt.Sprintf("  %s: u %d S %d F %d M %d pace %s aged %v demand %+v\n",
			c.Name, u[e], m.share[e], m.floor[e], m.reserve[e], c.Pace, m.aged(e), m.demand[e])
	}
	return s
}
