package broker_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"quotabroker/broker"
	"quotabroker/classes"
	"quotabroker/wire"
)

// TestTranscripts plays the stories in testdata/broker. Every command may carry
// at=TIME; what falls due until then is played first, at its own time. Asks are
// numbered in the order they are made, and answers name the ask they belong to.
//
//	pool KEY=VALUE…      a new pool; input lines are classes, tiers, tenants, sources
//	configure KEY=VALUE… the same, put in force on the running pool
//	ask SOURCE TOKENS    tenant= id= wait= deadline= ttl= ticket= in= out= confirm
//	ask-each N SOURCE TOKENS   the same, N times; answers are counted
//	settle SOURCE LEASE OUTCOME  in= out= retry=
//	renew | cancel | confirm | abandon | drain | explain | state | run
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "../testdata/broker", func(t *testing.T, path string) {
		s := &story{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			s.play(t, d)
			return s.out.String()
		})
	})
}

type story struct {
	pool   *broker.Broker
	cfg    broker.Config
	origin time.Time
	now    time.Duration
	asks   uint64
	out    strings.Builder
}

func (s *story) play(t *testing.T, d *datadriven.TestData) {
	if at, ok := arg(d, "at"); ok {
		s.runUntil(duration(t, at))
	}
	switch d.Cmd {
	case "pool":
		s.cfg = s.parse(t, d)
		s.origin, s.now, s.asks = time.Unix(1_700_000_000, 0), 0, 0
		if problems := s.cfg.Validate(); len(problems) > 0 {
			s.problems(problems)
			return
		}
		s.pool = broker.New(s.cfg, 1, s.origin)
	case "configure":
		cfg := s.parse(t, d)
		if problems := cfg.Validate(); len(problems) > 0 {
			s.problems(problems)
			return
		}
		s.cfg = cfg
		s.effects(s.pool.Configure(s.time(), cfg))
	case "ask":
		s.asks++
		effects, err := s.pool.Acquire(s.time(), s.ask(t, d, d.CmdArgs[0].Key, d.CmdArgs[1].Key))
		s.failed(err)
		s.effects(effects)
	case "ask-each":
		s.askEach(t, d)
	case "settle":
		s.settle(t, d)
	case "renew":
		r, effects, err := s.pool.Renew(s.time(), d.CmdArgs[0].Key, wire.RenewRequest{Lease: lease(t, d.CmdArgs[1].Key), TTLMS: ms(t, d, "ttl")})
		if !s.failed(err) {
			fmt.Fprintf(&s.out, "renewed %s for %dms\n", r.Lease, r.TTLMS)
		}
		s.effects(effects)
	case "cancel":
		s.cancel(t, d)
	case "confirm":
		s.effects(s.pool.Confirm(s.time(), lease(t, d.CmdArgs[0].Key)))
	case "abandon":
		s.effects(s.pool.Abandon(s.time(), lease(t, d.CmdArgs[0].Key)))
	case "drain":
		s.effects(s.pool.Drain(s.time()))
	case "explain":
		e, err := s.pool.Explain(s.time(), s.ask(t, d, d.CmdArgs[0].Key, d.CmdArgs[1].Key))
		if !s.failed(err) {
			fmt.Fprintln(&s.out, e.Why)
		}
	case "state":
		s.state()
	case "run":
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
}

func (s *story) time() time.Time { return s.origin.Add(s.now) }

// runUntil plays what falls due until then.
func (s *story) runUntil(then time.Duration) {
	for s.pool != nil {
		at, ok := s.pool.Next()
		if !ok || at.Sub(s.origin) > then {
			break
		}
		s.now = max(s.now, at.Sub(s.origin))
		s.effects(s.pool.Tick(s.time()))
	}
	s.now = then
}

func (s *story) effects(effects []broker.Effect) {
	for _, e := range effects {
		fmt.Fprintf(&s.out, "%s #%d %s\n", stamp(s.now), e.To, answer(&e.Decision))
	}
}

func stamp(d time.Duration) string { return fmt.Sprintf("%7.3fs", d.Seconds()) }

func answer(d *wire.Decision) string {
	switch d.Verdict {
	case wire.Grant:
		s := fmt.Sprintf("granted %s", d.Lease)
		if d.Borrowed {
			s += " borrowed"
		}
		if d.WaitedMS > 0 {
			s += fmt.Sprintf(" waited=%dms", d.WaitedMS)
		}
		return s
	case wire.Defer:
		s := fmt.Sprintf("deferred %dms %s ticket=%s position=%d", d.RetryAfterMS, d.Cause, d.Ticket, d.Position)
		if d.EtaMS != d.RetryAfterMS {
			s += fmt.Sprintf(" eta=%dms", d.EtaMS)
		}
		if d.Booked {
			s += " booked"
		}
		return s
	default:
		return fmt.Sprintf("refused %s: %s", d.Cause, d.Message)
	}
}

// askEach makes N equal asks and counts what they are answered.
func (s *story) askEach(t *testing.T, d *datadriven.TestData) {
	n, err := strconv.Atoi(d.CmdArgs[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	granted, first, last := 0, "", ""
	for range n {
		s.asks++
		effects, werr := s.pool.Acquire(s.time(), s.ask(t, d, d.CmdArgs[1].Key, d.CmdArgs[2].Key))
		s.failed(werr)
		for _, e := range effects {
			if e.Decision.Verdict == wire.Grant {
				granted++
				continue
			}
			last = fmt.Sprintf("#%d %s", e.To, answer(&e.Decision))
			if first == "" {
				first = last
			}
		}
	}
	fmt.Fprintf(&s.out, "%d of %d granted\n", granted, n)
	if first != "" {
		fmt.Fprintf(&s.out, "first %s\nlast  %s\n", first, last)
	}
}

func (s *story) ask(t *testing.T, d *datadriven.TestData, source, tokens string) broker.Ask {
	in := number(t, tokens)
	a := broker.Ask{To: s.asks, Source: source, Deadline: -1, Cost: wire.Cost{Requests: 1, InputTokens: in}}
	if v, ok := arg(d, "out"); ok {
		a.Cost.OutputTokens = number(t, v)
	}
	a.Cost.Tokens = a.Cost.InputTokens + a.Cost.OutputTokens
	a.Tenant, _ = arg(d, "tenant")
	a.RequestID, _ = arg(d, "id")
	_, a.Confirm = arg(d, "confirm")
	for key, into := range map[string]*time.Duration{"wait": &a.Wait, "deadline": &a.Deadline, "ttl": &a.TTL} {
		if v, ok := arg(d, key); ok {
			*into = duration(t, v)
		}
	}
	if v, ok := arg(d, "ticket"); ok {
		if err := a.Ticket.UnmarshalText([]byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func (s *story) settle(t *testing.T, d *datadriven.TestData) {
	r := wire.SettleRequest{Lease: lease(t, d.CmdArgs[1].Key)}
	if err := r.Outcome.UnmarshalText([]byte(d.CmdArgs[2].Key)); err != nil {
		t.Fatal(err)
	}
	if in, ok := arg(d, "in"); ok {
		r.Usage = &wire.Usage{InputTokens: number(t, in)}
		if out, ok := arg(d, "out"); ok {
			r.Usage.OutputTokens = number(t, out)
		}
	}
	if _, ok := arg(d, "retry"); ok {
		r.Provider = &wire.ProviderState{RetryAfterMS: wire.Int(ms(t, d, "retry"))}
	}
	reply, effects, err := s.pool.Settle(s.time(), d.CmdArgs[0].Key, r)
	if !s.failed(err) {
		late := ""
		if reply.Late {
			late = " late"
		}
		fmt.Fprintf(&s.out, "%s settled%s %s charged=%d delta=%+d\n", stamp(s.now), late, reply.Lease, reply.Charged.Tokens, reply.DeltaTokens)
	}
	s.effects(effects)
}

func (s *story) cancel(t *testing.T, d *datadriven.TestData) {
	var c wire.CancelRequest
	c.RequestID, _ = arg(d, "id")
	if v, ok := arg(d, "ticket"); ok {
		if err := c.Ticket.UnmarshalText([]byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	if v, ok := arg(d, "lease"); ok {
		c.Lease = lease(t, v)
	}
	r, effects, err := s.pool.Cancel(s.time(), d.CmdArgs[0].Key, c)
	if !s.failed(err) {
		fmt.Fprintf(&s.out, "cancelled=%t\n", r.Cancelled)
	}
	s.effects(effects)
}

func (s *story) failed(err *wire.Error) bool {
	if err != nil {
		fmt.Fprintf(&s.out, "error %s: %s\n", err.Code, err.Message)
	}
	return err != nil
}

func (s *story) problems(problems []classes.Problem) {
	for _, p := range problems {
		fmt.Fprintln(&s.out, p.Error())
	}
}

func (s *story) state() {
	st := s.pool.Status(s.time())
	for _, l := range st.Limits {
		fmt.Fprintf(&s.out, "%s used %d of %d, line at %d\n", l.Limit, l.Used, l.Quota, l.Level)
	}
	for _, c := range st.Classes {
		a := c.Amounts[0]
		fmt.Fprintf(&s.out, "  %-11s used %6d share %6d floor %6d reserve %5d borrowed %6d lent %6d waiting %d late %d parked %d in flight %d\n",
			c.Class, a.Used, a.Share, a.Floor, a.Reserve, a.Borrowed, a.Lent, c.WaitingRequests, c.LateRequests, c.ParkedRequests, c.LeasesInFlight)
	}
	fmt.Fprintf(&s.out, "  provider %s\n", st.Provider.State)
}

// parse reads a pool: key=value arguments for the pool, input lines for the rest.
func (s *story) parse(t *testing.T, d *datadriven.TestData) broker.Config {
	cfg := broker.DefaultConfig()
	cfg.Margin, cfg.Guard = 0, 0
	for _, a := range d.CmdArgs {
		v := ""
		if len(a.Vals) > 0 {
			v = a.Vals[0]
		}
		switch a.Key {
		case "at":
		case "limit":
			for _, v := range a.Vals {
				cfg.Limits = append(cfg.Limits, limit(t, v))
			}
		case "tenant-limit":
			cfg.TenantLimits = append(cfg.TenantLimits, limit(t, v))
		case "margin":
			cfg.Margin = percent(t, v)
		case "guard":
			cfg.Guard = duration(t, v)
		case "concurrency":
			cfg.Concurrency = int(number(t, v))
		case "tenant-share":
			p := percent(t, v)
			cfg.TenantShare = &p
		case "ttl":
			cfg.LeaseTTL = duration(t, v)
		case "ageing":
			cfg.Ageing = duration(t, v)
		default:
			t.Fatalf("%s: unknown key %s", d.Pos, a.Key)
		}
	}
	s.lines(t, d.Input, &cfg)
	return cfg
}

// lines reads "class NAME k=v…", "tier NAME k=v…", "tenant NAME TIER" and
// "source NAME CLASS".
func (s *story) lines(t *testing.T, input string, cfg *broker.Config) {
	named := false
	for line := range strings.Lines(input) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		switch f[0] {
		case "class":
			if !named {
				cfg.Classes, named = nil, true
			}
			cfg.Classes = append(cfg.Classes, class(t, f[1], f[2:]))
		case "tier":
			cfg.Tiers = append(cfg.Tiers, tier(t, f[1], f[2:]))
		case "tenant":
			if cfg.Tenants == nil {
				cfg.Tenants = map[string]string{}
			}
			cfg.Tenants[f[1]] = f[2]
		case "source":
			cfg.Sources[f[1]] = f[2]
		case "no-source":
			delete(cfg.Sources, f[1])
		default:
			t.Fatalf("what is %q", line)
		}
	}
}

func class(t *testing.T, name string, pairs []string) classes.Class {
	c := classes.Class{Name: name}
	for _, pair := range pairs {
		k, v, _ := strings.Cut(pair, "=")
		switch k {
		case "share":
			c.Share = percent(t, v)
		case "floor":
			c.Floor = percent(t, v)
		case "reserve":
			low, high, ranged := strings.Cut(v, "..")
			if !ranged {
				high = low
			}
			c.ReserveMin, c.ReserveMax = percent(t, low), percent(t, high)
		case "pace":
			c.Pace = duration(t, v)
		case "book":
			c.Book = duration(t, v)
		case "max-wait":
			c.MaxWait = duration(t, v)
		case "age-after":
			c.AgeAfter = duration(t, v)
		case "max-waiting":
			c.MaxWaiting = int(number(t, v))
		default:
			t.Fatalf("class %s: what is %q", name, pair)
		}
	}
	return c
}

func tier(t *testing.T, name string, pairs []string) broker.Tier {
	out := broker.Tier{Name: name}
	for _, pair := range pairs {
		k, v, _ := strings.Cut(pair, "=")
		switch k {
		case "base":
			out.Base = number(t, v)
		case "max-wait":
			out.MaxWait = duration(t, v)
		case "tenant-share":
			p := percent(t, v)
			out.TenantShare = &p
		default:
			t.Fatalf("tier %s: what is %q", name, pair)
		}
	}
	return out
}

func arg(d *datadriven.TestData, key string) (string, bool) {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			if len(a.Vals) == 0 {
				return "", true
			}
			return a.Vals[0], true
		}
	}
	return "", false
}

func duration(t *testing.T, v string) time.Duration {
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ms(t *testing.T, d *datadriven.TestData, key string) int64 {
	v, ok := arg(d, key)
	if !ok {
		return 0
	}
	return duration(t, v).Milliseconds()
}

func number(t *testing.T, v string) int64 {
	scale := int64(1)
	if k, ok := strings.CutSuffix(v, "k"); ok {
		v, scale = k, 1000
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n * scale
}

func percent(t *testing.T, v string) classes.Portion {
	f, err := strconv.ParseFloat(strings.TrimSuffix(v, "%"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return classes.Portion(f * float64(classes.Percent))
}

// limit reads 60k:tokens/60s.
func limit(t *testing.T, v string) classes.Limit {
	amount, rest, _ := strings.Cut(v, ":")
	name, span, _ := strings.Cut(rest, "/")
	m, ok := classes.ParseMetric(name)
	if !ok {
		t.Fatalf("what is %q", v)
	}
	return classes.Limit{Metric: m, Amount: number(t, amount), Span: duration(t, span)}
}

func lease(t *testing.T, v string) wire.LeaseID {
	var id wire.LeaseID
	if err := id.UnmarshalText([]byte(v)); err != nil {
		t.Fatal(err)
	}
	return id
}
