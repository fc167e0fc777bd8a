package broker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// history is a random life of one pool of one token limit, and its naive twin.
type history struct {
	*rand.Rand
	seed      uint64
	cfg       Config
	b         *Broker
	m         *naivePool
	now       time.Duration
	step      float64 // mean of the steps, in ns
	tenants   int
	disturbed bool // quotas are cut, grants settled above and below their estimate
	tickets   []*naiveTicket
	leases    []*heldLease
	upset     time.Duration // when the reserves last could not be expected to be there: growth of M, an overrun, a cut
	met       tally
}

// heldLease is a grant whose holder has not said yet how it ended.
type heldLease struct {
	id    wire.LeaseID
	class int
	x     int64
	entry *naiveCharge
}

var origin = time.Unix(1_000_000_000, 0)

var sourceOf = []string{"api", "scheduler", "eval"}

// tally counts what a history exercised; a test fails where that is nothing.
type tally [numMet]int

const (
	metGuaranteed = iota
	metBorrowed
	metAtOnce
	metPaced
	metAged
	metLearned
	metBooked
	metDue
	metLate
	metBack
	metVanished
	metEarly
	metSaturated
	metMoved
	metCancelled
	metRefunded
	metOverrun
	metCut
	metDebt
	metExpired
	metMissing
	numMet
)

var metNames = [numMet]string{
	metGuaranteed: "granted within the floor", metBorrowed: "granted above it", metAtOnce: "granted from the reserve",
	metPaced: "paced", metAged: "aged heads", metLearned: "learned", metBooked: "booked", metDue: "due, so not paced",
	metLate: "late", metBack: "back from late", metVanished: "vanished", metEarly: "early", metSaturated: "saturated", metMoved: "moved to the back",
	metCancelled: "cancelled", metRefunded: "refunded", metOverrun: "overran", metCut: "quota changed", metDebt: "in debt",
	metExpired: "expired", metMissing: "reserves missing",
}

func (t *tally) add(o *tally) {
	for i, n := range o {
		t[i] += n
	}
}

func (t *tally) String() string {
	s := ""
	for i, n := range t {
		s += fmt.Sprintf("%s %d, ", metNames[i], n)
	}
	return s[:len(s)-2]
}

// newHistory makes up a pool: the default shares or random ones, every feature on
// or off, and what edit says.
func newHistory(seed uint64, disturbed bool, edit func(*Config)) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 11)), seed: seed, tenants: 3, disturbed: disturbed}
	h.cfg = DefaultConfig()
	h.cfg.Margin = 0
	h.cfg.Guard = time.Duration(h.IntN(2)) * time.Second
	h.cfg.Buckets = []int{60, 60, 120, 240}[h.IntN(4)]
	h.cfg.Limits = []classes.Limit{{Metric: classes.Tokens, Amount: 100_000 + h.Int64N(900_000), Span: time.Minute}}
	if h.IntN(2) == 0 {
		h.shares()
	}
	moving, pacing, ageing, booking := h.IntN(2) == 0, h.IntN(3) > 0, h.IntN(2) == 0, h.IntN(2) == 0
	for i := range h.cfg.Classes {
		c := &h.cfg.Classes[i]
		c.ReserveMax = classes.Portion(h.Int64N(int64(c.Floor) + 1))
		if h.IntN(4) == 0 {
			c.ReserveMax = c.Floor
		}
		if c.ReserveMin = c.ReserveMax; moving {
			c.ReserveMin /= classes.Portion(1 + h.IntN(20))
		}
		if !pacing {
			c.Pace = 0
		}
		if !ageing {
			c.AgeAfter = 0
		}
		if !booking {
			c.Book = 0
		}
		if i == 0 && h.IntN(2) == 0 {
			c.MaxWait = 0
		}
	}
	if disturbed {
		h.cfg.LeaseTTL = []time.Duration{2 * time.Second, 20 * time.Second, 2 * time.Minute}[h.IntN(3)]
	}
	if edit != nil {
		edit(&h.cfg)
	}
	h.step = (0.12 + 0.03*h.Float64()) * float64(time.Second)
	h.b = New(h.cfg, 7, origin)
	h.m = newNaivePool(&h.cfg)
	h.read()
	return h
}

// shares makes up shares and floors, floors up to the shares.
func (h *history) shares() {
	table := h.cfg.Classes
	left := classes.Whole
	for i := range table {
		if table[i].Share = left; i < len(table)-1 {
			table[i].Share = classes.Percent + classes.Portion(h.Int64N(int64(left-classes.Percent*classes.Portion(len(table)-i))))
		}
		left -= table[i].Share
		if table[i].Floor = table[i].Share; h.IntN(3) > 0 {
			table[i].Floor = classes.Portion(h.Int64N(int64(table[i].Share) + 1))
		}
	}
}

// size is lognormal with its median at Q/200, from Q/2000 to Q/10.
func (h *history) size() int64 {
	q := float64(h.cfg.Limits[0].Amount)
	return int64(min(max(q/200*math.Exp(1.1*h.NormFloat64()), q/2000), q/10))
}

// read takes from the broker what the twin does not compute itself.
func (h *history) read() {
	for c := range h.m.class {
		h.m.class[c].reserve = h.b.rule.StandingAt(0, c).Reserve
	}
	h.m.level = h.b.rule.LimitAt(0).Level
}

func (h *history) at() time.Time { return origin.Add(h.now) }

// next lets one thing happen and checks everything.
func (h *history) next() error {
	h.now += time.Duration(h.ExpFloat64() * h.step)
	h.b.advance(h.at())
	late, dead := h.m.advance(h.now)
	h.met[metLate] += late
	h.met[metVanished] += dead
	h.read()
	var err error
	switch p := h.IntN(100); {
	case p < 5:
		h.cancel()
	case h.disturbed && p < 8:
		h.cut()
	case h.disturbed && p < 30 && len(h.leases) > 0:
		err = h.settle()
	case p < 55:
		err = h.ask(h.pick(p%2 == 0))
	default:
		err = h.ask(nil)
	}
	if err == nil {
		err = h.sums()
	}
	if err != nil {
		return fmt.Errorf("seed %d, disturbed %v: %w\n%s", h.seed, h.disturbed, err, h.m)
	}
	return nil
}

// pick returns a ticket to ask again with: any, or one whose time has come.
func (h *history) pick(early bool) *naiveTicket {
	if len(h.tickets) == 0 {
		return nil
	}
	from := h.IntN(len(h.tickets))
	if early {
		h.met[metEarly]++
		return h.tickets[from]
	}
	for i := range h.tickets {
		if t := h.tickets[(from+i)%len(h.tickets)]; t.due <= h.now {
			return t
		}
	}
	return nil
}

func (h *history) forget(t *naiveTicket) {
	if i := slices.Index(h.tickets, t); i >= 0 {
		h.tickets = slices.Delete(h.tickets, i, i+1)
	}
}

// queued reports whether a ticket still stands; one that nobody came back for in
// time does not, and asking with it is a new ask.
func (h *history) queued(t *naiveTicket) bool {
	return !t.late || slices.Contains(h.m.class[t.class].queue, t)
}

// ask asks and holds the answer against the twin.
func (h *history) ask(t *naiveTicket) error {
	m := h.m
	job := naiveTicket{class: h.IntN(len(m.class)), tenant: string(rune('a' + h.IntN(h.tenants))), x: h.size(), born: h.now}
	if t != nil {
		job = *t
		if !h.queued(t) {
			h.forget(t)
			job.born, t = h.now, nil
		}
	}
	c, x := job.class, job.x
	if t != nil {
		if t.late {
			h.met[metBack]++
			h.returned(t)
		}
		m.setLate(t, false)
	} else {
		job.tag, job.seq = m.place(c, job.tenant)
		job.booked = false
	}
	ahead, count := m.ahead(c, job.tag, job.seq)
	n := ahead + x
	due := t != nil && (t.booked && h.now >= t.due || count == 0 && m.paid(t))
	paced, fits := m.paced(c, n, ahead), m.fits(c, n)
	before := m.deficit()
	want := verdictOf(x <= m.largest(c), fits, paced && !due)

	effects, problem := h.b.Acquire(h.at(), Ask{
		Source: sourceOf[c], Tenant: job.tenant, Deadline: -1, Ticket: wire.TicketID{Epoch: 7, N: job.id},
		Cost: wire.Cost{Requests: 1, InputTokens: x / 2, OutputTokens: x - x/2, Tokens: x},
	})
	if problem != nil || len(effects) != 1 {
		return fmt.Errorf("%d effects, error %+v", len(effects), effects)
	}
	d := &effects[0].Decision
	if d.Verdict != want && (want != wire.Defer || d.Verdict != wire.Refuse) {
		return fmt.Errorf("class %d, %d behind %d is told %s for %s, want %s (fits %v, paced %v, due %v)", c, x, ahead, d.Verdict, d.Cause, want, fits, paced, due)
	}
	if before <= 0 && ahead == 0 && m.class[c].live == 0 && !h.urgent(c) && !paced && m.class[c].used+x <= m.class[c].reserve && want != wire.Refuse {
		h.met[metAtOnce]++ // I3
		if d.Verdict != wire.Grant {
			return fmt.Errorf("I3: class %d asks for %d within its reserve and is told %s for %s", c, x, d.Verdict, d.Cause)
		}
	}
	if fits && paced && due {
		h.met[metDue]++
	}
	switch d.Verdict {
	case wire.Grant:
		return h.granted(t, &job, d, ahead, before)
	case wire.Defer:
		return h.deferred(t, &job, d, ahead, count, due)
	default:
		return h.refused(t, &job, d, ahead)
	}
}

func verdictOf(possible, fits, paced bool) wire.Verdict {
	switch {
	case !possible:
		return wire.Refuse
	case fits && !paced:
		return wire.Grant
	}
	return wire.Defer
}

// urgent reports whether a class of higher rank waits.
func (h *history) urgent(c int) bool {
	for e := range c {
		if h.m.class[e].live > 0 {
			return true
		}
	}
	return false
}
