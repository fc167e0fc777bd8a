package broker

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// player turns bytes into what may happen to a pool, and writes down every answer.
type player struct {
	b       *Broker
	data    []byte
	now     time.Duration
	to      uint64
	waiting map[uint64]bool // who has asked and was not answered
	tickets []wire.TicketID
	leases  []wire.LeaseID
	ticked  int
	log     bytes.Buffer
	poke    func(*Broker, time.Time) // called between any two operations, if set
	broken  string
}

// byte takes the next byte, 0 when there are none left.
func (p *player) byte() int {
	if len(p.data) == 0 {
		return 0
	}
	x := p.data[0]
	p.data = p.data[1:]
	return int(x)
}

// number takes an amount of up to 2^bits, small ones more often.
func (p *player) number(bits int) int64 {
	return int64(1+p.byte()) << (p.byte() % (bits - 7)) >> 1
}

var playedSources = [...]string{"api", "scheduler", "eval", "gone"}

func (p *player) source() string { return playedSources[p.byte()%len(playedSources)] }

// config makes up a valid configuration.
func (p *player) config() Config {
	cfg := DefaultConfig()
	features := p.byte()
	cfg.Buckets = []int{6, 60, 240}[p.byte()%3]
	cfg.Limits = []classes.Limit{{Metric: classes.Tokens, Amount: p.number(40), Span: time.Duration(1+p.byte()%90) * time.Second}}
	if features&1 != 0 {
		cfg.Limits = append(cfg.Limits, classes.Limit{Metric: classes.Requests, Amount: p.number(16), Span: time.Minute})
	}
	if features&2 != 0 {
		cfg.Concurrency = 1 + p.byte()%20
		if share := classes.Portion(p.byte()%101) * classes.Percent; features&4 != 0 {
			cfg.TenantShare = &share
		}
	}
	if features&8 != 0 {
		cfg.TenantLimits = []classes.Limit{{Metric: classes.Tokens, Amount: p.number(30), Span: 10 * time.Second}}
	}
	if features&16 != 0 {
		cfg.Tiers = []Tier{{Name: "a"}, {Name: "b", Base: int64(p.byte()), MaxWait: time.Duration(p.byte()) * time.Second}}
		cfg.Tenants = map[string]string{"t0": "a", "t1": "b", DefaultTenant: "b"}
	}
	if features&32 != 0 {
		cfg.Classes = []classes.Class{
			{Name: "batch", Share: 50 * classes.Percent, Pace: time.Second, Book: 5 * time.Second, AgeAfter: time.Second},
			{Name: "interactive", Share: 50 * classes.Percent, Floor: 50 * classes.Percent, ReserveMax: 50 * classes.Percent, MaxWaiting: 3},
		}
		cfg.Sources = map[string]string{"api": "interactive", "eval": "batch"}
	}
	cfg.Margin, cfg.Guard = classes.Portion(p.byte()%51)*classes.Percent, time.Duration(p.byte()%4)*time.Second
	return cfg
}

// play runs through all bytes.
func (p *player) play() {
	p.waiting = map[uint64]bool{}
	p.b = New(p.config(), 7, origin)
	for len(p.data) > 0 && p.broken == "" && p.ticked < mostTicks {
		p.now += time.Duration(p.byte()) * time.Duration(p.byte()) * time.Millisecond
		p.ticks()
		if p.poke != nil {
			p.poke(p.b, p.time())
		}
		p.one()
		p.check()
	}
	if p.broken == "" {
		p.heard(p.b.Drain(p.time()))
		if len(p.waiting) > 0 || p.b.tickets.live() > 0 {
			p.fail("a pool that drains leaves %d asks unanswered and %d tickets", len(p.waiting), p.b.tickets.live())
		}
	}
}

func (p *player) time() time.Time { return origin.Add(p.now) }

func (p *player) fail(format string, args ...any) {
	if p.broken == "" {
		p.broken = fmt.Sprintf("at %s: ", p.now) + fmt.Sprintf(format, args...)
	}
}

// ticks lets the broker do what is due until now, whenever it asks for it.
func (p *player) ticks() {
	last := time.Time{}
	for range mostTicks {
		at, ok := p.b.Next()
		if !ok || at.After(p.time()) {
			return
		}
		if !last.IsZero() && !at.After(last) {
			p.fail("a tick at %s asks for one at %s", last.Sub(origin), at.Sub(origin))
			return
		}
		last = at
		p.ticked++
		p.heard(p.b.Tick(at))
	}
	p.fail("ticks without end")
}

// mostTicks ends a play in time: a pool of a short window whose answers are held is
// ticked at every one of its buckets. No single step needs as many.
const mostTicks = 30_000

// one lets one thing happen.
func (p *player) one() {
	switch p.byte() % 11 {
	case 0, 1, 2, 3, 4:
		p.ask()
	case 5, 6:
		p.settle()
	case 7:
		reply, effects, err := p.b.Renew(p.time(), p.source(), wire.RenewRequest{Lease: p.lease(), TTLMS: p.number(20)})
		fmt.Fprintln(&p.log, reply, err)
		p.heard(effects)
	case 8:
		c := wire.CancelRequest{Ticket: p.ticket()}
		switch p.byte() % 3 {
		case 0:
			c = wire.CancelRequest{RequestID: fmt.Sprint("r", p.byte()%4)}
		case 1:
			c = wire.CancelRequest{Lease: p.lease()}
		}
		reply, effects, err := p.b.Cancel(p.time(), p.source(), c)
		fmt.Fprintln(&p.log, reply, err)
		p.heard(effects)
	case 9:
		if p.byte()%2 == 0 {
			p.heard(p.b.Confirm(p.time(), p.lease()))
		} else {
			p.heard(p.b.Abandon(p.time(), p.lease()))
		}
	case 10:
		if p.byte()%4 == 0 {
			cfg := p.config()
			if problems := cfg.Validate(); len(problems) == 0 {
				p.heard(p.b.Configure(p.time(), cfg))
			}
		}
	}
}

func (p *player) ask() {
	p.to++
	x := p.number(40)
	flags := p.byte()
	a := Ask{
		To: p.to, Source: p.source(), Tenant: fmt.Sprint("t", p.byte()%4), Deadline: -1,
		Cost: wire.Cost{Requests: 1, InputTokens: x / 2, OutputTokens: x - x/2, Tokens: x}, Confirm: flags&1 != 0,
	}
	if flags&2 != 0 {
		a.Wait = time.Duration(p.number(16)) * time.Millisecond
	}
	if flags&4 != 0 {
		a.Deadline = time.Duration(p.byte()) * 100 * time.Millisecond
	}
	if flags&8 != 0 {
		a.RequestID = fmt.Sprint("r", p.byte()%4)
	}
	if flags&16 != 0 {
		a.Ticket = p.ticket()
	}
	if flags&32 != 0 {
		a.TTL = time.Duration(p.number(16)) * time.Millisecond
	}
	p.waiting[a.To] = true
	effects, err := p.b.Acquire(p.time(), a)
	if err != nil {
		delete(p.waiting, a.To)
		fmt.Fprintln(&p.log, err)
	}
	p.heard(effects)
	if a.Wait == 0 && p.waiting[a.To] {
		p.fail("an ask that may not be held is not answered")
	}
}

func (p *player) settle() {
	s := wire.SettleRequest{Lease: p.lease(), Outcome: wire.Outcome(1 + p.byte()%7)}
	if p.byte()%3 > 0 {
		s.Usage = &wire.Usage{InputTokens: p.number(30), OutputTokens: p.number(30)}
	}
	if p.byte()%3 == 0 {
		s.Provider = &wire.ProviderState{RetryAfterMS: wire.Int(p.number(20))}
	}
	reply, effects, err := p.b.Settle(p.time(), p.source(), s)
	fmt.Fprintln(&p.log, reply, err)
	p.heard(effects)
}

func (p *player) lease() wire.LeaseID {
	if len(p.leases) == 0 {
		return wire.LeaseID{Epoch: uint64(p.byte()), N: uint64(p.byte())}
	}
	return p.leases[p.byte()%len(p.leases)]
}

func (p *player) ticket() wire.TicketID {
	if len(p.tickets) == 0 {
		return wire.TicketID{Epoch: uint64(p.byte()), N: uint64(p.byte())}
	}
	return p.tickets[p.byte()%len(p.tickets)]
}

// heard takes the decisions down; each is for somebody who waits for it.
func (p *player) heard(effects []Effect) {
	for i := range effects {
		e := &effects[i]
		fmt.Fprintf(&p.log, "%d %+v\n", p.now, *e)
		if !p.waiting[e.To] {
			p.fail("a decision for %d, which does not wait: %+v", e.To, e.Decision)
		}
		delete(p.waiting, e.To)
		switch d := &e.Decision; d.Verdict {
		case wire.Grant:
			p.leases = append(p.leases, d.Lease)
		case wire.Defer:
			p.tickets = append(p.tickets, d.Ticket)
		case wire.Refuse:
		}
	}
}

// check compares the sums that the broker keeps with sums over everything.
func (p *player) check() {
	b := p.b
	flying, unconfirmed := 0, 0
	for i := range b.leases.next {
		if l := b.leases.at(i); l.n != 0 && l.state == inFlight {
			if flying++; l.confirmBy != never {
				unconfirmed++
			}
		}
	}
	if flying != b.inFlight || unconfirmed != b.unconfirmed {
		p.fail("%d leases are in flight, %d unconfirmed; counted %d and %d", flying, unconfirmed, b.inFlight, b.unconfirmed)
	}
	var tickets, late, parked [classes.MaxClasses]int
	var need [classes.MaxClasses]classes.Vec
	for i := range b.tickets.next {
		t := b.tickets.at(i)
		switch {
		case t.n == 0:
			continue
		case t.late:
			late[t.class]++
		case t.parked:
			parked[t.class]++
		default:
			need[t.class] = need[t.class].Add(t.need)
		}
		tickets[t.class]++
	}
	for c := range b.queues {
		q := &b.queues[c]
		w := q.waiting(&b.tickets)
		if q.tickets != tickets[c] || q.late != late[c] || q.parked != parked[c] || w.need != need[c] || int(w.count) != tickets[c]-late[c]-parked[c] {
			p.fail("class %d holds %d tickets, %d late, %d parked with %v; counted %+v with %v", c, tickets[c], late[c], parked[c], need[c], q, w)
		}
		for i := range b.rule.Limits() {
			if s := b.rule.StandingAt(i, c); s.Used < 0 || s.Waiting != need[c][b.rule.LimitAt(i).Metric] {
				p.fail("class %d stands at %+v, %v waits", c, s, need[c])
			}
		}
	}
	for i := range b.rule.Limits() {
		s := b.rule.LimitAt(i)
		sum := int64(0)
		for c := range b.queues {
			sum += b.rule.StandingAt(i, c).Used
		}
		if sum != s.Used || s.Level < 0 || s.Window == 0 && s.Used != int64(b.inFlight) {
			p.fail("%s holds %d, the classes %d, its line %d", s.Limit, s.Used, sum, s.Level)
		}
	}
}

// sequence makes up bytes that play for a while.
func sequence(seed uint64) []byte {
	rnd := rand.New(rand.NewPCG(seed, 31))
	data := make([]byte, 200+rnd.IntN(4000))
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	return data
}

// FuzzBroker plays any bytes as what may happen to a pool: nothing panics, every ask
// is answered once, no tick asks for itself again, and all sums are sums.
func FuzzBroker(f *testing.F) {
	for seed := range uint64(20) {
		data := sequence(seed)
		f.Add(data[:min(len(data), 500)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &player{data: data[:min(len(data), 4096)]}
		if p.play(); p.broken != "" {
			t.Fatal(p.broken)
		}
	})
}

// TestSameHistorySameAnswers plays histories twice: the answers are the same to the
// byte, and so they are if somebody looks at the pool, or asks what it would say, at
// any moment in between.
func TestSameHistorySameAnswers(t *testing.T) {
	t.Parallel()
	decided := 0
	for seed := range uint64(histories(400)) {
		data := sequence(1000 + seed)
		first, again := &player{data: data}, &player{data: data}
		first.play()
		again.play()
		if first.broken != "" {
			t.Fatalf("seed %d: %s", seed, first.broken)
		}
		decided += bytes.Count(first.log.Bytes(), []byte("Verdict:"))
		if !bytes.Equal(first.log.Bytes(), again.log.Bytes()) {
			t.Fatalf("seed %d: the same history has other answers", seed)
		}
		watched := &player{data: data, poke: func(b *Broker, at time.Time) {
			b.Status(at)
			_, _ = b.Explain(at, Ask{Source: "api", Tenant: "t3", Cost: tokens(1000), Deadline: -1})
		}}
		watched.play()
		if i := differ(first.log.Bytes(), watched.log.Bytes()); i >= 0 {
			t.Fatalf("seed %d: to look at the pool changes what it answers:\n%s\n%s", seed, line(first.log.Bytes(), i), line(watched.log.Bytes(), i))
		}
	}
	if decided < histories(20_000) {
		t.Errorf("%d decisions: the histories test nothing", decided)
	}
}

// differ returns where two logs begin to differ, negative for nowhere.
func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

// line returns the line of a log that holds a place.
func line(log []byte, at int) []byte {
	from := bytes.LastIndexByte(log[:at], '\n') + 1
	to := bytes.IndexByte(log[at:], '\n')
	if to < 0 {
		return log[from:]
	}
	return log[from : at+to]
}
