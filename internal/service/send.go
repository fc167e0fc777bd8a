package service

import (
	"encoding/json"
	"sync"
	"time"

	"quotabroker/wire"
)

// send publishes the group's answers. A grant that cannot be published reaches
// nobody: it is given back when the connection is there again, and not before, or
// the next in line would be granted into the void.
func (l *loop) send() {
	for i := range l.out.answers {
		a := &l.out.answers[i]
		if l.publish(a, l.out.bytes[a.from:a.to]) == nil {
			continue
		}
		l.counters.unpublished.Add(1)
		if !a.lease.IsZero() {
			l.lost = append(l.lost, a.lease)
		}
	}
	l.out.reset()
}

func (l *loop) publish(a *answer, body []byte) error {
	switch {
	case a.err != nil:
		l.counters.failed(a.verb, a.err.Code)
		return publishError(l.conn, a.reply, a.err, body)
	case !a.lease.IsZero():
		return l.conn.PublishRequest(a.reply, l.receipts.subject(a.lease), body)
	}
	return l.conn.Publish(a.reply, body)
}

func (l *loop) giveBackLost(now time.Time) {
	for _, lease := range l.lost {
		l.counters.abandoned.Add(1)
		l.perform(now, l.broker.Abandon(now, lease))
	}
	l.lost = l.lost[:0]
}

// answerStatuses takes one snapshot for all who asked for one in this group.
func (l *loop) answerStatuses(now time.Time) {
	if len(l.statuses) == 0 {
		return
	}
	s := l.status(now)
	text := sync.OnceValue(func() any {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err) // a status is plain data
		}
		return json.RawMessage(b)
	})
	for i := range l.statuses {
		l.write(l.statuses[i].source, wire.VerbStatus, l.statuses[i].reply, text)
	}
	clear(l.statuses)
	l.statuses = l.statuses[:0]
}

// status completes the core's snapshot with what only the shell knows.
func (l *loop) status(now time.Time) wire.Status {
	s := l.broker.Status(now)
	s.Version, s.Leader, s.ConfigHash = l.opts.Version, l.opts.Instance, l.hash
	s.UptimeMS = now.Sub(l.origin).Milliseconds()
	return s
}

// write has a worker write and send an answer.
func (p *pool) write(source string, verb wire.Verb, reply string, content func() any) {
	m := message{verb: verb, source: source, reply: reply}
	p.later(&m, func() {
		body, err := json.Marshal(content())
		if err != nil {
			panic(err) // all answers are plain data
		}
		p.reply(&m, body)
	})
}
