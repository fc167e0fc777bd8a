package service

import (
	"encoding/json"
	"time"

	"quotabroker/broker"
	"quotabroker/wire"
)

// onAcquire decides a counted request right away; one with a body is counted first.
func (p *pool) onAcquire(m *message) {
	if len(m.data) > inlineBytes {
		p.later(m, func() { p.countAndAsk(m) })
		return
	}
	if !p.decoded(m) {
		return
	}
	if len(m.ask.Request) > 0 {
		p.later(m, func() { p.countAndAsk(m) })
		return
	}
	p.ask(m)
}

// decoded decodes the ask of a message; if it cannot be, that is answered.
func (p *pool) decoded(m *message) bool {
	if m.decoded {
		return true
	}
	if err := wire.DecodeAcquire(m.data, &m.ask); err != nil {
		p.bad(m, err)
		return false
	}
	m.decoded = true
	return true
}

// countAndAsk is the worker's part of an acquire.
func (p *pool) countAndAsk(m *message) {
	if !p.decoded(m) {
		return
	}
	queued, deadline := time.Since(m.arrived), milliseconds(m.ask.DeadlineMS.Or(0))
	if m.ask.DeadlineMS.Set && queued >= deadline+time.Millisecond {
		p.counters.stale.Add(1)
		d := stale(p.name, p.access.Load().classes[m.source], queued, deadline, wire.Cost{})
		p.reply(m, wire.AppendDecision(nil, &d))
		return
	}
	p.ask(m)
}

// ask estimates a request and hands it to the loop.
func (p *pool) ask(m *message) {
	if e, ok := p.estimateOf(m); ok {
		it := p.item(doAcquire, m, &e)
		p.put(m, &it)
	}
}

// item makes the item of an acquire or an explain.
func (p *pool) item(k kind, m *message, e *wire.EstimateReply) item {
	r := &m.ask
	it := item{
		kind: k,
		ask: broker.Ask{
			Source: m.source, RequestID: r.RequestID, Tenant: r.Tenant, Cost: e.Cost,
			Wait: milliseconds(r.WaitMS), Deadline: -1, TTL: milliseconds(r.TTLMS),
			Ticket: r.Ticket, Confirm: r.Confirm,
		},
		about: about{
			source: m.source, class: p.access.Load().classes[m.source], model: r.Model, kind: r.Kind, inputRatio: e.Learned.InputRatio,
		},
	}
	if r.DeadlineMS.Set {
		it.ask.Deadline = milliseconds(r.DeadlineMS.Value)
	}
	return it
}

// estimateOf says what the ask of a message will cost; an error is answered.
func (p *pool) estimateOf(m *message) (wire.EstimateReply, bool) {
	e, err := p.opts.Estimate(Job{Pool: p.name, Source: m.source}, &m.ask)
	if err != nil {
		p.fail(m, err)
		return e, false
	}
	if !e.ModelKnown && len(m.ask.Request) > 0 {
		p.counters.unknownModels.Add(1)
	}
	return e, true
}

func (p *pool) onSettle(m *message) {
	r := new(wire.SettleRequest)
	if err := wire.DecodeSettle(m.data, r); err != nil {
		p.bad(m, err)
		return
	}
	p.put(m, &item{kind: doSettle, settle: r})
}

func (p *pool) onRenew(m *message) {
	r := new(wire.RenewRequest)
	if err := wire.DecodeRenew(m.data, r); err != nil {
		p.bad(m, err)
		return
	}
	p.put(m, &item{kind: doRenew, renew: r})
}

func (p *pool) onCancel(m *message) {
	r := new(wire.CancelRequest)
	if err := wire.DecodeCancel(m.data, r); err != nil {
		p.bad(m, err)
		return
	}
	p.put(m, &item{kind: doCancel, cancel: r})
}

func (p *pool) onEstimate(m *message) {
	p.later(m, func() {
		if !p.decoded(m) {
			return
		}
		if e, ok := p.estimateOf(m); ok {
			body, err := json.Marshal(e)
			if err != nil {
				panic(err) // an estimate is plain data
			}
			p.reply(m, body)
		}
	})
}

func (p *pool) onExplain(m *message) {
	p.later(m, func() {
		if !p.decoded(m) {
			return
		}
		if e, ok := p.estimateOf(m); ok {
			it := p.item(doExplain, m, &e)
			p.put(m, &it)
		}
	})
}

// onStatus answers any source, known or not: a status is for operators too, who
// are none. What they may ask is for NATS's permissions to say.
func (p *pool) onStatus(m *message) {
	if err := wire.CheckStatusRequest(m.data); err != nil {
		p.bad(m, err)
		return
	}
	p.put(m, &item{kind: doStatus})
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
