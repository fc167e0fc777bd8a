package broker

import (
	"testing"
	"time"

	"quotabroker/wire"
)

// account follows, beside the broker, when the account may be called: not while it
// was told to wait, and by one request after that.
type account struct {
	*loop
	until     time.Duration // end of the longest wait that was told
	exhausted bool
	probing   bool // the pause is over, and nobody knows yet whether it is
	probe     wire.LeaseID
	probed    time.Duration // when the probe left; it stands until it is settled or for some time
	met       map[string]int
}

// hears checks every grant.
func (a *account) hears(ask Ask, d wire.Decision) {
	a.met[d.Verdict.String()]++
	if d.Verdict != wire.Grant {
		return
	}
	if a.now < a.until {
		a.t.Fatalf("at %s: a grant, and the account was told to wait until %s", a.now, a.until)
	}
	if !a.probing {
		return
	}
	if !a.probe.IsZero() {
		if a.exhausted && a.now < a.probed+probeEvery || !a.exhausted && a.now < a.probed+probeStillGood {
			a.t.Fatalf("at %s: a second grant while the one of %s finds out", a.now, a.probed)
		}
		if !a.exhausted {
			a.probing, a.probe = false, wire.LeaseID{} // it was not refused: that is an answer
			return
		}
	}
	if a.exhausted && a.probed > 0 && a.now < a.probed+probeEvery {
		a.t.Fatalf("at %s: an account out of money is tried again %s after %s", a.now, a.now-a.probed, a.probed)
	}
	a.met["probe"]++
	a.probe, a.probed = d.Lease, a.now
}

// ends settles one call with what the provider may say.
func (a *account) ends(source string, d wire.Decision) {
	probe := a.probing && d.Lease == a.probe
	s := wire.SettleRequest{Lease: d.Lease, Outcome: wire.OutcomeOK}
	p := a.IntN(1000)
	if probe {
		p = a.IntN(40) // what probes find out decides most
	}
	switch {
	case p < 10:
		s.Outcome = wire.OutcomeThrottled
		hint := a.Int64N(20_000)
		if a.IntN(20) == 0 {
			hint = 3_600_000 // no refusal over a minute's limit stops the account for longer than ten
		}
		if a.IntN(3) == 0 {
			hint = 0
		}
		s.Provider = &wire.ProviderState{Status: 429, RetryAfterMS: wire.Int(hint)}
		a.throttled(time.Duration(hint)*time.Millisecond, probe)
	case p < 14:
		s.Outcome = wire.OutcomeOverloaded
		a.throttled(0, probe)
	case p < 15:
		s.Outcome = wire.OutcomeExhausted
		a.met["exhausted"]++
		if !a.exhausted || probe {
			a.exhausted, a.probing, a.probe, a.probed = true, true, wire.LeaseID{}, 0
			a.until = a.now + probeEvery
		}
	case p < 18:
		s.Outcome = wire.OutcomeUnknown // nobody heard the answer: another has to ask
		a.lost(probe)
	case p < 21:
		s.Outcome = wire.OutcomeUnsent
		a.lost(probe)
	default:
		if probe {
			a.exhausted, a.probing, a.probe = false, false, wire.LeaseID{}
		}
	}
	_, effects, err := a.b.Settle(a.time(), source, s)
	if err != nil {
		a.t.Fatalf("at %s: settling: %v", a.now, err)
	}
	a.deliver(effects)
}

// throttled notes a refusal with the wait that it named, 0 for none.
func (a *account) throttled(hint time.Duration, probe bool) {
	if a.exhausted {
		return
	}
	if hint == 0 && (a.probing || a.now < a.until) && !probe {
		return // under way when the pause began
	}
	a.met["throttled"]++
	if hint == 0 {
		hint = 800 * time.Millisecond // the shortest of the pauses that double
	}
	a.until = max(a.until, a.now+min(hint, maxPause))
	a.probing, a.probe = true, wire.LeaseID{}
}

func (a *account) lost(probe bool) {
	if probe {
		a.met["lost"]++
		a.probe = wire.LeaseID{}
	}
}

// TestPausesAreKept settles calls with everything that a provider may say: nothing is
// granted while the account was told to wait, one request goes first after that, and
// one a minute while it is out of money.
func TestPausesAreKept(t *testing.T) {
	t.Parallel()
	met := map[string]int{}
	for seed := range uint64(histories(60)) {
		a := &account{loop: newLoop(t, seed, burstPool(10_000_000, true, 60)), met: met}
		a.loop.hears = a.hears
		for c := range sourceOf {
			for range 4 {
				source, hold := sourceOf[c], time.Duration(a.IntN(2))*time.Hour
				var next func(ticket wire.TicketID)
				next = func(ticket wire.TicketID) {
					a.ask(Ask{Source: source, Cost: tokens(1000), Wait: hold, Deadline: -1, Ticket: ticket}, func(d wire.Decision) {
						switch d.Verdict {
						case wire.Grant:
							a.in(time.Duration(a.ExpFloat64()*float64(time.Second)), func() {
								a.ends(source, d)
								next(wire.TicketID{})
							})
						case wire.Defer:
							if d.Cause == wire.CauseProviderPause && a.now+time.Duration(d.EtaMS)*time.Millisecond < a.until {
								t.Errorf("at %s: told to wait %d ms in a pause until %s", a.now, d.EtaMS, a.until)
							}
							a.in(time.Duration(d.RetryAfterMS)*time.Millisecond, func() { next(d.Ticket) })
						default:
							met["refused "+d.Cause.String()]++
							a.in(time.Duration(d.RetryAfterMS)*time.Millisecond, func() { next(wire.TicketID{}) })
						}
					})
				}
				a.in(time.Duration(a.Int64N(int64(time.Second))), func() { next(wire.TicketID{}) })
			}
		}
		a.run(time.Hour)
	}
	t.Logf("exercised: %v", met)
	for _, what := range []string{"throttled", "probe", "lost", "exhausted", "refused account_exhausted"} {
		if met[what] < histories(100) {
			t.Errorf("%q was met %d times: the loops test nothing", what, met[what])
		}
	}
}
