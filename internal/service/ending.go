package service

import (
	"fmt"
	"runtime/debug"
	"sync"

	"quotabroker/wire"
)

// fell is the end of a loop whose core panicked. Half of a decision may have been
// done then: a broker that went on could give out what is not there, so this one
// gives out nothing any more. Everybody is answered, and the service says that it
// is broken (see [Service.Err]), for a supervisor to start it anew.
func (l *loop) fell() {
	v := recover()
	if v == nil {
		return
	}
	l.counters.panics.Add(1)
	l.log.Error("a bug: the pool has stopped granting", "panic", v, "stack", string(debug.Stack()))
	l.broken.Store(true)
	l.send() // what was decided before
	l.end(wire.Errorf(wire.CodeInternal, "a bug stopped pool %s; nothing was granted", l.name))
	l.fatal(fmt.Errorf("pool %s: the core panicked: %v", l.name, v))
}

// end answers everybody who still waits with the given error, and refuses
// everything from now on.
func (l *loop) end(err *wire.Error) {
	l.timer.Stop()
	for _, items := range [][]item{l.items, l.statuses, l.inbox.close()} {
		for i := range items {
			if verb := items[i].kind.verb(); verb != "" {
				l.fail(&message{verb: verb, reply: items[i].reply}, err)
			}
		}
	}
	for i := range l.askers.slots {
		if s := &l.askers.slots[i]; s.waits {
			l.fail(&message{verb: wire.VerbAcquire, reply: s.reply}, err)
		}
	}
	l.drained.open()
}

// gate is a channel that is closed once.
type gate struct {
	once   sync.Once
	opened chan struct{}
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }
