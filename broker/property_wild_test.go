package broker

import (
	"fmt"
	"testing"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// wild is a pool to which everything happens that may: asks of every kind, every
// way to end a lease, new configurations, refusals by the provider. Beside it runs a
// ledger of what must be charged.
type wild struct {
	*loop
	cfg     Config
	reload  bool // configurations change
	leases  []*wildLease
	tickets []wildTicket
	extras  []charged
	meters  map[string]knows
	asked   int
	ended   map[string]int
	met     map[string]int
	grants  map[wire.LeaseID]bool
}

type wildLease struct {
	id      wire.LeaseID
	source  string
	request string
	at      time.Duration
	left    classes.Vec // of what was charged at the grant
	charged classes.Vec // in all
	ended   bool
	settled *wire.SettleRequest
}

type wildTicket struct {
	id     wire.TicketID
	ask    Ask
	source string
}

// charged is an amount that was charged at a time.
type charged struct {
	at  time.Duration
	vec classes.Vec
}

// knows is from when on a limit has metered everything.
type knows struct {
	from   time.Duration
	window time.Duration
	exact  bool // and charges were never carried over to another shape
}

func newWild(t testing.TB, seed uint64, reload bool) *wild {
	l := newLoop(t, seed, burstPool(1000, true, 60))
	w := &wild{loop: l, reload: reload, ended: map[string]int{}, met: map[string]int{}, meters: map[string]knows{}, grants: map[wire.LeaseID]bool{}}
	w.cfg = w.config()
	l.b = New(w.cfg, 7, origin)
	w.shape(nil)
	return w
}

// config makes up a valid configuration.
func (w *wild) config() Config {
	cfg := DefaultConfig()
	cfg.Margin, cfg.Guard = classes.Portion(w.IntN(3))*classes.Percent, time.Duration(w.IntN(3))*time.Second/2
	cfg.Buckets = []int{6, 60, 240}[w.IntN(3)]
	cfg.LeaseTTL = time.Duration(2+w.IntN(60)) * time.Second
	cfg.Limits = []classes.Limit{{Metric: classes.Tokens, Amount: 50_000 + w.Int64N(200_000), Span: time.Minute}}
	for _, more := range []classes.Limit{
		{Metric: classes.Requests, Amount: 20 + w.Int64N(200), Span: 30 * time.Second},
		{Metric: classes.Tokens, Amount: 20_000 + w.Int64N(50_000), Span: time.Duration(2+w.IntN(2)) * time.Second},
		{Metric: classes.OutputTokens, Amount: 20_000 + w.Int64N(100_000), Span: time.Minute},
		{Metric: classes.Tokens, Amount: 2_000_000 + w.Int64N(2_000_000), Span: time.Hour},
	} {
		if w.IntN(3) == 0 {
			cfg.Limits = append(cfg.Limits, more)
		}
	}
	if w.IntN(2) == 0 {
		cfg.Concurrency = 3 + w.IntN(30)
		if w.IntN(2) == 0 {
			share := classes.Portion(w.IntN(60)) * classes.Percent
			cfg.TenantShare = &share
		}
	}
	if w.IntN(3) == 0 {
		cfg.TenantLimits = []classes.Limit{{Metric: classes.Tokens, Amount: 10_000 + w.Int64N(40_000), Span: 20 * time.Second}}
	}
	switch w.IntN(4) {
	case 0:
		cfg.Classes = []classes.Class{{Name: "batch", Share: 60 * classes.Percent, Pace: time.Second, Book: 2 * time.Second}, {Name: "interactive", Share: 40 * classes.Percent, Floor: 30 * classes.Percent}}
		cfg.Sources = map[string]string{"api": "interactive", "eval": "batch", "scheduler": "batch"}
	case 1:
		delete(cfg.Sources, sourceOf[w.IntN(3)])
	}
	if w.IntN(3) == 0 {
		cfg.Tiers = []Tier{{Name: "gold"}, {Name: "lead", Base: 5, MaxWait: 20 * time.Second}}
		cfg.Tenants = map[string]string{"a": "gold", DefaultTenant: "lead"}
	}
	for i := range cfg.Classes {
		if c := &cfg.Classes[i]; w.IntN(3) == 0 {
			c.MaxWait, c.MaxWaiting = time.Duration(w.IntN(20))*time.Second, 1+w.IntN(40)
		}
	}
	return cfg
}

// shape notes from when on every limit has metered everything, after a change.
func (w *wild) shape(old []classes.LimitState) {
	was := w.meters
	w.meters = map[string]knows{}
	for i := range w.b.rule.Limits() {
		s := w.b.rule.LimitAt(i)
		if s.Window == 0 {
			continue
		}
		k := knows{window: s.Window, exact: old == nil}
		if old != nil {
			k.from = w.now
			var source *classes.LimitState
			for j := range old { // the nearest longer span, else the longest
				o := &old[j]
				if o.Metric == s.Metric && o.Window > 0 && (source == nil ||
					o.Span >= s.Span && (source.Span < s.Span || o.Span < source.Span) || source.Span < s.Span && o.Span > source.Span) {
					source = o
				}
			}
			if source != nil {
				k.from = max(was[source.String()].from, w.now-source.Window)
			}
		}
		w.meters[s.String()] = k
	}
}

// books compares what is charged with the ledger.
func (w *wild) books() {
	b := w.b
	b.advance(w.time())
	for i := range b.rule.Limits() {
		s := b.rule.LimitAt(i)
		var sum int64
		for c := range b.queues {
			u := b.rule.StandingAt(i, c).Used
			if sum += u; u < 0 {
				w.t.Fatalf("at %s: class %d uses %d of %s", w.now, c, u, s.Limit)
			}
		}
		if sum != s.Used {
			w.t.Fatalf("at %s: the classes use %d of %s, together it says %d", w.now, sum, s.Limit, s.Used)
		}
		if s.Window == 0 {
			if s.Used != int64(b.inFlight) {
				w.t.Fatalf("at %s: %d leases are counted, %d are in flight", w.now, s.Used, b.inFlight)
			}
			continue
		}
		k := w.meters[s.String()]
		bucket := s.Window / time.Duration(b.cfg.Buckets)
		var least, exact int64
		count := func(at time.Duration, n int64) {
			if at > w.now-s.Window && at > k.from {
				least += n
			}
			if w.now < (at/bucket+1)*bucket+s.Window {
				exact += n
			}
		}
		for _, l := range w.leases {
			count(l.at, l.left[s.Metric])
		}
		for _, x := range w.extras {
			count(x.at, x.vec[s.Metric])
		}
		if s.Used < least || k.exact && s.Used != exact {
			w.t.Fatalf("at %s: %s holds %d; at least %d must be charged, exactly %d (exact: %v)", w.now, s.Limit, s.Used, least, exact, k.exact)
		}
	}
	var flying, tickets int
	for i := range b.leases.next {
		if l := b.leases.at(i); l.n != 0 && l.state == inFlight {
			flying++
		}
	}
	for c := range b.queues {
		tickets += b.queues[c].tickets
	}
	if flying != b.inFlight || tickets != b.tickets.live() {
		w.t.Fatalf("at %s: %d of %d leases are in flight, %d of %d tickets stand in a class", w.now, flying, b.inFlight, tickets, b.tickets.live())
	}
}

// act lets one thing happen. To tick before Next says so does nothing: whatever
// time brings about, the broker has asked to be woken for.
func (w *wild) act() {
	if effects := w.b.Tick(w.time()); len(effects) > 0 {
		w.t.Fatalf("at %s: a tick that was not asked for decides %+v", w.now, effects)
	}
	w.seen()
	switch p := w.IntN(100); {
	case p < 45:
		w.newAsk()
	case p < 60:
		w.again()
	case p < 78:
		w.settleOne()
	case p < 83:
		w.takeBack()
	case p < 87:
		w.renew()
	case p < 90:
		w.cancel()
	case p < 93:
		w.explain()
	case p < 94 && w.reload:
		w.configure()
	case p < 97:
		w.deliver(w.b.Tick(w.time()))
	}
	w.seen()
	if w.IntN(3) == 0 {
		w.books()
	}
}

func (w *wild) configure() {
	var old []classes.LimitState
	for i := range w.b.rule.Limits() {
		old = append(old, w.b.rule.LimitAt(i))
	}
	w.met["configured"]++
	w.cfg = w.config()
	if problems := w.cfg.Validate(); len(problems) > 0 {
		w.t.Fatalf("the configuration is not valid: %v", problems)
	}
	before := w.b.tickets.live()
	effects := append([]Effect(nil), w.b.Configure(w.time(), w.cfg)...)
	w.shape(old)
	w.deliver(effects)
	if w.b.tickets.live() > before {
		w.t.Fatalf("at %s: a new configuration made tickets", w.now)
	}
}

func (w *wild) explain() {
	source := sourceOf[w.IntN(3)]
	if _, ok := w.cfg.Sources[source]; !ok {
		return
	}
	a := Ask{Source: source, Tenant: string(rune('a' + w.IntN(4))), Cost: tokens(w.lognormal(1000, 1, 1, 40_000)), Deadline: -1}
	live := w.b.tickets.live()
	e, err := w.b.Explain(w.time(), a)
	if err != nil {
		w.t.Fatal(err)
	}
	w.b.Status(w.time())
	if w.b.tickets.live() != live {
		w.t.Fatalf("at %s: to explain made a ticket", w.now)
	}
	// What is explained is what is answered.
	w.asked++
	w.ask(a, func(d wire.Decision) {
		if d.Verdict != e.Decision.Verdict || d.Cause != e.Decision.Cause || d.EtaMS != e.Decision.EtaMS && d.Cause != wire.CauseProviderPause || d.Position != e.Decision.Position || d.Booked != e.Decision.Booked {
			w.t.Fatalf("at %s: explained %+v, answered %+v", w.now, e.Decision, d)
		}
		w.met["explained "+d.Verdict.String()]++
		w.answered(a, d)
	})
}

func (w *wild) String() string { return fmt.Sprint(w.met, w.ended) }
