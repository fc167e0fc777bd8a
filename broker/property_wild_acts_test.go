package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// newAsk asks for something new: held or not, named or not, to be confirmed or not.
func (w *wild) newAsk() {
	a := Ask{
		Source: sourceOf[w.IntN(3)], Tenant: string(rune('a' + w.IntN(4))), Deadline: -1,
		Cost: tokens(w.lognormal(1500, 1.2, 1, 60_000)), Confirm: w.IntN(10) == 0,
	}
	if w.IntN(3) == 0 {
		a.Wait = time.Duration(w.Int64N(int64(40 * time.Second)))
	}
	if w.IntN(5) == 0 {
		a.Deadline = time.Duration(w.Int64N(int64(30 * time.Second)))
	}
	if w.IntN(4) == 0 {
		a.TTL = time.Duration(w.Int64N(int64(20 * time.Second)))
	}
	if w.IntN(2) == 0 {
		a.RequestID = fmt.Sprint("r", w.IntN(400))
	}
	if _, ok := w.cfg.Sources[a.Source]; !ok {
		effects, err := w.b.Acquire(w.time(), a)
		if err == nil || err.Code != wire.CodeUnknownSource {
			w.t.Fatalf("at %s: source %s is not configured: %v", w.now, a.Source, err)
		}
		w.deliver(effects)
		w.met["unknown source"]++
		return
	}
	w.send(a)
}

// send asks; the answer must come within the time that it may be held, and an id of
// work that is under way must be answered with it.
func (w *wild) send(a Ask) {
	w.asked++
	asked := w.now
	known := w.lookup(a.Source, a.RequestID)
	w.ask(a, func(d wire.Decision) {
		if w.now > asked+a.Wait {
			w.t.Fatalf("at %s: an ask of %s that may be held for %s is answered now", w.now, asked, a.Wait)
		}
		if known != nil && w.now == asked {
			w.met["asked twice"]++
			if d.Verdict != wire.Grant || d.Lease != known.id {
				w.t.Fatalf("at %s: request %s has lease %v and is answered %+v", w.now, a.RequestID, known.id, d)
			}
		}
		w.answered(a, d)
	})
}

// lookup returns the lease in flight of a request id.
func (w *wild) lookup(source, id string) *wildLease {
	for _, l := range w.leases {
		if id != "" && l.source == source && l.request == id && !l.ended && w.inFlight(l) {
			return l
		}
	}
	return nil
}

// inFlight reports whether the broker holds a lease to be in flight at this moment.
func (w *wild) inFlight(l *wildLease) bool {
	i := slot(l.id.N)
	if i >= w.b.leases.next {
		return false
	}
	held := w.b.leases.at(i)
	return held.n == l.id.N && held.state == inFlight && held.expires > w.now && held.confirmBy > w.now
}

// answered counts a decision and takes note of what it gave.
func (w *wild) answered(a Ask, d wire.Decision) {
	w.ended[d.Verdict.String()+" "+d.Cause.String()]++
	switch d.Verdict {
	case wire.Grant:
		if w.grants[d.Lease] {
			return // the same lease, told again
		}
		if class, ok := w.b.Class(a.Source); !ok || class != d.Class {
			w.t.Fatalf("at %s: a grant of class %s for source %s", w.now, d.Class, a.Source)
		}
		w.grants[d.Lease] = true
		v := classes.VecOf(d.Cost)
		w.leases = append(w.leases, &wildLease{id: d.Lease, source: a.Source, request: a.RequestID, at: w.now, left: v, charged: v})
	case wire.Defer:
		if d.RetryAfterMS < 1 || d.RetryAfterMS > w.cfg.MaxDefer.Milliseconds() || d.EtaMS < 1 {
			w.t.Fatalf("at %s: told to come back in %d ms of %d", w.now, d.RetryAfterMS, d.EtaMS)
		}
		w.tickets = append(w.tickets, wildTicket{d.Ticket, a, a.Source})
	case wire.Refuse:
		if d.Message == "" || d.Cause.Permanent() != (d.RetryAfterMS == 0) {
			w.t.Fatalf("at %s: refused with %+v", w.now, d)
		}
	}
}

// again asks again with an old ticket, sometimes for more or less than before.
func (w *wild) again() {
	if len(w.tickets) == 0 {
		return
	}
	i := w.IntN(len(w.tickets))
	t := w.tickets[i]
	w.tickets = slices.Delete(w.tickets, i, i+1)
	a := t.ask
	a.Ticket = t.id
	switch w.IntN(8) {
	case 0:
		a.Cost = tokens(a.Cost.Tokens/2 + 1)
	case 1:
		a.Cost = tokens(a.Cost.Tokens * 2)
	}
	if _, ok := w.cfg.Sources[a.Source]; ok {
		w.send(a)
	}
}

// settleOne ends a lease with any outcome, or corrects one that has expired, or says
// the same again, or something else.
func (w *wild) settleOne() {
	if len(w.leases) == 0 {
		return
	}
	l := w.leases[w.IntN(len(w.leases))]
	s := wire.SettleRequest{Lease: l.id, Outcome: wire.OutcomeOK}
	if l.settled != nil && w.IntN(2) == 0 {
		s = *l.settled
	} else {
		took := int64(float64(l.charged[classes.Tokens]) * 1.5 * w.Float64())
		s.Usage = &wire.Usage{InputTokens: took / 3, OutputTokens: took - took/3}
		switch w.IntN(12) {
		case 0:
			s.Outcome, s.Usage = wire.OutcomeUnsent, nil
		case 1:
			s.Outcome, s.Usage = wire.OutcomeUnknown, nil
		case 2:
			s.Outcome, s.Provider = wire.OutcomeThrottled, &wire.ProviderState{RetryAfterMS: wire.Int(w.Int64N(5000))}
		case 3:
			s.Outcome = wire.OutcomeOverloaded
		case 4:
			s.Outcome = wire.OutcomeFailed
		}
	}
	reply, effects, err := w.b.Settle(w.time(), l.source, s)
	w.deliver(effects)
	switch {
	case err != nil && err.Code == wire.CodeAlreadySettled:
		if w.met["contradicted"]++; l.settled == nil {
			w.t.Fatalf("at %s: lease %s was never settled: %v", w.now, l.id, err)
		}
	case err != nil:
		w.met["forgotten"]++
	case l.settled != nil:
		if w.met["settled twice"]++; reply.Charged.Tokens != l.charged[classes.Tokens] {
			w.t.Fatalf("at %s: lease %s was settled at %v, the same again says %+v", w.now, l.id, l.charged, reply)
		}
	default:
		w.corrected(l, &s, reply)
	}
}

// corrected books what a settlement changed.
func (w *wild) corrected(l *wildLease, s *wire.SettleRequest, reply wire.SettleReply) {
	w.met["settled "+s.Outcome.String()]++
	if reply.Late {
		w.met["settled late"]++
	}
	took := classes.Vec{}
	switch {
	case s.Outcome == wire.OutcomeUnsent:
	case s.Usage == nil:
		took = l.charged
		if held := w.b.leases.at(slot(l.id.N)); reply.Late && l.charged == (classes.Vec{}) {
			took = classes.VecOf(held.reserved) // taken back, and sent after all
		}
	default:
		took = classes.Vec{
			classes.Tokens: s.Usage.InputTokens + s.Usage.OutputTokens, classes.InputTokens: s.Usage.InputTokens,
			classes.OutputTokens: s.Usage.OutputTokens, classes.Requests: 1,
		}
	}
	if reply.Charged.Tokens != took[classes.Tokens] || reply.Charged.Requests != took[classes.Requests] {
		w.t.Fatalf("at %s: lease %s took %v, the reply says %+v", w.now, l.id, took, reply)
	}
	w.book(l, took)
	l.ended, l.settled = true, s
}

// book charges a lease for what it took: less comes off what was charged at the
// grant, as far as the window goes; more is charged now.
func (w *wild) book(l *wildLease, took classes.Vec) {
	var extra classes.Vec
	for m := range took {
		switch d := took[m] - l.charged[m]; {
		case d < 0:
			l.left[m] = max(0, l.left[m]+d)
		case d > 0:
			extra[m] = d
			w.met["overran"]++
		}
	}
	if extra != (classes.Vec{}) {
		w.extras = append(w.extras, charged{w.now, extra})
	}
	l.charged = took
}

// takeBack abandons a grant that reached nobody, or confirms one: one that was taken
// back meanwhile is then given again.
func (w *wild) takeBack() {
	if len(w.leases) == 0 {
		return
	}
	l := w.leases[w.IntN(len(w.leases))]
	if w.IntN(2) == 0 {
		w.deliver(w.b.Confirm(w.time(), l.id))
		return
	}
	w.deliver(w.b.Abandon(w.time(), l.id))
}

func (w *wild) renew() {
	if len(w.leases) == 0 {
		return
	}
	l := w.leases[w.IntN(len(w.leases))]
	_, effects, _ := w.b.Renew(w.time(), l.source, wire.RenewRequest{Lease: l.id, TTLMS: w.Int64N(20_000)})
	w.deliver(effects)
}

func (w *wild) cancel() {
	c, source := wire.CancelRequest{RequestID: fmt.Sprint("r", w.IntN(400))}, sourceOf[w.IntN(3)]
	switch {
	case w.IntN(2) == 0 && len(w.tickets) > 0:
		t := w.tickets[w.IntN(len(w.tickets))]
		c, source = wire.CancelRequest{Ticket: t.id}, t.source
	case w.IntN(2) == 0 && len(w.leases) > 0:
		l := w.leases[w.IntN(len(w.leases))]
		c, source = wire.CancelRequest{Lease: l.id}, l.source
	}
	_, effects, _ := w.b.Cancel(w.time(), source, c)
	w.deliver(effects)
}

// seen takes over what the broker did to leases by itself: those taken back count
// for nothing, those whose producer had them after all count again, and those
// cancelled are settled as unsent.
func (w *wild) seen() {
	for _, l := range w.leases {
		held := w.b.leases.at(slot(l.id.N))
		if l.ended || held.n != l.id.N {
			continue
		}
		none := l.charged == classes.Vec{}
		switch {
		case held.state == inFlight && none:
			w.met["given again"]++
			l.request = "" // its id was free meanwhile
			l.at, l.charged = held.granted, classes.VecOf(held.reserved)
			l.left = l.charged
		case held.state == takenBack && !none:
			w.met["taken back"]++
			w.book(l, classes.Vec{})
		case held.state == settled:
			w.met["cancelled"]++
			w.book(l, classes.Vec{})
			l.ended, l.settled = true, &wire.SettleRequest{Lease: l.id, Outcome: wire.OutcomeUnsent}
		}
	}
}

// lives lets a wild pool live for some minutes, then drain and end, and checks that
// every ask was answered once and nothing is left.
func (w *wild) lives(t *testing.T, d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.run(w.now + time.Duration(w.ExpFloat64()*float64(100*time.Millisecond)))
		w.act()
	}
	w.deliver(w.b.Drain(w.time()))
	if n := w.b.tickets.live(); n != 0 {
		t.Fatalf("%d tickets wait in a pool that drains", n)
	}
	if len(w.loop.asked) > 0 {
		t.Fatalf("%d asks were never answered", len(w.loop.asked))
	}
	w.ask(Ask{Source: w.anySource(), Cost: tokens(1), Deadline: -1, Wait: time.Minute}, func(d wire.Decision) {
		if d.Cause != wire.CauseDraining || d.RetryAfterMS == 0 {
			t.Errorf("a pool that drains answers %+v", d)
		}
	})
	w.run(w.now + 3*time.Hour)
	w.deliver(w.b.Tick(w.time())) // an idle broker asks for none
	b := w.b
	if b.leases.live() != 0 || len(b.byRequest) != 0 || len(b.tenantIndex) != 0 || b.inFlight != 0 || b.unconfirmed != 0 {
		t.Errorf("left behind: %d leases, %d request ids, %d tenants, %d in flight, %d unconfirmed", b.leases.live(), len(b.byRequest), len(b.tenantIndex), b.inFlight, b.unconfirmed)
	}
	for i := range b.rule.Limits() {
		if s := b.rule.LimitAt(i); s.Used != 0 || s.Level != 0 {
			t.Errorf("left behind: %s holds %d, its line %d", s.Limit, s.Used, s.Level)
		}
	}
	if _, ok := b.Next(); ok {
		t.Error("an idle broker still asks for ticks")
	}
}

func (w *wild) anySource() string {
	for _, s := range sourceOf {
		if _, ok := w.cfg.Sources[s]; ok {
			return s
		}
	}
	return ""
}
