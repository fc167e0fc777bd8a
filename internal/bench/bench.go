// Package bench measures grants over NATS against a yardstick in the same run: a
// micro service that answers the same bytes without deciding anything. The machine
// is noisy, so a ratio is what counts; rounds of the two alternate.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"quotabroker/broker"
	"quotabroker/classes"
	"quotabroker/internal/natsnode"
	"quotabroker/internal/service"
	"quotabroker/wire"
)

// Options say how much is measured; see [Options.Check] for their ranges.
type Options struct {
	Clients []int         // connections that ask at once
	Rounds  int           // of each, alternating
	Round   time.Duration // how long one lasts
}

// The most that can be asked for, and the shortest round that says something.
const (
	mostClients   = 10_000
	mostRounds    = 1000
	shortestRound = 10 * time.Millisecond
	longestRound  = time.Minute
)

// Check returns what keeps a run from being measured. The error begins with the
// option's name, which is that of the flag too.
func (o *Options) Check() error {
	if len(o.Clients) == 0 {
		return errors.New("clients is empty; it must be one or more whole numbers, like 1,64")
	}
	for _, n := range o.Clients {
		if n < 1 || n > mostClients {
			return fmt.Errorf("clients is %d; it must be between 1 and %d", n, mostClients)
		}
	}
	switch {
	case o.Rounds < 1 || o.Rounds > mostRounds:
		return fmt.Errorf("rounds is %d; it must be between 1 and %d", o.Rounds, mostRounds)
	case o.Round < shortestRound || o.Round > longestRound:
		return fmt.Errorf("round is %s; it must be between %s and %s", o.Round, shortestRound, longestRound)
	}
	return nil
}

// Row is one measurement: the median over the rounds.
type Row struct {
	Clients   int     `json:"clients"`
	What      string  `json:"what"` // "echo" or "acquire"
	PerSecond float64 `json:"per_second"`
	P50US     float64 `json:"p50_us"`
	P99US     float64 `json:"p99_us"`
}

// Ratio compares acquire with echo at one number of clients.
type Ratio struct {
	Clients    int     `json:"clients"`
	Throughput float64 `json:"throughput"` // acquire per echo
	P99        float64 `json:"p99"`
}

// Report is what a run came to.
type Report struct {
	Rows   []Row   `json:"rows"`
	Ratios []Ratio `json:"ratios"`
}

const (
	source      = "bench"
	echoSubject = "bench.echo"
)

// ask is what a producer that has counted sends, reply what a grant is: the echo
// answers the latter to the former.
var (
	ask = []byte(`{"request_id":"","model":"gpt-4o-mini","input_tokens":812,"max_output_tokens":600,` +
		`"tenant":"acme","kind":"summarise","wait_ms":0,"ttl_ms":1000}`)
	reply = []byte(`{"decision":"grant","lease":"1764540000-18a3","class":"all","pool":"default","ttl_ms":1000,` +
		`"cost":{"requests":1,"input_tokens":812,"output_tokens":600,"tokens":1412,"method":"counted"},` +
		`"borrowed":false,"waited_ms":0,"epoch":1764540000}`)
)

// Run measures. It starts a server of its own on a free loopback port; the broker
// and the echo answer on connections of their own inside the process, the clients
// ask over TCP.
func Run(ctx context.Context, o Options) (Report, error) {
	if err := o.Check(); err != nil {
		return Report{}, err
	}
	b, err := open(ctx)
	if err != nil {
		return Report{}, err
	}
	defer b.close()
	var out Report
	for _, n := range o.Clients {
		rows, err := b.measure(ctx, n, &o)
		if err != nil {
			return out, err
		}
		out.Rows = append(out.Rows, rows[0], rows[1])
		out.Ratios = append(out.Ratios, Ratio{n, rows[1].PerSecond / rows[0].PerSecond, rows[1].P99US / rows[0].P99US})
	}
	return out, nil
}

// bed is what is measured.
type bed struct {
	node *natsnode.Node
	echo *nats.Conn
	svc  *service.Service
}

func open(ctx context.Context) (*bed, error) {
	node, err := natsnode.StartEmbedded(natsnode.Embedded{Port: -1})
	if err != nil {
		return nil, err
	}
	b := &bed{node: node}
	if err := b.start(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bed) start(ctx context.Context) error {
	var err error
	if b.echo, err = b.node.Connect(nats.Name("echo")); err != nil {
		return err
	}
	echo, err := micro.AddService(b.echo, micro.Config{Name: "echo", Version: "1.0.0"})
	if err != nil {
		return err
	}
	if err := echo.AddEndpoint("echo", micro.HandlerFunc(func(r micro.Request) { _ = r.Respond(reply) }),
		micro.WithEndpointSubject(echoSubject)); err != nil {
		return err
	}
	flush, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := b.echo.FlushWithContext(flush); err != nil {
		return err
	}
	cfg := broker.DefaultConfig()
	cfg.Limits = []classes.Limit{{Metric: classes.Tokens, Amount: classes.MaxAmount, Span: time.Minute}}
	cfg.Classes = []classes.Class{{Name: "all", Share: classes.Whole, Floor: classes.Whole}}
	cfg.Sources = map[string]string{source: "all"}
	b.svc, err = service.New(service.Options{
		Conn: b.node.Conn(), Config: service.Config{Pools: []broker.Config{cfg}},
		Estimate: func(service.Job, *wire.AcquireRequest) (wire.EstimateReply, *wire.Error) {
			return wire.EstimateReply{Cost: wire.Cost{Requests: 1, InputTokens: 812, OutputTokens: 600, Tokens: 1412, Method: wire.MethodCounted}}, nil
		},
	})
	if err != nil {
		return err
	}
	return b.svc.Start(ctx)
}

func (b *bed) close() {
	if b.svc != nil {
		b.svc.Close()
	}
	if b.echo != nil {
		b.echo.Close()
	}
	b.node.Close()
}

// measure alternates rounds of echo and acquire at n clients, after one of each to
// warm up, and returns the medians, echo first.
func (b *bed) measure(ctx context.Context, n int, o *Options) ([2]Row, error) {
	conns := make([]*nats.Conn, n)
	for i := range conns {
		c, err := nats.Connect(b.node.URL())
		if err != nil {
			return [2]Row{}, notConnected(i, n, err)
		}
		defer c.Close()
		conns[i] = c
	}
	subjects := [2]string{echoSubject, wire.Subject(wire.DefaultPrefix, wire.VerbAcquire, source, "default")}
	names := [2]string{"echo", "acquire"}
	var rounds [2][]Row
	for round := range o.Rounds + 1 {
		for k, subject := range subjects {
			row, err := load(ctx, conns, subject, o.Round)
			if err != nil {
				return [2]Row{}, fmt.Errorf("%s at %d clients: %w", names[k], n, err)
			}
			if round > 0 {
				rounds[k] = append(rounds[k], row)
			}
		}
	}
	var out [2]Row
	for k := range out {
		out[k] = median(rounds[k])
		out[k].Clients, out[k].What = n, names[k]
	}
	return out, nil
}

// notConnected says what to do where not all clients could connect. Where files
// run out, it may be the server that has none left: the client then sees a timeout.
func notConnected(connected, n int, err error) error {
	return fmt.Errorf("only %d of %d clients could connect; each takes two of the files that this process may have open: "+
		"raise that limit (ulimit -n %d), or ask for fewer clients: %w", connected, n, 2*n+100, err)
}

// load asks from every connection for a while, one request at a time each.
func load(ctx context.Context, conns []*nats.Conn, subject string, d time.Duration) (Row, error) {
	ctx, cancel := context.WithTimeout(ctx, d+10*time.Second)
	defer cancel()
	hists := make([]*hdrhistogram.Histogram, len(conns))
	errs := make([]error, len(conns))
	var wg sync.WaitGroup
	begin := time.Now()
	for i, c := range conns {
		hists[i] = hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)
		wg.Go(func() { errs[i] = asks(ctx, c, subject, begin.Add(d), hists[i]) })
	}
	wg.Wait()
	took := time.Since(begin)
	if err := errors.Join(errs...); err != nil {
		return Row{}, err
	}
	all := hists[0]
	for _, h := range hists[1:] {
		all.Merge(h)
	}
	if all.TotalCount() == 0 {
		return Row{}, fmt.Errorf("nothing was answered in a round of %s; a longer one is needed on this machine", d)
	}
	return Row{
		PerSecond: float64(all.TotalCount()) / took.Seconds(),
		P50US:     float64(all.ValueAtQuantile(50)), P99US: float64(all.ValueAtQuantile(99)),
	}, nil
}

func asks(ctx context.Context, c *nats.Conn, subject string, until time.Time, h *hdrhistogram.Histogram) error {
	for {
		t := time.Now()
		if t.After(until) {
			return nil
		}
		m, err := c.RequestWithContext(ctx, subject, ask)
		if err != nil {
			return err
		}
		if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
			return fmt.Errorf("error %s: %s", code, m.Data)
		}
		_ = h.RecordValue(time.Since(t).Microseconds()) // out of range: over a minute, which ctx ends before
	}
}

func median(rows []Row) Row {
	pick := func(of func(Row) float64) float64 {
		v := make([]float64, len(rows))
		for i, r := range rows {
			v[i] = of(r)
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	return Row{
		PerSecond: pick(func(r Row) float64 { return r.PerSecond }),
		P50US:     pick(func(r Row) float64 { return r.P50US }),
		P99US:     pick(func(r Row) float64 { return r.P99US }),
	}
}
