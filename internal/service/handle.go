package service

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nats-io/nats.go/micro"

	"quotabroker/wire"
)

// message is a request as it arrived.
type message struct {
	verb    wire.Verb
	source  string
	reply   string
	data    []byte
	arrived time.Time

	// ask is what an acquire, an estimate or an explain holds, once it is decoded.
	// It stands here to be no allocation of its own.
	ask     wire.AcquireRequest
	decoded bool
}

// inlineBytes is the longest message that a handler decodes itself. The handler
// of a verb is one goroutine for all sources: a longer body would keep the others
// waiting, so it is left to the workers, who take turns between sources.
const inlineBytes = 16 << 10

// jobBytes is about what a job holds besides its message.
const jobBytes = 2 << 10

// handler returns the micro handler of a verb. It never waits, and it survives
// what panics in it: nothing was decided yet.
func (p *pool) handler(verb wire.Verb, take func(*message)) micro.Handler {
	before := len(wire.Subject(p.opts.Prefix, verb, "", "")) - 1
	after := 1 + len(p.name)
	return micro.HandlerFunc(func(r micro.Request) {
		subject := r.Subject()
		m := &message{
			verb: verb, source: subject[before : len(subject)-after],
			reply: r.Reply(), data: r.Data(), arrived: time.Now(),
		}
		p.counters.request(verb)
		defer p.caught(m)
		if p.admit(m, r.Headers()) {
			take(m)
		}
	})
}

// admit refuses what must not be looked at.
func (p *pool) admit(m *message, headers micro.Headers) bool {
	access := p.access.Load()
	_, known := access.classes[m.source]
	size := len(m.data)
	for k, vs := range headers {
		for _, v := range vs {
			size += len(k) + len(v)
		}
	}
	switch {
	case m.reply == "":
		p.counters.noReply.Add(1)
		return false
	case !p.mayReplyTo(access, m):
		p.counters.misdirected.Add(1)
		return false
	case !known && m.verb != wire.VerbStatus:
		p.fail(m, &wire.Error{Code: wire.CodeUnknownSource, Field: "source", Message: fmt.Sprintf(
			"source %.64q is not configured for pool %s; it has %s", m.source, p.name, access.known)})
		return false
	case size > p.opts.MaxRequest:
		p.fail(m, wire.Errorf(wire.CodePayloadTooLarge,
			"the message is %d bytes long; the limit is %d: count the tokens and send input_tokens instead", size, p.opts.MaxRequest))
		return false
	}
	return true
}

// mayReplyTo reports whether the source may have something published to the reply
// subject it names: NATS does not ask.
func (p *pool) mayReplyTo(a *access, m *message) bool {
	if inbox, ok := a.inboxes[m.source]; ok {
		return strings.HasPrefix(m.reply, inbox)
	}
	return m.reply[0] != '$' && !strings.HasPrefix(m.reply, p.opts.Prefix+".")
}

// caught answers a message in whose handling there was a panic.
func (p *pool) caught(m *message) {
	v := recover()
	if v == nil {
		return
	}
	p.counters.panics.Add(1)
	p.log.Error("a bug: a request was not handled", "verb", m.verb, "source", m.source,
		"panic", v, "stack", string(debug.Stack()))
	p.fail(m, wire.Errorf(wire.CodeInternal, "a bug kept the request from being handled; nothing was granted"))
}

func (p *pool) fail(m *message, err *wire.Error) {
	p.counters.failed(m.verb, err.Code)
	if publishError(p.conn, m.reply, err, wire.AppendError(nil, err)) != nil {
		p.counters.unpublished.Add(1)
	}
}

func (p *pool) reply(m *message, body []byte) {
	if publishReply(p.conn, m.reply, body) != nil {
		p.counters.unpublished.Add(1)
	}
}

// put hands an item to the loop.
func (p *pool) put(m *message, it *item) {
	it.source, it.reply, it.arrived = m.source, m.reply, m.arrived
	if !p.inbox.put(it) {
		p.fail(m, p.unavailable())
	}
}

func (p *pool) unavailable() *wire.Error {
	if p.broken.Load() {
		return wire.Errorf(wire.CodeUnavailable, "pool %s has stopped granting because of a bug; it must be started anew", p.name)
	}
	return wire.Errorf(wire.CodeUnavailable, "the broker has more to do than it can; nothing was granted, ask again")
}

// later has a worker do what takes long, in turn with other sources.
func (p *pool) later(m *message, do func()) {
	p.workers.add(m.source, job{
		weight: int64(len(m.data)) + jobBytes,
		run: func() {
			defer p.caught(m)
			do()
		},
		drop: func() { p.fail(m, p.unavailable()) },
	})
}

// bad turns what a decoder returns into an answer.
func (p *pool) bad(m *message, err error) {
	var e *wire.Error
	if !errors.As(err, &e) {
		e = wire.BadField("", "%v", err)
	}
	p.fail(m, e)
}
