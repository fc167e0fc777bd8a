package broker

import (
	"time"

	"quotabroker/wire"
)

// Cancel takes back what is named: a waiting request leaves the queue, its holder
// getting a plain deferral; a lease in flight is settled as unsent. Where there is
// nothing to take back it says so, and that is no error.
func (b *Broker) Cancel(now time.Time, source string, c wire.CancelRequest) (wire.CancelReply, []Effect, *wire.Error) {
	b.start(now)
	src, ok := b.sources[source]
	if !ok {
		return wire.CancelReply{}, b.finish(), b.unknownSource(source)
	}
	ticket, lease := none, none
	switch {
	case c.RequestID != "":
		if ref, ok := b.byRequest[requestKey{src.index, c.RequestID}]; ok && ref.lease {
			lease = ref.i
		} else if ok {
			ticket = ref.i
		}
	case !c.Ticket.IsZero():
		ticket = b.findTicket(src, c.Ticket)
	default:
		if i, err := b.findLease(source, c.Lease); err == nil && b.leases.at(i).state == inFlight {
			lease = i
		}
	}
	switch {
	case ticket != none:
		t := b.tickets.at(ticket)
		b.stats[t.class].cancelled++
		if t.hold { // whoever waits for the answer gets one
			b.emit(Effect{To: t.holder, Decision: b.deferTicket(ticket)})
		}
		b.dropTicket(ticket)
	case lease != none:
		l := b.leases.at(lease)
		b.correct(l, wire.Cost{Method: l.reserved.Method})
		b.stats[l.class].cancelled++
		l.outcome = wire.OutcomeUnsent
		b.end(lease, settled)
		b.provider.ended(l)
	}
	return wire.CancelReply{Cancelled: ticket != none || lease != none}, b.finish(), nil
}
