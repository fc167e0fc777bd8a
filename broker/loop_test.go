package broker

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"quotabroker/wire"
)

// loop runs a pool in virtual time: it lets events happen at their times, ticks the
// broker when it says so, and hands every decision to whoever asked for it. It
// fails when a decision is addressed to nobody or comes twice, and when the broker
// asks for a tick that does not move it on.
type loop struct {
	*rand.Rand
	t      testing.TB
	b      *Broker
	now    time.Duration
	events events
	count  int64 // of events ever planned, to keep equal times in order
	asked  map[uint64]func(wire.Decision)
	to     uint64
	ticks  int
	after  func()                   // called after everything that happened, if set
	hears  func(Ask, wire.Decision) // called with every decision before its asker is, if set
}

type event struct {
	at  time.Duration
	seq int64
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newLoop(t testing.TB, seed uint64, cfg Config) *loop {
	if problems := cfg.Validate(); len(problems) > 0 {
		t.Fatalf("seed %d: the configuration is not valid: %v", seed, problems)
	}
	return &loop{
		Rand: rand.New(rand.NewPCG(seed, 21)), t: t, b: New(cfg, 7, origin), asked: map[uint64]func(wire.Decision){},
	}
}

// in plans something for later.
func (l *loop) in(d time.Duration, do func()) {
	l.count++
	heap.Push(&l.events, event{l.now + max(d, 0), l.count, do})
}

func (l *loop) time() time.Time { return origin.Add(l.now) }

// run lets time pass until the given moment.
func (l *loop) run(until time.Duration) {
	for {
		next := until
		if len(l.events) > 0 {
			next = min(next, l.events[0].at)
		}
		if at, ok := l.b.Next(); ok && at.Sub(origin) <= next {
			l.tick(at.Sub(origin))
			continue
		}
		l.now = next
		if len(l.events) == 0 || l.events[0].at > next {
			return
		}
		heap.Pop(&l.events).(event).do()
		if l.after != nil {
			l.after()
		}
	}
}

// tick calls Tick when the broker asked for it.
func (l *loop) tick(at time.Duration) {
	l.now = max(l.now, at)
	l.ticks++
	l.deliver(l.b.Tick(l.time()))
	if again, ok := l.b.Next(); ok && again.Sub(origin) <= l.now {
		l.t.Fatalf("at %s: after a tick the next one is due at %s: a busy loop", l.now, again.Sub(origin))
	}
	if l.after != nil {
		l.after()
	}
}

func (l *loop) deliver(effects []Effect) {
	// The slice is the broker's until the next call, and handlers call it.
	for _, e := range append([]Effect(nil), effects...) {
		do, ok := l.asked[e.To]
		if !ok {
			l.t.Fatalf("at %s: a decision for %d, which nobody waits for: %+v", l.now, e.To, e.Decision)
		}
		delete(l.asked, e.To)
		do(e.Decision)
	}
}

// ask asks, and calls answered with the decision whenever it comes.
func (l *loop) ask(a Ask, answered func(wire.Decision)) {
	l.to++
	a.To = l.to
	l.asked[a.To] = func(d wire.Decision) {
		if l.hears != nil {
			l.hears(a, d)
		}
		answered(d)
	}
	effects, err := l.b.Acquire(l.time(), a)
	if err != nil {
		l.t.Fatalf("at %s: %v", l.now, err)
	}
	l.deliver(effects)
}

func (l *loop) settle(source string, d wire.Decision, outcome wire.Outcome, usage *wire.Usage) {
	_, effects, err := l.b.Settle(l.time(), source, wire.SettleRequest{Lease: d.Lease, Outcome: outcome, Usage: usage})
	if err != nil {
		l.t.Fatalf("at %s: settling: %v", l.now, err)
	}
	l.deliver(effects)
}

// tokens is the cost of a job of x tokens, half of them input.
func tokens(x int64) wire.Cost {
	return wire.Cost{Requests: 1, InputTokens: x / 2, OutputTokens: x - x/2, Tokens: x}
}

// worker asks for one job after the other, as long as active says so.
type worker struct {
	l       *loop
	source  string
	tenant  string
	hold    time.Duration // 0: it polls
	lag     time.Duration // how late it asks again, at most
	size    func() int64
	service func() time.Duration
	active  func() bool
	granted func(x int64, waited time.Duration) // told of every grant
	vanish  float64                             // how often it does not come back
	think   time.Duration                       // between a grant and the next ask; 0: when the call has ended
	asks    int
}

// start begins with a new job.
func (w *worker) start() {
	if w.active != nil && !w.active() {
		w.l.in(time.Second, w.start)
		return
	}
	w.ask(w.size(), wire.TicketID{}, w.l.now)
}

func (w *worker) ask(x int64, ticket wire.TicketID, born time.Duration) {
	l := w.l
	w.asks++
	l.ask(Ask{Source: w.source, Tenant: w.tenant, Cost: tokens(x), Wait: w.hold, Deadline: -1, Ticket: ticket}, func(d wire.Decision) {
		switch d.Verdict {
		case wire.Grant:
			if w.granted != nil {
				w.granted(x, l.now-born)
			}
			l.in(w.service(), func() {
				l.settle(w.source, d, wire.OutcomeOK, &wire.Usage{InputTokens: d.Cost.InputTokens, OutputTokens: d.Cost.OutputTokens})
				if w.think == 0 {
					w.start()
				}
			})
			if w.think > 0 {
				l.in(time.Duration(l.ExpFloat64()*float64(w.think)), w.start)
			}
		case wire.Defer:
			retry := time.Duration(d.RetryAfterMS) * time.Millisecond
			if w.vanish > 0 && l.Float64() < w.vanish {
				l.in(retry+20*time.Second, w.start)
				return
			}
			if w.lag > 0 {
				retry += time.Duration(l.Int64N(int64(w.lag)))
			}
			l.in(retry, func() { w.ask(x, d.Ticket, born) })
		default:
			l.in(time.Second+time.Duration(l.Int64N(int64(4*time.Second))), w.start)
		}
	})
}

// lognormal draws a size with the given median, bounded.
func (l *loop) lognormal(median, sigma float64, least, most int64) int64 {
	return min(max(int64(median*math.Exp(sigma*l.NormFloat64())), least), most)
}

// quantile returns the q-th of 100 parts of a sorted list.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*q/100), len(sorted)-1)]
}
