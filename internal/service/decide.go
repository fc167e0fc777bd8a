package service

import (
	"fmt"
	"time"

	"quotabroker/broker"
	"quotabroker/wire"
)

// decide puts one item to the core, and into the outbox what answers there are.
func (l *loop) decide(now time.Time, it *item) {
	switch it.kind {
	case doNothing:
	case doAcquire:
		l.acquire(now, it)
	case doExplain:
		l.explain(now, it)
	case doSettle:
		l.settle(now, it)
	case doRenew:
		reply, effects, err := l.broker.Renew(now, it.source, *it.renew)
		if l.opts.Learn != nil {
			l.lessons.renewed(now, it.renew.Lease)
		}
		l.answer(now, it, effects, err, func(b []byte) []byte { return wire.AppendRenewReply(b, &reply) })
	case doCancel:
		reply, effects, err := l.broker.Cancel(now, it.source, *it.cancel)
		l.answer(now, it, effects, err, func(b []byte) []byte { return wire.AppendCancelReply(b, &reply) })
	case doConfirm:
		l.perform(now, l.broker.Confirm(now, it.lease))
	case doAbandon:
		l.perform(now, l.broker.Abandon(now, it.lease))
	case doStatus:
		l.statuses = append(l.statuses, *it)
	case doCall:
		it.call(l, now)
	}
	it.kind = doNothing
}

// answer performs what a call brought about, and answers the caller.
func (l *loop) answer(now time.Time, it *item, effects []broker.Effect, err *wire.Error, body func([]byte) []byte) {
	l.perform(now, effects)
	if err != nil {
		l.out.fail(it.kind.verb(), it.reply, err)
		return
	}
	from := len(l.out.bytes)
	l.out.bytes = body(l.out.bytes)
	l.out.add(answer{verb: it.kind.verb(), reply: it.reply}, from)
}

// acquire counts what the ask spent in the broker's own queues against its wait
// and its deadline.
func (l *loop) acquire(now time.Time, it *item) {
	queued := max(0, now.Sub(it.arrived))
	ask := it.ask
	if ask.Deadline >= 0 && queued >= ask.Deadline+time.Millisecond {
		l.counters.stale.Add(1)
		d := stale(l.name, it.about.class, queued, ask.Deadline, ask.Cost)
		l.out.decision(it.reply, &d)
		return
	}
	ask.Wait = max(0, ask.Wait-queued)
	if ask.Deadline >= 0 {
		ask.Deadline = max(0, ask.Deadline-queued)
	}
	ask.To = l.askers.add(asker{reply: it.reply, about: it.about})
	it.kind = doNothing // from here on it is the asker who is answered
	effects, err := l.broker.Acquire(now, ask)
	l.perform(now, effects)
	if err == nil {
		return
	}
	if w, ok := l.askers.take(ask.To); ok {
		l.out.fail(wire.VerbAcquire, w.reply, err)
	}
}

// stale refuses an ask that is too old to be decided. Nothing is charged.
func stale(pool, class string, queued, deadline time.Duration, cost wire.Cost) wire.Decision {
	return wire.Decision{
		Verdict: wire.Refuse, Cause: wire.CauseDeadline, Class: class, Pool: pool, Cost: cost,
		Message: fmt.Sprintf("the request was not looked at for %s, and its own deadline is %s",
			queued.Round(time.Millisecond), deadline),
	}
}

func (l *loop) settle(now time.Time, it *item) {
	reply, effects, err := l.broker.Settle(now, it.source, *it.settle)
	l.answer(now, it, effects, err, func(b []byte) []byte { return wire.AppendSettleReply(b, &reply) })
	if err != nil || l.opts.Learn == nil {
		return
	}
	lesson, ok := l.lessons.take(it.settle.Lease)
	if ok && it.settle.Outcome == wire.OutcomeOK && it.settle.Usage != nil {
		l.opts.Learn(Lesson{
			Job: Job{Pool: l.name, Source: lesson.source}, Model: lesson.model, Kind: lesson.kind,
			Estimated: lesson.estimated, InputRatio: lesson.inputRatio, Used: *it.settle.Usage,
		})
	}
}

// perform puts the decisions that a call brought about into the outbox.
func (l *loop) perform(now time.Time, effects []broker.Effect) {
	for i := range effects {
		e := &effects[i]
		w, ok := l.askers.take(e.To)
		if !ok {
			continue
		}
		l.out.decision(w.reply, &e.Decision)
		if l.opts.Learn != nil && e.Decision.Verdict == wire.Grant {
			l.lessons.add(now, e.Decision.Lease, lesson{w.about, e.Decision.Cost})
		}
	}
}

// explain leaves the writing of what may be a long answer to the workers.
func (l *loop) explain(now time.Time, it *item) {
	e, err := l.broker.Explain(now, it.ask)
	if err != nil {
		l.out.fail(wire.VerbExplain, it.reply, err)
		return
	}
	l.write(it.source, wire.VerbExplain, it.reply, func() any { return e })
}
