package service

import (
	"sync"
	"time"

	"quotabroker/broker"
	"quotabroker/wire"
)

// kind says what an item asks of the loop.
type kind uint8

const (
	doNothing kind = iota // it is done
	doAcquire
	doExplain
	doSettle
	doRenew
	doCancel
	doConfirm
	doAbandon
	doStatus
	doCall
)

// item is one thing for a loop to do. Which fields count follows from kind.
type item struct {
	kind    kind
	arrived time.Time
	source  string
	reply   string

	ask    broker.Ask             // acquire, explain; To is the loop's to set
	about  about                  // acquire
	lease  wire.LeaseID           // confirm, abandon
	settle *wire.SettleRequest    // settle
	renew  *wire.RenewRequest     // renew
	cancel *wire.CancelRequest    // cancel
	call   func(*loop, time.Time) // call
}

// early reports whether an item is of the kind that acts as of its arrival: a
// grant that was confirmed, or renewed, in time stays so, however long the loop
// was kept from hearing of it.
func (k kind) early() bool { return k == doConfirm || k == doAbandon || k == doRenew }

// room returns how full the inbox may be for an item of this kind to be taken,
// in units of its bound. New work is the first to be refused: a settlement that is
// lost leaves tokens charged, a confirmation that is lost takes a grant back from
// one who uses it.
func (k kind) room() int {
	switch k {
	case doConfirm, doAbandon, doCall:
		return 4
	case doSettle, doRenew, doCancel:
		return 2
	default:
		return 1
	}
}

// verb returns what the item is answered as, "" for one that is not answered.
func (k kind) verb() wire.Verb {
	switch k {
	case doAcquire:
		return wire.VerbAcquire
	case doExplain:
		return wire.VerbExplain
	case doSettle:
		return wire.VerbSettle
	case doRenew:
		return wire.VerbRenew
	case doCancel:
		return wire.VerbCancel
	case doStatus:
		return wire.VerbStatus
	default:
		return ""
	}
}

// inbox is what has arrived at a pool and is not yet decided. Any number of
// goroutines put, one takes.
type inbox struct {
	wake chan struct{} // holds a token while items may be waiting
	most int           // see kind.room

	mu struct {
		sync.Mutex
		items  []item
		closed bool
	}
}

func newInbox(most int) *inbox { return &inbox{wake: make(chan struct{}, 1), most: most} }

// put adds an item. It is refused, with false, when the inbox is full or closed.
func (q *inbox) put(it *item) bool {
	q.mu.Lock()
	if q.mu.closed || len(q.mu.items) >= q.most*it.kind.room() {
		q.mu.Unlock()
		return false
	}
	q.mu.items = append(q.mu.items, *it)
	first := len(q.mu.items) == 1
	q.mu.Unlock()
	if first {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// roomItems is the most room that is kept when it is not needed.
const roomItems = 1 << 12

// take returns everything that is there, and keeps the room of an earlier take
// for what comes next.
func (q *inbox) take(room []item) []item {
	if cap(room) > roomItems {
		room = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.mu.items
	q.mu.items = room[:0]
	return items
}

// waitingSince returns when the oldest item arrived, the zero time if there is none.
func (q *inbox) waitingSince() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.items) == 0 {
		return time.Time{}
	}
	return q.mu.items[0].arrived
}

// close refuses everything from now on, and returns what nobody will take.
func (q *inbox) close() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.mu.items
	q.mu.items, q.mu.closed = nil, true
	return items
}
