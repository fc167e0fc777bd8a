package service

import (
	"time"

	"quotabroker/broker"
	"quotabroker/wire"
)

// loop owns a pool's broker. What it adds to the pool belongs to its one
// goroutine.
type loop struct {
	*pool
	broker  *broker.Broker
	hash    string // of the configuration in force
	askers  askers
	lessons lessons
	out     outbox
	timer   *time.Timer

	items    []item         // taken from the inbox; what is done is doNothing
	statuses []item         // who asked for a status in this group
	lost     []wire.LeaseID // of grants that could not be published
	draining bool
}

const (
	// maxGroup is the most that is decided before the answers leave: few enough
	// that the first does not wait long for the last.
	maxGroup = 256
	// blind is how often a loop whose connection is down looks whether it is back.
	blind = 100 * time.Millisecond
	// soonest keeps a core that wants to be called at once from stopping time.
	soonest = time.Millisecond
)

// run is the loop. It ends when the pool ends, or with the first panic of the
// core, see fell.
func (l *loop) run() {
	defer close(l.done)
	defer l.fell()
	l.arm()
	for {
		due := false
		select {
		case <-l.inbox.wake:
		case <-l.timer.C:
			due = true
		case <-l.quit:
			l.end(wire.Errorf(wire.CodeUnavailable, "pool %s is not served here any more; ask again", l.name))
			return
		}
		l.takeUp() // first, for confirmations that came in time
		if due {
			l.decideGroup(nil)
		}
		l.arm()
		l.busySince.Store(0)
	}
}

// takeUp decides what has arrived, until nothing has.
func (l *loop) takeUp() {
	for {
		l.items = l.inbox.take(l.items)
		if len(l.items) == 0 {
			return
		}
		for rest := l.items; len(rest) > 0; {
			n := min(len(rest), maxGroup)
			l.decideGroup(rest[:n])
			rest = rest[n:]
		}
		clear(l.items) // it holds on to what the messages hold
	}
}

// decideGroup decides a group, or what is due if there is none, and then sends the
// answers. A ledger will write the group between the two.
func (l *loop) decideGroup(group []item) {
	now := time.Now()
	l.busySince.Store(max(1, int64(now.Sub(l.origin))))
	up := l.conn.IsConnected()
	if up {
		l.giveBackLost(now)
	}
	for i := range group {
		if it := &group[i]; it.kind.early() {
			l.decide(it.arrived, it)
		}
	}
	for i := range group {
		it := &group[i]
		l.counters.wait.add(now.Sub(it.arrived))
		if it.kind == doAcquire && !up {
			l.counters.unpublished.Add(1)
			continue
		}
		l.decide(now, it)
	}
	if len(group) == 0 && up {
		l.perform(now, l.broker.Tick(now))
	}
	if len(group) > 0 {
		l.counters.groups.Add(1)
		l.counters.decisions.Add(uint64(len(group)))
	}
	l.send()
	l.answerStatuses(now)
	if l.draining && l.broker.Status(now).Leases.InFlight == 0 {
		l.drained.open()
	}
}

// arm sets the timer to when the core must be called next.
func (l *loop) arm() {
	at, ok := l.broker.Next()
	in := time.Until(at)
	if in <= 0 {
		in = soonest
	}
	if !l.conn.IsConnected() || len(l.lost) > 0 {
		in, ok = blind, true
	}
	if ok {
		l.timer.Reset(in)
	} else {
		l.timer.Stop()
	}
}
