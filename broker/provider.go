package broker

import (
	"time"

	"quotabroker/wire"
)

// provider is what the account's answers say about the account: whether it may be
// called at all just now.
type provider struct {
	state providerState
	since time.Duration // when the present pause began
	until time.Duration // end of the pause; of exhaustion, the next probe
	steps int           // refusals without a hint in a row
	probe uint64        // the number of the lease that finds out, 0 for none
	asked time.Duration // when it left

	throttled, overloaded, exhausted uint64
}

type providerState uint8

const (
	providerOK providerState = iota
	providerPaused
	providerProbing // the pause is over; one request goes first
	providerExhausted
)

var providerStateNames = [...]string{"ok", "paused", "probing", "exhausted"}

const (
	maxPause       = 10 * time.Minute // no refusal over a per-minute limit stops the account for longer
	maxBackoff     = time.Minute
	probeEvery     = time.Minute     // how often an account out of money is tried
	probeStillGood = 5 * time.Second // a probe that was not refused by then was taken
)

// closed reports how long from now nothing may be sent; 0 if it may. exhausted
// says that it is for want of money.
func (p *provider) closed(now time.Duration) (wait time.Duration, exhausted bool) {
	p.advance(now)
	switch p.state {
	case providerOK:
	case providerPaused:
		return p.until - now, false
	case providerProbing:
		if p.probe != 0 {
			return max(p.asked+probeStillGood-now, 1), false
		}
	case providerExhausted:
		if p.probe != 0 {
			return max(p.asked+probeEvery-now, 1), true
		}
		if now < p.until {
			return p.until - now, true
		}
	}
	return 0, false
}

// advance lets time end a pause.
func (p *provider) advance(now time.Duration) {
	if p.state == providerPaused && now >= p.until {
		p.state, p.probe = providerProbing, 0
	}
	if p.state == providerProbing && p.probe != 0 && now >= p.asked+probeStillGood {
		p.state, p.probe = providerOK, 0
	}
	if p.state == providerExhausted && p.probe != 0 && now >= p.asked+probeEvery {
		p.probe = 0
	}
}

// granted notes a grant, which may be a probe.
func (p *provider) granted(now time.Duration, l *lease) {
	if p.state != providerProbing && p.state != providerExhausted {
		return
	}
	p.probe, p.asked = l.n, now
	if p.state == providerExhausted {
		p.until = now + probeEvery
	}
}

// probes reports whether l is the probe that is in flight. One that was overtaken by
// another pause, or took too long, finds out nothing any more.
func (p *provider) probes(l *lease) bool { return p.probe != 0 && p.probe == l.n }

// ended says that a lease ended without a word from the provider.
func (p *provider) ended(l *lease) {
	if p.probes(l) {
		p.probe = 0
	}
}

// hear takes what a settlement says about the account.
func (b *Broker) hear(l *lease, outcome wire.Outcome, said *wire.ProviderState) {
	p := &b.provider
	p.advance(b.now)
	switch outcome {
	case wire.OutcomeThrottled, wire.OutcomeOverloaded:
		if outcome == wire.OutcomeThrottled {
			p.throttled++
		} else {
			p.overloaded++
		}
		p.pause(b.now, l, hint(said))
	case wire.OutcomeExhausted:
		p.exhausted++
		if p.state != providerExhausted || p.probes(l) {
			p.state, p.until, p.probe = providerExhausted, b.now+probeEvery, 0
			b.refuseHeld()
		}
	case wire.OutcomeOK, wire.OutcomeFailed:
		if p.probes(l) || p.state == providerOK {
			p.state, p.probe, p.steps = providerOK, 0, 0
		}
	case wire.OutcomeUnsent, wire.OutcomeUnknown:
		p.ended(l)
	}
}

// refuseHeld tells those whose answers are held that the account is out of money:
// it is nothing that passes while they wait.
func (b *Broker) refuseHeld() {
	o := outlook{verdict: wire.Refuse, cause: wire.CauseAccountExhausted, wait: probeEvery, limit: noLimit}
	for i := range b.tickets.next {
		if t := b.tickets.at(i); t.n != 0 && t.hold {
			b.refuseTicket(i, &o)
		}
	}
}

// hint returns the wait that the response named, 0 for none.
func hint(said *wire.ProviderState) time.Duration {
	if said == nil {
		return 0
	}
	return time.Duration(said.RetryAfterMS.Or(0)) * time.Millisecond
}

// pause stops the account. A wait that the provider named is kept to, bounded by
// maxPause. Without one the pause doubles with each refusal in a row; calls that
// were under way when it began do not lengthen it.
func (p *provider) pause(now time.Duration, l *lease, hint time.Duration) {
	if p.state == providerExhausted {
		return
	}
	if hint == 0 {
		if p.state != providerOK && !p.probes(l) {
			return
		}
		hint = backoff(p.steps, l.n)
		p.steps++
	}
	if p.state == providerOK || p.probes(l) {
		p.since, p.until = now, 0
	}
	p.until = max(p.until, now+min(hint, maxPause))
	p.state, p.probe = providerPaused, 0
}

// backoff is 1, 2, 4, … seconds up to a minute, spread by 20 % either way so that
// brokers of one account do not come back together.
func backoff(steps int, seed uint64) time.Duration {
	d := min(time.Second<<min(steps, 6), maxBackoff)
	spread := time.Duration(hash32(seed)%401) - 200 // per mille
	return min(d+d*spread/1000, maxBackoff)
}
