package broker

import (
	"fmt"
	"time"

	"quotabroker/classes"
)

// naivePool is a pool of one token limit and one tier, written down once more from
// the description of the rule in the plainest way: exact lists of charges and of
// tickets, in their order. It reads from the broker only the learned reserves and
// the level of the line, which the tests of classes hold against exact arithmetic.
type naivePool struct {
	table          []classes.Class
	quota          int64
	window, bucket time.Duration
	claim, grace   time.Duration
	now            time.Duration

	soonest time.Duration // no ticket becomes late or is given up before it
	class   []naiveClass
	total   int64 // U
	level   int64 // L
	seq     int64
	granted exactWindow
}

type naiveClass struct {
	share, floor int64
	most         int64 // Mmax
	reserve      int64 // M
	charges      []*naiveCharge
	used         int64 // u
	queue        []*naiveTicket
	queued       int64 // q: what the tickets want that are not late
	live         int   // how many those are
	v, booked    int64
	maxFin       int64
	fin          map[string]int64
}

type naiveCharge struct {
	at time.Duration
	n  int64
}

type naiveTicket struct {
	class       int
	tenant      string
	x           int64
	tag, seq    int64
	late        bool
	booked      bool
	tried       bool
	born, since time.Duration
	due         time.Duration
	id          uint64
	ahead       int64 // when it was booked: what was ahead of it then, or has come back since
}

func newNaivePool(cfg *Config) *naivePool {
	m := &naivePool{table: cfg.Classes, claim: cfg.Claim, grace: cfg.Grace}
	m.class = make([]naiveClass, len(cfg.Classes))
	for c := range m.class {
		m.class[c].fin = map[string]int64{}
	}
	m.configure(cfg)
	m.granted.window = m.window
	return m
}

// configure takes the amount of the limit, and what follows from it.
func (m *naivePool) configure(cfg *Config) {
	span := cfg.Limits[0].Span + cfg.Guard
	m.bucket = (span + time.Duration(cfg.Buckets) - 1) / time.Duration(cfg.Buckets)
	m.window = m.bucket * time.Duration(cfg.Buckets)
	m.quota = cfg.Limits[0].Amount - cfg.Margin.Of(cfg.Limits[0].Amount)
	for i, c := range m.table {
		p := &m.class[i]
		p.share, p.floor = c.Share.Of(m.quota), c.Floor.Of(m.quota)
		p.most = min(c.ReserveMax.Of(m.quota), p.floor)
	}
}

// leaves is when a charge leaves: once no moment of its bucket lies in the window.
func (m *naivePool) leaves(at time.Duration) time.Duration {
	return (at/m.bucket+1)*m.bucket + m.window
}

// advance lets time pass: charges leave, tickets become late and are given up.
func (m *naivePool) advance(now time.Duration) (late, dead int) {
	m.now = now
	look := now >= m.soonest
	if look {
		m.soonest = never
	}
	for c := range m.class {
		p := &m.class[c]
		for len(p.charges) > 0 && now >= m.leaves(p.charges[0].at) {
			p.used -= p.charges[0].n
			m.total -= p.charges[0].n
			p.charges = p.charges[1:]
		}
		for i := 0; look && i < len(p.queue); i++ {
			t := p.queue[i]
			if !t.late && now >= t.due+m.claim {
				late++
				m.setLate(t, true)
			}
			if t.late && now >= t.due+m.grace {
				dead++
				m.remove(t)
				i--
				continue
			}
			m.told(t)
		}
	}
	return late, dead
}

// told notes when a ticket will be late, or given up.
func (m *naivePool) told(t *naiveTicket) {
	if t.late {
		m.soonest = min(m.soonest, t.due+m.grace)
	} else {
		m.soonest = min(m.soonest, t.due+m.claim)
	}
}

func (m *naivePool) setLate(t *naiveTicket, late bool) {
	if p := &m.class[t.class]; t.late != late {
		t.late = late
		if late {
			p.queued -= t.x
			p.live--
		} else {
			p.queued += t.x
			p.live++
		}
	}
}

// charge counts n now and returns the entry, from which it may be given back.
func (m *naivePool) charge(c int, n int64) *naiveCharge {
	x := &naiveCharge{m.now, n}
	p := &m.class[c]
	p.charges = append(p.charges, x)
	p.used += n
	m.total += n
	return x
}

// refund takes n off an earlier charge, if that still counts.
func (m *naivePool) refund(c int, x *naiveCharge, n int64) {
	if m.now < m.leaves(x.at) {
		x.n -= n
		m.class[c].used -= n
		m.total -= n
	}
}

// place returns where a new ask stands.
func (m *naivePool) place(c int, tenant string) (tag, seq int64) {
	p := &m.class[c]
	tag = max(p.v, p.fin[tenant])
	if len(p.queue) > 0 {
		tag = max(tag, p.booked)
	}
	return tag, m.seq + 1
}

// ahead adds up the tickets before a place that are not late.
func (m *naivePool) ahead(c int, tag, seq int64) (sum int64, count int) {
	for _, t := range m.class[c].queue {
		if !t.late && t.before(tag, seq) {
			sum += t.x
			count++
		}
	}
	return sum, count
}

func (t *naiveTicket) before(tag, seq int64) bool { return t.tag < tag || t.tag == tag && t.seq < seq }

func (m *naivePool) insert(t *naiveTicket) {
	p := &m.class[t.class]
	i := len(p.queue)
	for i > 0 && !p.queue[i-1].before(t.tag, t.seq) {
		i--
	}
	p.queue = append(p.queue, nil)
	copy(p.queue[i+1:], p.queue[i:])
	p.queue[i] = t
	p.queued += t.x
	p.live++
	p.fin[t.tenant] = max(p.fin[t.tenant], t.tag+t.x)
	p.maxFin = max(p.maxFin, t.tag+t.x)
}

func (m *naivePool) remove(t *naiveTicket) {
	p := &m.class[t.class]
	for i := range p.queue {
		if p.queue[i] == t {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			break
		}
	}
	if !t.late {
		p.queued -= t.x
		p.live--
	}
	m.idle(p)
}

// idle ends a busy period of a class: without tickets every finish tag is past.
func (m *naivePool) idle(p *naiveClass) {
	if len(p.queue) == 0 {
		p.v, p.booked = max(p.v, p.maxFin), 0
	}
}

// grant charges a job that stood at a place.
func (m *naivePool) grant(c int, tenant string, x, tag int64) *naiveCharge {
	p := &m.class[c]
	p.fin[tenant] = max(p.fin[tenant], tag+x)
	p.maxFin = max(p.maxFin, tag+x)
	p.v = max(p.v, tag)
	m.idle(p)
	return m.charge(c, x)
}

// head returns the first ticket of a class that is not late.
func (m *naivePool) head(c int) *naiveTicket {
	for _, t := range m.class[c].queue {
		if !t.late {
			return t
		}
	}
	return nil
}

// largest and bounded are X and G.
func (m *naivePool) largest(c int) int64 {
	x := m.quota
	for e := range m.class {
		if e != c {
			x -= m.class[e].most
		}
	}
	return x
}

func (m *naivePool) bounded(c int) int64 {
	g := m.quota
	for e := range m.class {
		if e != c {
			g -= m.class[e].floor
		}
	}
	return g
}

func (m *naivePool) aged(h *naiveTicket) bool {
	if h == nil {
		return false
	}
	after := m.table[h.class].AgeAfter
	return after > 0 && h.tried && m.now-h.since >= after && h.x <= m.bounded(h.class)
}

// paid reports whether a head has been one for a window, after which it is not paced.
func (m *naivePool) paid(t *naiveTicket) bool {
	return m.table[t.class].AgeAfter > 0 && t.tried && m.now-t.since >= m.window && t.x <= m.bounded(t.class)
}

// fits is §4.3 of the algorithm.
func (m *naivePool) fits(c int, n int64) bool {
	me := &m.class[c]
	free := m.quota - m.total - n
	if free < 0 {
		return false
	}
	mine := m.head(c)
	var held int64
	for e := range m.class {
		if e == c {
			continue
		}
		p := &m.class[e]
		hold := p.reserve
		if me.used+n <= me.floor {
			if e < c && p.queued > 0 {
				hold = max(hold, min(p.floor, p.used+p.queued))
			}
		} else {
			hold = min(p.floor, p.used+p.queued+p.reserve)
			if head := m.head(e); head != nil {
				switch theirs, own := m.aged(head), m.aged(mine); {
				case theirs || own:
					if theirs && (!own || head.since < mine.since || head.since == mine.since && e < c) {
						hold = max(hold, p.used+head.x)
					}
				case p.used*me.share < me.used*p.share:
					level := me.used * p.share / me.share
					if head.x <= m.bounded(e) {
						level = max(level, p.used+head.x)
					}
					hold = max(hold, min(level, p.used+p.queued))
				}
			}
		}
		held += max(0, hold-p.used)
	}
	return free >= held
}

// paced is §4.4: above the share, and the line is not low enough.
func (m *naivePool) paced(c int, n, ahead int64) bool {
	tau := m.table[c].Pace
	if tau == 0 || m.class[c].used+n <= m.class[c].share {
		return false
	}
	rate := m.quota
	for e := range m.class {
		p := &m.class[e]
		rate -= max(0, min(p.reserve, p.floor-p.used))
	}
	return m.level+ahead > rate*int64(tau)/int64(m.window)
}

// deficit is what is missing of the reserves: above 0, somebody could not have its
// reserve at once.
func (m *naivePool) deficit() int64 {
	d := m.total - m.quota
	for e := range m.class {
		d += max(0, m.class[e].reserve-m.class[e].used)
	}
	return d
}

// protectedOthers adds up what is protected and unused of the classes but c.
func (m *naivePool) protectedOthers(c int) (sum int64) {
	for e := range m.class {
		if p := &m.class[e]; e != c {
			sum += max(0, min(p.floor, p.used+p.queued+p.reserve)-p.used)
		}
	}
	return sum
}

func (m *naivePool) String() string {
	s := fmt.Sprintf("at %s: Q %d, U %d, L %d\n", m.now, m.quota, m.total, m.level)
	for c := range m.class {
		p := &m.class[c]
		s += fmt.Sprintf("  %s: u %d S %d F %d M %d q %d of %d (%d not late) v %d\n",
			m.table[c].Name, p.used, p.share, p.floor, p.reserve, p.queued, len(p.queue), p.live, p.v)
	}
	return s
}

// exactWindow sums what was granted in any half-open window that ends at a grant.
type exactWindow struct {
	window time.Duration
	list   []naiveCharge
	sum    int64
}

// add counts a grant and returns what was granted in the window that ends with it.
func (w *exactWindow) add(at time.Duration, n int64) int64 {
	w.list = append(w.list, naiveCharge{at, n})
	w.sum += n
	for w.list[0].at <= at-w.window {
		w.sum -= w.list[0].n
		w.list = w.list[1:]
	}
	return w.sum
}
