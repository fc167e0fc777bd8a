package broker

import (
	"fmt"
	"testing"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// smallPool is a pool of the default classes and 100 000 tokens a minute.
func smallPool(edit func(*Config)) *Broker {
	cfg := DefaultConfig()
	cfg.Margin, cfg.Guard = 0, 0
	cfg.Limits = []classes.Limit{{Metric: classes.Tokens, Amount: 100_000, Span: time.Minute}}
	if edit != nil {
		edit(&cfg)
	}
	if problems := cfg.Validate(); len(problems) > 0 {
		panic(fmt.Sprint(problems))
	}
	return New(cfg, 7, origin)
}

// must asks and returns the one decision.
func must(t testing.TB, b *Broker, at time.Duration, a Ask) wire.Decision {
	t.Helper()
	effects, err := b.Acquire(origin.Add(at), a)
	if err != nil || len(effects) != 1 {
		t.Fatalf("at %s: %d effects, error %v", at, len(effects), err)
	}
	return effects[0].Decision
}

// TestNothingIsAllocated is I12: in steady state neither a grant with its
// settlement nor a deferral nor a re-ask allocates.
func TestNothingIsAllocated(t *testing.T) {
	tenants := [...]string{"a", "b", "c"}
	for _, several := range []bool{false, true} {
		b := smallPool(func(cfg *Config) {
			cfg.Limits[0].Amount = 1_000_000_000
			if several {
				cfg.Concurrency = 100
				cfg.Limits = append(cfg.Limits, classes.Limit{Metric: classes.Requests, Amount: 10_000_000, Span: time.Minute})
			}
			cfg.Classes[0].MaxWait = 0
		})
		now, n, step := time.Duration(0), 0, 10*time.Millisecond
		grant := func() {
			n++
			now += step
			d := must(t, b, now, Ask{Source: "api", Tenant: tenants[n%3], Cost: tokens(10), Deadline: -1})
			if d.Verdict != wire.Grant {
				t.Fatalf("not granted: %+v", d)
			}
			usage := wire.Usage{InputTokens: 5, OutputTokens: 4}
			if _, _, err := b.Settle(origin.Add(now), "api", wire.SettleRequest{Lease: d.Lease, Outcome: wire.OutcomeOK, Usage: &usage}); err != nil {
				t.Fatal(err)
			}
		}
		for range 20_000 { // longer than a lease is remembered
			grant()
		}
		if got := testing.AllocsPerRun(5000, grant); got != 0 {
			t.Errorf("several limits %v: a grant and its settlement allocate %v times", several, got)
		}
		must(t, b, now, Ask{Source: "eval", Cost: tokens(870_000_000), Deadline: -1})
		step = time.Millisecond // so that this fills the window to the end
		var tickets []wire.TicketID
		wait := func(i int) {
			n++
			now += 100 * time.Microsecond
			d := must(t, b, now, Ask{Source: "eval", Tenant: tenants[n%3], Cost: tokens(870_000_000), Deadline: -1, Ticket: tickets[i]})
			if d.Verdict != wire.Defer {
				t.Fatalf("not deferred: %+v", d)
			}
			tickets[i] = d.Ticket
		}
		for i := range 100 {
			tickets = append(tickets, wire.TicketID{})
			wait(i)
		}
		i := 0
		reask := func() {
			grant()
			i = (i + 1) % len(tickets)
			wait(i)
		}
		for range 1000 {
			reask()
		}
		if got := testing.AllocsPerRun(5000, reask); got != 0 {
			t.Errorf("several limits %v: a re-ask allocates %v times", several, got)
		}
		turn := func() { // a new ask takes the place of one that is taken back
			i = (i + 1) % len(tickets)
			if reply, _, err := b.Cancel(origin.Add(now), "eval", wire.CancelRequest{Ticket: tickets[i]}); err != nil || !reply.Cancelled {
				t.Fatalf("not cancelled: %v", err)
			}
			tickets[i] = wire.TicketID{}
			wait(i)
		}
		for range 1000 {
			turn()
		}
		if got := testing.AllocsPerRun(5000, turn); got != 0 {
			t.Errorf("several limits %v: a new deferral allocates %v times", several, got)
		}
	}
}

// TestLateTicketKeepsItsPlace is the other half of I12: a ticket that does not come
// back weighs nothing, and has its old place when it does.
func TestLateTicketKeepsItsPlace(t *testing.T) {
	b := smallPool(nil)
	must(t, b, 0, Ask{Source: "api", Cost: tokens(70_000), Deadline: -1})
	must(t, b, 0, Ask{Source: "scheduler", Cost: tokens(20_000), Deadline: -1})
	must(t, b, 0, Ask{Source: "eval", Cost: tokens(10_000), Deadline: -1})
	var ids [3]wire.TicketID
	for i := range ids {
		d := must(t, b, 0, Ask{Source: "eval", Cost: tokens(5_000), Deadline: -1})
		if ids[i] = d.Ticket; d.Position != int64(i)+1 || d.TokensAhead != int64(i)*5_000 {
			t.Fatalf("ticket %d stands at %d behind %d", i, d.Position, d.TokensAhead)
		}
	}
	again := func(at time.Duration, i int, position, ahead, waiting int64) wire.Decision {
		t.Helper()
		d := must(t, b, at, Ask{Source: "eval", Cost: tokens(5_000), Deadline: -1, Ticket: ids[i]})
		if d.Position != position || d.TokensAhead != ahead {
			t.Errorf("at %s: ticket %d stands at %d behind %d, want %d behind %d", at, i, d.Position, d.TokensAhead, position, ahead)
		}
		if got := b.rule.StandingAt(0, 2).Waiting; got != waiting {
			t.Errorf("at %s: %d tokens are waiting, want %d", at, got, waiting)
		}
		return d
	}
	second := again(time.Second, 1, 2, 5_000, 15_000) // told to come back later than the first was
	again(time.Second, 2, 3, 10_000, 15_000)
	late := b.tickets.at(slot(ids[0].N)).due + b.cfg.Claim
	if due := b.tickets.at(slot(ids[1].N)).due; second.Verdict != wire.Defer || due+b.cfg.Claim <= late {
		t.Fatalf("the second ticket is due at %s, before the first is late at %s", due, late)
	}
	again(late-1, 1, 2, 5_000, 15_000)
	again(late, 1, 1, 0, 10_000)
	again(late, 0, 1, 0, 15_000)
	again(late, 1, 2, 5_000, 15_000)
}

// TestFirstInFirstOutWithinATenant grants the tickets of one tenant in the order of
// its asks, however many were granted in between.
func TestFirstInFirstOutWithinATenant(t *testing.T) {
	t.Parallel()
	l := newLoop(t, 3, func() Config {
		cfg := burstPool(600_000, true, 60)
		cfg.Tiers, cfg.Tenants = nil, nil
		return cfg
	}())
	last := map[string]int{}
	granted := 0
	for _, tenant := range []string{"hog", "small", "other"} {
		n := 0
		every := 300 * time.Millisecond
		if tenant == "hog" {
			every /= 5
		}
		var next func()
		next = func() {
			n++
			mine := n
			l.ask(Ask{Source: "eval", Tenant: tenant, Cost: tokens(500 + l.Int64N(6000)), Wait: 24 * time.Hour, Deadline: -1}, func(d wire.Decision) {
				if d.Verdict != wire.Grant {
					return // its class holds its maximum of tickets
				}
				if mine < last[tenant] {
					t.Errorf("at %s: ask %d of %s is granted after ask %d", l.now, mine, tenant, last[tenant])
				}
				last[tenant] = max(last[tenant], mine)
				granted++
			})
			if l.now < 10*time.Minute {
				l.in(time.Duration(l.ExpFloat64()*float64(every)), next)
			}
		}
		next()
	}
	l.run(20 * time.Minute)
	if granted < 1000 {
		t.Errorf("%d grants: the loop tests nothing", granted)
	}
}
