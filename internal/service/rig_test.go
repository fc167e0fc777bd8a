package service

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"quotabroker/broker"
	"quotabroker/classes"
	"quotabroker/internal/natsnode"
	"quotabroker/wire"
)

// rig is a service on an embedded NATS, with a producer's connection.
type rig struct {
	t    testing.TB
	node *natsnode.Node
	svc  *Service
	conn *nats.Conn
}

// tpm is a pool of one limit with neither margin nor guard, so that sums come out
// even.
func tpm(tokens int64) broker.Config {
	cfg := broker.DefaultConfig()
	cfg.Limits = []classes.Limit{{Metric: classes.Tokens, Amount: tokens, Span: time.Minute}}
	cfg.Margin, cfg.Guard = 0, 0
	return cfg
}

// oneClass is a pool in which nothing is held back for anybody.
func oneClass(tokens int64) broker.Config {
	cfg := tpm(tokens)
	cfg.Classes = []classes.Class{{Name: "only", Share: classes.Whole}}
	cfg.Sources = map[string]string{"api": "only", "eval": "only"}
	return cfg
}

// quarter counts a token for each four bytes of a body; its models begin with "m".
func quarter(_ Job, r *wire.AcquireRequest) (wire.EstimateReply, *wire.Error) {
	in, method := r.InputTokens.Value, wire.MethodCounted
	if len(r.Request) > 0 {
		in, method = int64(len(r.Request)/4), wire.MethodFallback
	}
	out := r.MaxOutputTokens.Or(0)
	return wire.EstimateReply{
		Cost:       wire.Cost{Requests: 1, InputTokens: in, OutputTokens: out, Tokens: in + out, Method: method},
		ModelKnown: r.Model != "" && r.Model[0] == 'm', Encoding: "quarter", Learned: wire.Learned{InputRatio: 1},
	}, nil
}

func newRig(t testing.TB, cfg broker.Config, change ...func(*Options)) *rig {
	t.Helper()
	node, err := natsnode.StartEmbedded(natsnode.Embedded{DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	return rigOn(t, node, cfg, change...)
}

// rigOn closes the node before the service: a service that gives its endpoints up
// on a live connection uses timers of nats.go that are shared by the whole process,
// and those must not be touched inside a bubble.
func rigOn(t testing.TB, node *natsnode.Node, cfg broker.Config, change ...func(*Options)) *rig {
	t.Helper()
	o := Options{
		Conn: node.Conn(), Config: Config{Pools: []broker.Config{cfg}, Hash: "h1"},
		Estimate: quarter, Version: "1.2.3", Instance: "a", Epoch: 7,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, c := range change {
		c(&o)
	}
	svc, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, node: node, svc: svc}
	t.Cleanup(func() {
		node.Close()
		svc.Close()
	})
	if err := svc.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.conn = r.connect()
	return r
}

func (r *rig) connect(opts ...nats.Option) *nats.Conn {
	r.t.Helper()
	c, err := r.node.Connect(opts...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, cfg broker.Config, test func(*testing.T, *rig), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t, cfg, change...)) })
}

// ask sends a request of a source and returns the raw reply.
func (r *rig) ask(verb wire.Verb, source, body string) *nats.Msg {
	r.t.Helper()
	return r.askOn(r.conn, wire.Subject("quota", verb, source, "default"), body)
}

func (r *rig) askOn(c *nats.Conn, subject, body string) *nats.Msg {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	m, err := c.RequestWithContext(ctx, subject, []byte(body))
	if err != nil {
		r.t.Fatalf("%s %s: %v", subject, body, err)
	}
	if verb, _, _, ok := wire.SplitSubject("quota", subject); ok {
		checkSchema(r.t, verb, m)
	}
	return m
}

// schemas are the protocol's, by their $id.
var schemas = sync.OnceValue(func() map[string]*jsonschema.Resolved {
	out := map[string]*jsonschema.Resolved{}
	for _, s := range wire.Schemas() {
		var schema jsonschema.Schema
		if err := json.Unmarshal(s.JSON, &schema); err != nil {
			panic(err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			panic(err)
		}
		out[s.ID] = resolved
	}
	return out
})

// checkSchema checks a reply against what the endpoint's metadata says of it.
func checkSchema(t testing.TB, verb wire.Verb, m *nats.Msg) {
	t.Helper()
	_, id := wire.SchemaFor(verb)
	if m.Header.Get(micro.ErrorCodeHeader) != "" {
		id = id[:strings.LastIndexByte(id, ':')+1] + "error"
	}
	var v any
	if err := json.Unmarshal(m.Data, &v); err != nil {
		t.Errorf("%s: %q is not JSON: %v", verb, m.Data, err)
	} else if err := schemas()[id].Validate(v); err != nil {
		t.Errorf("%s: %s is not as its schema says: %v", verb, m.Data, err)
	}
}

// acquire asks and decodes the decision.
func (r *rig) acquire(source, body string) wire.Decision {
	r.t.Helper()
	return r.decision(r.ask(wire.VerbAcquire, source, body))
}

func (r *rig) decision(m *nats.Msg) wire.Decision {
	r.t.Helper()
	var d wire.Decision
	if err := wire.DecodeDecision(m.Data, &d); err != nil {
		r.t.Fatalf("%q is no decision: %v", m.Data, err)
	}
	return d
}

func (r *rig) status() wire.Status {
	r.t.Helper()
	m := r.ask(wire.VerbStatus, "api", `{}`)
	var s wire.Status
	if err := json.Unmarshal(m.Data, &s); err != nil {
		r.t.Fatalf("%q is no status: %v", m.Data, err)
	}
	return s
}

// used returns what is charged in the window of the first limit.
func (r *rig) used() int64 {
	r.t.Helper()
	return r.status().Limits[0].Used
}
