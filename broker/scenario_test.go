package broker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// Faults that rate limiters and quota systems really had, each replayed here. The
// numbers are those of a rolling minute of 60 000 tokens in 60 buckets.

const minuteQuota = 60_000

// scene is a pool with a clock that the test moves.
type scene struct {
	*loop
	got wire.Decision
}

// newScene has no pacing and no reserves, so that one class alone is told exactly.
func newScene(t *testing.T, change ...func(*Config)) *scene {
	t.Helper()
	cfg := burstPool(minuteQuota, false, 60)
	for i := range cfg.Classes {
		cfg.Classes[i].Floor, cfg.Classes[i].ReserveMin, cfg.Classes[i].ReserveMax = 0, 0, 0
	}
	for _, c := range change {
		c(&cfg)
	}
	return &scene{loop: newLoop(t, 1, cfg)}
}

// wants asks for x tokens and returns the decision that comes at once.
func (s *scene) wants(source, tenant string, x int64, ticket ...wire.TicketID) wire.Decision {
	s.t.Helper()
	a := Ask{Source: source, Tenant: tenant, Cost: tokens(x), Deadline: -1}
	if len(ticket) > 0 {
		a.Ticket = ticket[0]
	}
	s.got = wire.Decision{}
	s.ask(a, func(d wire.Decision) { s.got = d })
	return s.got
}

func (s *scene) granted(source string, x int64) wire.LeaseID {
	s.t.Helper()
	d := s.wants(source, "", x)
	if d.Verdict != wire.Grant {
		s.t.Fatalf("at %s %d tokens of %s: %+v", s.now, x, source, d)
	}
	return d.Lease
}

func (s *scene) used() int64 { return s.b.rule.LimitAt(0).Used }

func (s *scene) uses(lease wire.LeaseID, in, out int64) (wire.SettleReply, *wire.Error) {
	r, effects, err := s.b.Settle(s.time(), "eval", wire.SettleRequest{
		Lease: lease, Outcome: wire.OutcomeOK, Usage: &wire.Usage{InputTokens: in, OutputTokens: out},
	})
	s.deliver(effects)
	return r, err
}

// BKT-01: a clock that steps back gives nothing back, and delays nobody.
func TestClockStepsBack(t *testing.T) {
	s := newScene(t)
	s.run(time.Hour)
	s.granted("eval", minuteQuota)
	for _, step := range []time.Duration{-30 * time.Second, -time.Hour, 0} {
		at := s.time().Add(step)
		var got wire.Decision
		effects, err := s.b.Acquire(at, Ask{To: 7, Source: "eval", Cost: tokens(1000), Deadline: -1})
		if err != nil || len(effects) != 1 {
			t.Fatal(err, effects)
		}
		got = effects[0].Decision
		if got.Verdict != wire.Defer || got.EtaMS < 60_000 || got.EtaMS > 61_000 {
			t.Errorf("with the clock at %s: %+v", step, got)
		}
		if _, effects, err := s.b.Cancel(at, "eval", wire.CancelRequest{Ticket: got.Ticket}); err != nil || len(effects) != 0 {
			t.Error(err, effects)
		}
	}
}

// BKT-03: a limit of zero is a refusal with its own cause, not a wait without end.
func TestLimitOfZero(t *testing.T) {
	none := classes.Portion(0)
	for name, change := range map[string]func(*Config){
		"account": func(c *Config) { c.Limits[0].Amount = 0 },
		"tenant": func(c *Config) {
			c.TenantLimits = []classes.Limit{{Metric: classes.Tokens, Amount: 0, Span: time.Minute}}
		},
		"slots": func(c *Config) { c.Concurrency, c.TenantShare = 10, &none },
	} {
		s := newScene(t, change)
		for range 1000 {
			if d := s.wants("eval", "", 1); d.Verdict != wire.Refuse || d.Cause != wire.CauseNoQuota || d.RetryAfterMS != 0 {
				t.Fatalf("%s: %+v", name, d)
			}
		}
	}
}

// BKT-05: what can never fit is refused at once and for good; what just fits is not.
func TestLargerThanTheQuota(t *testing.T) {
	s := newScene(t)
	if d := s.wants("eval", "", minuteQuota+1); d.Verdict != wire.Refuse || d.Cause != wire.CauseTooLarge || d.RetryAfterMS != 0 || d.LimitTokens != minuteQuota {
		t.Errorf("%+v", d)
	}
	s.granted("eval", minuteQuota)
}

// BKT-07: the wait is exact, and stays so for one who asks too early.
func TestWaitIsExact(t *testing.T) {
	s := newScene(t)
	s.granted("eval", 56_000) // at 0; it leaves when the bucket after its minute ends
	d := s.wants("eval", "", 6000)
	due := time.Duration(d.EtaMS) * time.Millisecond
	if d.Verdict != wire.Defer || due < time.Minute || due > time.Minute+time.Second {
		t.Fatalf("%+v", d)
	}
	s.run(due - time.Millisecond)
	if d = s.wants("eval", "", 6000, d.Ticket); d.Verdict != wire.Defer || d.RetryAfterMS != 1 {
		t.Errorf("a millisecond early: %+v", d)
	}
	s.run(due)
	if d = s.wants("eval", "", 6000, d.Ticket); d.Verdict != wire.Grant {
		t.Errorf("in time: %+v", d)
	}
}

// BKT-11: attempts that are refused use nothing up, and a raised cap acts at once.
func TestRefusedAttemptsAreFree(t *testing.T) {
	capped := func(n int64) func(*Config) {
		return func(c *Config) {
			c.TenantLimits = []classes.Limit{{Metric: classes.Tokens, Amount: n, Span: time.Minute}}
		}
	}
	s := newScene(t, capped(5000))
	for range 1000 {
		if d := s.wants("eval", "a", 6000); d.Verdict != wire.Refuse {
			t.Fatalf("%+v", d)
		}
	}
	if s.used() != 0 {
		t.Errorf("%d tokens are charged", s.used())
	}
	cfg := s.b.cfg
	capped(minuteQuota)(&cfg)
	s.deliver(s.b.Configure(s.time(), cfg))
	if d := s.wants("eval", "a", 6000); d.Verdict != wire.Grant {
		t.Errorf("with a higher cap: %+v", d)
	}
	if d := s.wants("eval", "b", minuteQuota-6000); d.Verdict != wire.Grant {
		t.Errorf("another tenant: %+v", d)
	}
}

// BKT-13: however long nothing was asked for, no more than the quota is there.
func TestLongIdle(t *testing.T) {
	const most = 1_000_000_000
	s := newScene(t, func(c *Config) { c.Limits[0].Amount = most })
	for _, idle := range []time.Duration{time.Hour, 400 * 24 * time.Hour} {
		s.run(s.now + idle)
		s.granted("eval", most)
		if d := s.wants("eval", "", 1); d.Verdict != wire.Defer || s.used() != most {
			t.Errorf("after %s idle: %+v, %d used", idle, d, s.used())
		}
		s.run(s.now + 3*time.Minute)
	}
}

// CLS-03: a class that is alone has the whole quota, evenly where it is paced.
func TestLoneClassHasItAll(t *testing.T) {
	s := newScene(t)
	var granted int64
	for s.now < 2*time.Minute {
		for s.wants("eval", "", 500).Verdict == wire.Grant {
			granted += 500
		}
		_, _, _ = s.b.Cancel(s.time(), "eval", wire.CancelRequest{Ticket: s.got.Ticket})
		s.run(s.now + 100*time.Millisecond)
	}
	if granted < 2*minuteQuota*99/100 {
		t.Errorf("%d tokens in two minutes", granted)
	}
}

// CLS-07: under any load of the others, one job of the lowest class is granted within
// a window.
func TestLowestClassIsServed(t *testing.T) {
	s := newScene(t, func(c *Config) { c.Classes[2].Floor = 5 * classes.Percent })
	for range 300 {
		w := &worker{
			l: s.loop, source: "api", hold: time.Hour, size: func() int64 { return 1000 },
			service: func() time.Duration { return time.Second },
		}
		s.in(time.Duration(s.Int64N(int64(time.Second))), w.start)
	}
	s.run(3 * time.Minute)
	at := s.now
	var waited time.Duration = -1
	s.ask(Ask{Source: "eval", Cost: tokens(2000), Wait: time.Hour, Deadline: -1}, func(d wire.Decision) { waited = s.now - at })
	s.run(at + 10*time.Minute)
	if waited < 0 || waited > 62*time.Second {
		t.Errorf("batch waited %s", waited)
	}
}

// LEA-05: use above the estimate is charged, beyond the quota as a debt.
func TestOverrunIsCharged(t *testing.T) {
	s := newScene(t)
	a, b := s.granted("eval", 1000), s.granted("eval", 50_000)
	if _, err := s.uses(a, 3000, 1000); err != nil || s.used() != 54_000 {
		t.Errorf("%d used, %v", s.used(), err)
	}
	if _, err := s.uses(b, 50_000, 9000); err != nil || s.used() != 63_000 {
		t.Errorf("%d used, %v", s.used(), err)
	}
	if d := s.wants("eval", "", 1); d.Verdict != wire.Defer || d.Cause != wire.CauseQuota || d.EtaMS < 60_000 {
		t.Errorf("in debt: %+v", d)
	}
}

// LEA-07: the same settlement again has the same answer; another one changes nothing.
func TestSettledOnce(t *testing.T) {
	s := newScene(t)
	lease := s.granted("eval", 5000)
	var first wire.SettleReply
	for i := range 3 {
		r, err := s.uses(lease, 500, 500)
		if i == 0 {
			first = r
		}
		if err != nil || r != first || s.used() != 1000 {
			t.Errorf("settlement %d: %+v, %v, %d used", i, r, err, s.used())
		}
	}
	if _, err := s.uses(lease, 700, 500); !errors.Is(err, &wire.Error{Code: wire.CodeAlreadySettled}) || s.used() != 1000 {
		t.Errorf("another settlement: %v, %d used", err, s.used())
	}
}

// LEA-11: what is cancelled comes back whole, whatever was granted since.
func TestCancelReturnsTheAmount(t *testing.T) {
	s := newScene(t)
	s.granted("eval", 15_000)
	s.run(100 * time.Millisecond)
	second := s.granted("eval", 10_000)
	s.run(200 * time.Millisecond)
	s.granted("eval", 3000)
	if _, _, err := s.b.Cancel(s.time(), "eval", wire.CancelRequest{Lease: second}); err != nil || s.used() != 18_000 {
		t.Errorf("%d used, %v", s.used(), err)
	}
}

// QUE-05: a wait ends at its bound although nothing else happens.
func TestWaitEndsByItself(t *testing.T) {
	s := newScene(t, func(c *Config) { c.Classes[2].MaxWait = 90 * time.Second })
	s.granted("eval", minuteQuota)
	s.run(time.Second)
	var ended []time.Duration
	for range 5 {
		s.ask(Ask{Source: "eval", Cost: tokens(50_000), Wait: 15 * time.Second, Deadline: 80 * time.Second}, func(d wire.Decision) {
			if d.Verdict == wire.Grant && s.now > 81*time.Second {
				t.Errorf("granted after its deadline: %+v", d)
			}
			ended = append(ended, s.now)
		})
	}
	s.run(time.Hour)
	for _, at := range ended {
		if at > 16*time.Second {
			t.Errorf("answered at %s", at)
		}
	}
	if len(ended) != 5 {
		t.Errorf("%d of 5 were answered", len(ended))
	}
}

// QUE-07: a limit for each tenant is each tenant's, beside the account's.
func TestLimitForEachTenant(t *testing.T) {
	s := newScene(t, func(c *Config) {
		c.TenantLimits = []classes.Limit{{Metric: classes.Tokens, Amount: 24_000, Span: time.Minute}}
	})
	got := map[string]int64{}
	start := func(tenant string) {
		for range 3 {
			w := &worker{
				l: s.loop, source: "eval", tenant: tenant, hold: time.Hour, size: func() int64 { return 500 },
				service: func() time.Duration { return 100 * time.Millisecond },
				granted: func(x int64, _ time.Duration) { got[tenant] += x },
			}
			w.start()
		}
	}
	start("a")
	start("b")
	s.run(5*time.Minute + 10*time.Second) // five windows of a minute and a bucket
	for _, tenant := range []string{"a", "b"} {
		if got[tenant] < 5*24_000-500 || got[tenant] > 6*24_000 {
			t.Errorf("%s has %d tokens", tenant, got[tenant])
		}
	}
	start("c")
	s.run(s.now + 2*time.Minute)
	before := map[string]int64{"a": got["a"], "b": got["b"], "c": got["c"]}
	s.run(s.now + 10*time.Minute + 10*time.Second)
	for tenant, was := range before {
		if n := got[tenant] - was; n < 10*18_000 || n > 10*22_000 {
			t.Errorf("of three, %s has %d tokens in ten windows", tenant, n)
		}
	}
}

// QUE-09: of many who wait nobody is told the same moment, and each is granted then.
func TestEachHasItsOwnWait(t *testing.T) {
	s := newScene(t)
	for range 60 { // one second's worth each second
		s.granted("eval", 1000)
		s.run(s.now + time.Second)
	}
	asks, granted, told := 0, 0, map[int64]bool{}
	var again func(d wire.Decision)
	again = func(d wire.Decision) {
		if d.Verdict == wire.Grant {
			granted++
			return
		}
		s.in(time.Duration(d.RetryAfterMS)*time.Millisecond, func() {
			asks++
			s.ask(Ask{Source: "eval", Cost: tokens(1000), Deadline: -1, Ticket: d.Ticket}, again)
		})
	}
	for range 50 {
		s.ask(Ask{Source: "eval", Cost: tokens(1000), Deadline: -1}, func(d wire.Decision) {
			if d.Verdict == wire.Defer {
				told[d.EtaMS] = true
			}
			again(d)
		})
	}
	if len(told) < 49 {
		t.Errorf("50 are told %d moments", len(told))
	}
	s.run(s.now + 2*time.Minute)
	if granted != 50 || asks > 200 {
		t.Errorf("%d are granted with %d further asks", granted, asks)
	}
}

// LEA-13: a lease of one source is nothing to another.
func TestLeaseOfAnother(t *testing.T) {
	s := newScene(t)
	lease := s.granted("api", 1000)
	if _, err := s.uses(lease, 1, 1); !errors.Is(err, &wire.Error{Code: wire.CodeUnknownLease}) || s.used() != 1000 {
		t.Errorf("%v, %d used", err, s.used())
	}
}

// throttled tells the broker of a 429 that the provider answered to a call.
func (s *scene) throttled(lease wire.LeaseID, outcome wire.Outcome, retry time.Duration) {
	s.t.Helper()
	r := wire.SettleRequest{Lease: lease, Outcome: outcome, Provider: &wire.ProviderState{Status: 429}}
	if retry > 0 {
		r.Provider.RetryAfterMS = wire.Int(retry.Milliseconds())
	}
	_, effects, err := s.b.Settle(s.time(), "eval", r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.deliver(effects)
}

// FBK-03: a long wait that the provider asks for is kept whole; one call goes first.
func TestProviderWait(t *testing.T) {
	s := newScene(t)
	s.throttled(s.granted("eval", 1), wire.OutcomeThrottled, 171*time.Second)
	for _, at := range []time.Duration{0, 60, 170} {
		s.run(at * time.Second)
		d := s.wants("api", fmt.Sprint(at), 1)
		if d.Verdict != wire.Defer || d.Cause != wire.CauseProviderPause || d.EtaMS < (171*time.Second-s.now).Milliseconds() {
			t.Errorf("at %s: %+v", s.now, d)
		}
		_, _, _ = s.b.Cancel(s.time(), "api", wire.CancelRequest{Ticket: d.Ticket})
	}
	s.run(172 * time.Second)
	probe := s.granted("eval", 1)
	if d := s.wants("api", "", 1); d.Verdict != wire.Defer || d.Cause != wire.CauseProviderPause {
		t.Errorf("a second call before the first has come back: %+v", d)
	}
	if _, err := s.uses(probe, 1, 0); err != nil {
		t.Fatal(err)
	}
	s.granted("api", 1)
}

// FBK-07: an account that is out of money is refused, and probed once a minute.
func TestOutOfMoney(t *testing.T) {
	s := newScene(t)
	s.throttled(s.granted("eval", 1), wire.OutcomeExhausted, 0)
	probes := 0
	for range 300 {
		s.run(s.now + time.Second)
		switch d := s.wants("eval", "", 1); {
		case d.Verdict == wire.Grant:
			probes++
			s.throttled(d.Lease, wire.OutcomeExhausted, 0)
		case d.Verdict != wire.Refuse || d.Cause != wire.CauseAccountExhausted:
			t.Fatalf("%+v", d)
		}
	}
	if probes < 4 || probes > 5 {
		t.Errorf("%d calls in five minutes", probes)
	}
	s.run(s.now + 61*time.Second)
	if _, err := s.uses(s.granted("eval", 1), 1, 0); err != nil {
		t.Fatal(err)
	}
	s.granted("eval", 100)
}

// FBK-09: late refusals of calls that were in flight move the end of a pause to what
// the last of them says, no further, and one success ends it.
func TestPauseDoesNotExtendItself(t *testing.T) {
	s := newScene(t)
	var flying []wire.LeaseID
	for range 13 {
		flying = append(flying, s.granted("eval", 1))
	}
	for i, lease := range flying {
		s.run(time.Duration(5*i) * time.Second)
		s.throttled(lease, wire.OutcomeThrottled, 89*time.Second)
	}
	s.run(148 * time.Second)
	if d := s.wants("eval", "", 1); d.Verdict != wire.Defer {
		t.Errorf("too early: %+v", d)
	}
	s.run(149*time.Second + 10*time.Millisecond)
	if _, err := s.uses(s.granted("eval", 1), 1, 0); err != nil {
		t.Fatal(err)
	}
	s.run(s.now + 10*time.Second)
	s.granted("eval", 30_000)
}
