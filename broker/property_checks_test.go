package broker

import (
	"fmt"
	"time"

	"quotabroker/wire"
)

func (h *history) granted(t *naiveTicket, job *naiveTicket, d *wire.Decision, ahead, before int64) error {
	m, c := h.m, job.class
	if m.aged(m.head(c)) {
		h.met[metAged]++
	}
	if m.total > m.quota {
		return fmt.Errorf("I10: a grant at U %d over Q %d", m.total, m.quota)
	}
	if t != nil {
		m.remove(t)
		h.forget(t)
	}
	entry := m.grant(c, job.tenant, job.x, job.tag)
	h.leases = append(h.leases, &heldLease{d.Lease, c, job.x, entry})
	if sum := m.granted.add(h.now, job.x); !h.disturbed && sum > m.quota {
		return fmt.Errorf("I1: %d granted within a window, the quota is %d", sum, m.quota)
	}
	free := m.quota - m.total
	if free < ahead {
		return fmt.Errorf("I7: %d is free after a grant, and %d was ahead of it", free, ahead)
	}
	if after := m.deficit(); after > max(before, 0) {
		return fmt.Errorf("I2: a grant took the deficit of the reserves from %d to %d", before, after)
	}
	p := &m.class[c]
	if d.Borrowed != (p.used > p.share) {
		return fmt.Errorf("borrowed is %v with %d of a share of %d", d.Borrowed, p.used, p.share)
	}
	if p.used <= p.floor {
		h.met[metGuaranteed]++
		return nil
	}
	h.met[metBorrowed]++
	if protected := m.protectedOthers(c); free < protected {
		return fmt.Errorf("I5: class %d borrows and leaves %d free, %d is protected", c, free, protected)
	}
	return nil
}

func (h *history) deferred(t *naiveTicket, job *naiveTicket, d *wire.Decision, ahead int64, count int, due bool) error {
	m, c := h.m, job.class
	if err := h.told(job, d, ahead, count, due); err != nil {
		return err
	}
	if err := h.learned(t == nil, c, ahead+job.x); err != nil {
		return err
	}
	if t == nil {
		m.seq++
		t = &naiveTicket{class: c, tenant: job.tenant, x: job.x, tag: job.tag, seq: m.seq, born: h.now, id: d.Ticket.N}
		m.insert(t)
		h.tickets = append(h.tickets, t)
	} else {
		if d.Ticket.N != t.id {
			return fmt.Errorf("ticket %x is answered with ticket %x", t.id, d.Ticket.N)
		}
		h.tried(t, count)
	}
	t.due = h.now + time.Duration(d.RetryAfterMS)*time.Millisecond
	m.told(t)
	if d.Booked {
		h.met[metBooked]++
		t.booked, t.ahead = true, ahead
		m.class[c].booked = max(m.class[c].booked, t.tag)
	}
	return nil
}

// tried notes the head as tried, and moves one that is too large to be served in
// bounded time to the back once it has blocked its class for two windows.
func (h *history) tried(t *naiveTicket, count int) {
	m, p := h.m, &h.m.class[t.class]
	switch {
	case count > 0:
	case !t.tried:
		t.tried, t.since = true, h.now
	case t.x > m.bounded(t.class) && h.now-t.since > 2*m.window && p.live >= 2:
		h.met[metMoved]++
		m.remove(t)
		m.seq++
		t.tag, t.seq, t.tried = max(p.maxFin, t.tag), m.seq, false
		m.insert(t)
		t.ahead, _ = m.ahead(t.class, t.tag, t.seq)
	}
}

// told checks what a deferral says.
func (h *history) told(job *naiveTicket, d *wire.Decision, ahead int64, count int, due bool) error {
	m, c := h.m, job.class
	eta, retry := time.Duration(d.EtaMS)*time.Millisecond, time.Duration(d.RetryAfterMS)*time.Millisecond
	least, most := eta, eta
	if eta > h.cfg.Near {
		far := min(h.cfg.MaxDefer, eta/3)
		least, most = max(h.cfg.Near/2, far*3/4-time.Millisecond), max(h.cfg.Near, far+time.Millisecond)
	}
	if retry < max(least, time.Millisecond) || retry > most {
		return fmt.Errorf("told to come back in %s for an expected wait of %s", retry, eta)
	}
	if want := eta <= m.table[c].Book; d.Booked != want {
		return fmt.Errorf("booked is %v at %s", d.Booked, eta)
	}
	if d.TokensAhead != ahead || d.Position != int64(count)+1 {
		return fmt.Errorf("told that %d tokens are ahead at place %d, want %d at %d", d.TokensAhead, d.Position, ahead, count+1)
	}
	want := wire.CauseOrder
	switch {
	case m.quota-m.total < job.x:
		want = wire.CauseQuota
	case !m.fits(c, job.x):
		want = wire.CauseReserved
	case m.paced(c, job.x, 0) && !due:
		want = wire.CausePace
		h.met[metPaced]++
	}
	if d.Cause != want {
		return fmt.Errorf("told to wait for %s, want %s", d.Cause, want)
	}
	if w := m.table[c].MaxWait; w > 0 && h.now-job.born+eta-time.Millisecond > w {
		return fmt.Errorf("deferred for %s after %s, and max_wait is %s", eta, h.now-job.born, w)
	}
	return nil
}

// learned checks that a reserve grew only where a new ask below its floor was not granted.
func (h *history) learned(isNew bool, c int, n int64) error {
	p := &h.m.class[c]
	was := p.reserve
	p.reserve = h.b.rule.StandingAt(0, c).Reserve
	if p.reserve == was {
		return nil
	}
	if !isNew || p.used+n > p.floor || p.reserve < was || p.reserve > p.most {
		return fmt.Errorf("the reserve of class %d went from %d to %d (at most %d) by an ask, new %v, that takes it to %d of %d",
			c, was, p.reserve, p.most, isNew, p.used+n, p.floor)
	}
	h.met[metLearned]++
	h.upset = h.now
	return nil
}

func (h *history) refused(t *naiveTicket, job *naiveTicket, d *wire.Decision, ahead int64) error {
	m, c := h.m, job.class
	if x := m.largest(c); job.x > x {
		if d.Cause != wire.CauseTooLarge || d.LimitTokens != x || d.RetryAfterMS != 0 {
			return fmt.Errorf("%d is over the largest job %d: %+v", job.x, x, d)
		}
	} else {
		h.met[metSaturated]++
		wait := time.Duration(d.RetryAfterMS) * time.Millisecond
		if w := m.table[c].MaxWait; d.Cause != wire.CauseClassSaturated || w == 0 || h.now-job.born+wait <= w {
			return fmt.Errorf("refused for %s at a wait of %s, max_wait %s", d.Cause, wait, w)
		}
		if err := h.learned(t == nil, c, ahead+job.x); err != nil {
			return err
		}
	}
	if t != nil {
		m.remove(t)
		h.forget(t)
	}
	return nil
}

// sums is I9, and the standing part of I2 and I10, after every step.
func (h *history) sums() error {
	m := h.m
	l := h.b.rule.LimitAt(0)
	if l.Used != m.total || l.Quota != m.quota || l.Level < 0 {
		return fmt.Errorf("I9: the broker has U %d of Q %d, L %d", l.Used, l.Quota, l.Level)
	}
	for c := range m.class {
		p, q := &m.class[c], &h.b.queues[c]
		s := h.b.rule.StandingAt(0, c)
		if s.Used != p.used || s.Waiting != p.queued || s.Used < 0 || q.tickets != len(p.queue) || q.tickets-q.late != p.live {
			return fmt.Errorf("I9: class %d has u %d, q %d in %d tickets, %d late", c, s.Used, s.Waiting, q.tickets, q.late)
		}
		p.reserve = s.Reserve
	}
	missing := m.deficit()
	if missing > 0 || m.total > m.quota {
		h.met[metMissing]++
		if m.total > m.quota {
			h.met[metDebt]++
		}
		if h.now > h.upset+m.window+2*m.bucket {
			return fmt.Errorf("I2, I10: %d of the reserves is missing, %s after the last growth, cut or overrun", missing, h.now-h.upset)
		}
	}
	return nil
}
