package service

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/wire"
)

// receipts is where a pool hears what became of its grants. Each is published
// with a reply subject of its own, <inbox>.<lease>_<seal>. The producer confirms
// the grant by an empty message there; NATS sends a message of status 503 there
// when nobody listens for the grant. One wildcard subscription hears all of
// them: NATS reports only to a subscription of the connection that published.
//
// The seal keeps producers from one another's grants: the inbox is known to every
// one that was ever granted something, the seal of a lease only to its own.
type receipts struct {
	inbox string // with its dot
	seed  maphash.Seed
	sub   *nats.Subscription
}

// openReceipts subscribes. heard is called for each receipt, on one goroutine.
func openReceipts(conn *nats.Conn, heard func(wire.LeaseID, bool)) (*receipts, error) {
	r := &receipts{inbox: conn.NewInbox() + ".", seed: maphash.MakeSeed()}
	sub, err := conn.Subscribe(r.inbox+"*", func(m *nats.Msg) {
		lease, ok := r.lease(m.Subject)
		if ok && len(m.Data) == 0 {
			heard(lease, m.Header.Get("Status") != "503")
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribing to receipts: %w", err)
	}
	r.sub = sub
	return r, nil
}

// subject returns where the receipt of a lease goes.
func (r *receipts) subject(lease wire.LeaseID) string {
	var room [96]byte
	b := append(room[:0], r.inbox...)
	start := len(b)
	b, _ = lease.AppendText(b)
	seal := maphash.Bytes(r.seed, b[start:])
	b = append(b, '_')
	return string(strconv.AppendUint(b, seal, 36))
}

// lease returns the lease of a receipt; ok is false for a subject that no grant had.
func (r *receipts) lease(subject string) (lease wire.LeaseID, ok bool) {
	name, ok := strings.CutPrefix(subject, r.inbox)
	if !ok {
		return wire.LeaseID{}, false
	}
	name, seal, ok := strings.Cut(name, "_")
	if !ok || strconv.FormatUint(maphash.String(r.seed, name), 36) != seal {
		return wire.LeaseID{}, false
	}
	err := lease.UnmarshalText([]byte(name))
	return lease, err == nil && !lease.IsZero()
}

// receipt puts what was heard of a grant into the inbox.
func (p *pool) receipt(lease wire.LeaseID, arrived bool) {
	it := item{kind: doConfirm, arrived: time.Now(), lease: lease}
	if arrived {
		p.counters.confirmed.Add(1)
	} else {
		it.kind = doAbandon
		p.counters.abandoned.Add(1)
	}
	p.inbox.put(&it)
}
