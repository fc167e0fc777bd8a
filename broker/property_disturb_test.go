package broker

import (
	"fmt"
	"slices"

	"quotabroker/classes"
	"quotabroker/wire"
)

// cancel takes one ticket out of the queue.
func (h *history) cancel() {
	if len(h.tickets) == 0 {
		h.b.Tick(h.at())
		return
	}
	t := h.tickets[h.IntN(len(h.tickets))]
	there := h.queued(t)
	reply, _, _ := h.b.Cancel(h.at(), sourceOf[t.class], wire.CancelRequest{Ticket: wire.TicketID{Epoch: 7, N: t.id}})
	if reply.Cancelled != there {
		panic(fmt.Sprintf("seed %d: cancelled %v, the ticket stands: %v", h.seed, reply.Cancelled, there))
	}
	if h.forget(t); there {
		h.met[metCancelled]++
		h.m.remove(t)
	}
}

// settle ends one lease: below its estimate or above it, unsent, taken back, or
// long after it expired.
func (h *history) settle() error {
	i := h.IntN(len(h.leases))
	l := h.leases[i]
	h.leases = slices.Delete(h.leases, i, i+1)
	took := int64(float64(l.x) * (0.2 + 1.2*h.Float64()))
	if h.IntN(10) == 0 {
		took = 0
	}
	reply, _, err := h.b.Settle(h.at(), sourceOf[l.class], wire.SettleRequest{
		Lease: l.id, Outcome: wire.OutcomeOK, Usage: &wire.Usage{InputTokens: took / 2, OutputTokens: took - took/2},
	})
	if err != nil {
		if h.now > l.entry.at+h.b.remember {
			return nil // too long ago to be remembered
		}
		return err
	}
	if reply.Late {
		h.met[metExpired]++
	}
	if reply.Charged.Tokens != took || reply.DeltaTokens != took-l.x {
		return fmt.Errorf("settled at %d of %d: %+v", took, l.x, reply)
	}
	if took < l.x {
		h.met[metRefunded]++
		h.m.refund(l.class, l.entry, l.x-took)
	} else if took > l.x {
		h.met[metOverrun]++
		h.m.charge(l.class, took-l.x)
		h.upset = h.now
	}
	return nil
}

// cut puts another quota in force, 30 to 100 % of the first one.
func (h *history) cut() {
	if h.IntN(6) > 0 {
		h.b.Tick(h.at())
		return
	}
	h.met[metCut]++
	cfg := h.cfg
	cfg.Limits = []classes.Limit{cfg.Limits[0]}
	cfg.Limits[0].Amount = cfg.Limits[0].Amount * (30 + h.Int64N(71)) / 100
	h.b.Configure(h.at(), cfg)
	h.upset = h.now
	h.m.configure(&cfg)
	h.read()
	h.m.requeue()
}

// requeue gives every ticket a new place, in the order of the old ones. Bookings
// are not kept, nor work that is now too large.
func (m *naivePool) requeue() {
	var all []*naiveTicket
	for c := range m.class {
		p := &m.class[c]
		all = append(all, p.queue...)
		*p = naiveClass{
			share: p.share, floor: p.floor, most: p.most, reserve: p.reserve,
			charges: p.charges, used: p.used, fin: map[string]int64{},
		}
	}
	slices.SortFunc(all, func(a, b *naiveTicket) int {
		if a.before(b.tag, b.seq) {
			return -1
		}
		return 1
	})
	for _, t := range all {
		p := &m.class[t.class]
		late := t.late
		t.tag, t.booked, t.tried, t.late = max(p.v, p.fin[t.tenant]), false, false, false
		m.insert(t)
		m.setLate(t, late)
		if t.x > m.largest(t.class) {
			m.remove(t)
			t.late = true // so that it is looked for, and found to be gone
		}
	}
}

// returned notes that a late ticket counts again: it is ahead of every booking
// behind it once more.
func (h *history) returned(t *naiveTicket) {
	for _, o := range h.m.class[t.class].queue {
		if o.booked && t.before(o.tag, o.seq) {
			o.ahead += t.x
		}
	}
}

// bookings is I13: what is ahead of a booking never grows, but by a late ticket
// that comes back to its old place.
func (h *history) bookings() (checked int, err error) {
	for c := range h.m.class {
		var ahead int64
		for _, t := range h.m.class[c].queue {
			if t.booked && !t.late {
				checked++
				if ahead > t.ahead {
					return 0, fmt.Errorf("seed %d, at %s: I13: %d are ahead of a booking of class %d that had %d", h.seed, h.now, ahead, c, t.ahead)
				}
				t.ahead = ahead
			}
			if !t.late {
				ahead += t.x
			}
		}
	}
	return checked, nil
}

// deep compares the sums that the twin keeps with sums over everything, and the
// order of the broker's tree with the twin's list.
func (h *history) deep() error {
	m := h.m
	for c := range m.class {
		p := &m.class[c]
		var used, queued int64
		for _, x := range p.charges {
			if h.now < m.leaves(x.at) {
				used += x.n
			}
		}
		var order []uint64
		for _, t := range p.queue {
			if !t.late {
				queued += t.x
			}
			order = append(order, t.id)
		}
		if used != p.used || queued != p.queued {
			return fmt.Errorf("seed %d: the twin itself is wrong: u %d of %d, q %d of %d", h.seed, p.used, used, p.queued, queued)
		}
		if got := h.inOrder(h.b.queues[c].tiers[0].root, nil); !slices.Equal(got, order) {
			return fmt.Errorf("seed %d, at %s: class %d stands in the order %x, want %x", h.seed, h.now, c, got, order)
		}
	}
	return nil
}

// inOrder lists the tickets of a subtree.
func (h *history) inOrder(i int32, ids []uint64) []uint64 {
	if i == none {
		return ids
	}
	t := h.b.tickets.at(i)
	ids = append(h.inOrder(t.left, ids), t.n)
	return h.inOrder(t.right, ids)
}

// age is how long a history lasts, in steps.
func (h *history) age() int { return 1500 + h.IntN(1001) }

// lives runs a history to its end.
func (h *history) lives(steps int) error {
	for i := range steps {
		if err := h.next(); err != nil {
			return err
		}
		if i%64 == 0 {
			if err := h.deep(); err != nil {
				return err
			}
		}
	}
	return nil
}
