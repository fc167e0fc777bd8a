package service

import (
	"time"

	"quotabroker/wire"
)

// lessons remembers what a settlement can be learned from, from the grant to the
// settlement. What nobody settles is forgotten after one to two periods, or when
// there is too much of it, so that lost leases leave nothing behind; a renewal
// starts the time anew.
type lessons struct {
	turned     time.Time
	young, old map[wire.LeaseID]lesson
}

type lesson struct {
	about
	estimated wire.Cost
}

const (
	lessonPeriod = 15 * time.Minute
	mostLessons  = 1 << 16
)

func newLessons(now time.Time) lessons {
	return lessons{turned: now, young: map[wire.LeaseID]lesson{}}
}

func (m *lessons) add(now time.Time, id wire.LeaseID, l lesson) {
	if now.Sub(m.turned) >= lessonPeriod || len(m.young) >= mostLessons {
		m.turned, m.old, m.young = now, m.young, map[wire.LeaseID]lesson{}
	}
	m.young[id] = l
}

// renewed starts the time of a lease anew.
func (m *lessons) renewed(now time.Time, id wire.LeaseID) {
	if l, ok := m.take(id); ok {
		m.add(now, id, l)
	}
}

// take returns what was remembered of a lease, once.
func (m *lessons) take(id wire.LeaseID) (lesson, bool) {
	l, ok := m.young[id]
	if ok {
		delete(m.young, id)
		return l, true
	}
	if l, ok = m.old[id]; ok {
		delete(m.old, id)
	}
	return l, ok
}
