package service

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"quotabroker/broker"
	"quotabroker/internal/natsnode"
	"quotabroker/wire"
)

// outage is a service on a NATS that others run, which can be taken down and
// brought back on the same port. It runs in real time: nats.go reconnects with
// timers that the whole process shares.
type outage struct {
	*rig
	nats *natsnode.Node
	port int
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	noLeaks(t)
	o := &outage{nats: start(t, -1)}
	u, err := url.Parse(o.nats.URL())
	if err != nil {
		t.Fatal(err)
	}
	if o.port, err = strconv.Atoi(u.Port()); err != nil {
		t.Fatal(err)
	}
	node, err := natsnode.Dial(natsnode.External{URL: o.nats.URL()})
	if err != nil {
		t.Fatal(err)
	}
	o.rig = rigOn(t, node, oneClass(1000))
	return o
}

func start(t *testing.T, port int) *natsnode.Node {
	t.Helper()
	n, err := natsnode.StartEmbedded(natsnode.Embedded{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// until waits for what must come within five seconds.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not %s within 5 s", what)
		}
		runtime.Gosched()
	}
}

// OPS-08, RPC-05: not ready while NATS is down, alive all the same, ready again
// by itself; what waited or was in flight is still there.
func TestOutage(t *testing.T) {
	o := newOutage(t)
	ready := func() bool { return o.svc.Ready(t.Context()) == nil }
	until(t, "ready", ready)
	lease := o.acquire("api", `{"input_tokens":1000}`).Lease

	o.nats.Close()
	until(t, "unready", func() bool { return !ready() })
	if err := o.svc.Live(); err != nil {
		t.Errorf("not alive without NATS: %v", err)
	}
	start(t, o.port)
	until(t, "ready again", ready)
	until(t, "connected again", o.conn.IsConnected)
	until(t, "answered again", func() bool {
		_, err := o.conn.RequestWithContext(t.Context(), "quota.v1.status.api.default", []byte(`{}`))
		return err == nil
	})
	m := o.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"unsent"}`, lease))
	if m.Header.Get("Nats-Service-Error-Code") != "" || o.used() != 0 {
		t.Errorf("after the outage: %s, %d tokens charged", m.Data, o.used())
	}
}

// RPC-05: while NATS is down nothing is decided, however long; the service lives
// on, and is not ready.
func TestLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true})
		if err != nil {
			t.Fatal(err)
		}
		srv.Start()
		conn, err := nats.Connect("", nats.InProcessServer(srv), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1))
		if err != nil {
			t.Fatal(err)
		}
		svc, err := New(Options{Conn: conn, Config: Config{Pools: []broker.Config{oneClass(1000)}}, Estimate: quarter})
		if err != nil {
			t.Fatal(err)
		}
		if err := svc.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer svc.Close()
		defer conn.Close()
		producer, err := nats.Connect("", nats.InProcessServer(srv))
		if err != nil {
			t.Fatal(err)
		}
		inbox := producer.NewInbox()
		if _, err := producer.SubscribeSync(inbox); err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{`{"input_tokens":1000}`, `{"input_tokens":600,"wait_ms":70000}`, `{"input_tokens":600,"wait_ms":1000}`} {
			if err := producer.PublishRequest("quota.v1.acquire.api.default", inbox, []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		producer.Close()
		srv.Shutdown()
		srv.WaitForShutdown()
		for range 10 {
			time.Sleep(time.Minute)
			if svc.Live() != nil || svc.Ready(t.Context()) == nil {
				t.Errorf("live: %v; ready: %v", svc.Live(), svc.Ready(t.Context()))
			}
		}
		s, err := svc.Status(t.Context(), "default")
		if c := svc.Counts(); err != nil || c.Unpublished != 0 || c.Abandoned != 0 || s.Classes[0].Grants != 1 {
			t.Errorf("%v, %+v, %+v", err, c, s)
		}
	})
}

// A service may be started before NATS is: it serves as soon as that is there.
func TestStartBeforeNATS(t *testing.T) {
	noLeaks(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	node, err := natsnode.Dial(natsnode.External{URL: "nats://" + free.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	svc, err := New(Options{Conn: node.Conn(), Config: Config{Pools: []broker.Config{oneClass(1000)}}, Estimate: quarter})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { svc.Close(); node.Close() })
	if err := svc.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if svc.Ready(t.Context()) == nil || svc.Live() != nil {
		t.Errorf("without NATS: ready: %v; live: %v", svc.Ready(t.Context()), svc.Live())
	}
	server := start(t, port)
	until(t, "ready", func() bool { return svc.Ready(t.Context()) == nil })
	r := &rig{t: t, node: server, svc: svc}
	r.conn = r.connect()
	if d := r.acquire("api", ask100); d.Verdict != wire.Grant {
		t.Errorf("got %+v", d)
	}
}

// A grant that could not be published is given back once the connection is there.
func TestUnpublishedGrant(t *testing.T) {
	o := newOutage(t)
	lease := o.acquire("api", `{"input_tokens":1000}`).Lease
	if err := o.conn.PublishRequest("quota.v1.acquire.api.default", o.conn.NewInbox(), []byte(`{"input_tokens":600,"wait_ms":60000}`)); err != nil {
		t.Fatal(err)
	}
	until(t, "waiting", func() bool { return o.status().Classes[0].WaitingRequests == 1 })
	o.nats.Close()
	until(t, "down", func() bool { return !o.svc.opts.Conn.IsConnected() })
	// What makes room is heard of although the connection is down: it grants.
	p := o.svc.pools()["default"]
	settle := wire.SettleRequest{Lease: lease, Outcome: wire.OutcomeUnsent}
	p.inbox.put(&item{kind: doSettle, arrived: time.Now(), source: "api", reply: "_INBOX.x", settle: &settle})
	until(t, "granted", func() bool { return o.svc.Counts().Unpublished >= 2 }) // and the settlement's answer
	start(t, o.port)
	until(t, "given back", func() bool {
		s, err := o.svc.Status(t.Context(), "default")
		return err == nil && s.Leases.InFlight == 0 && s.Limits[0].Used == 0 && s.Classes[0].Abandoned == 1
	})
}

// A connection that is closed for good is a failure of the service.
func TestClosedForGood(t *testing.T) {
	o := newOutage(t)
	o.svc.opts.Conn.Close()
	select {
	case err := <-o.svc.Err():
		if err == nil {
			t.Error("a failure without an error")
		}
	case <-time.After(5 * time.Second):
		t.Error("nobody is told")
	}
}

// noLeaks checks that no goroutine of ours or of NATS outlives the test.
func noLeaks(t *testing.T) {
	t.Cleanup(func() {
		all := make([]byte, 4<<20)
		ours := func() bool {
			left := all[:runtime.Stack(all, true)]
			for _, stack := range bytes.Split(left, []byte("\n\n"))[1:] { // the first is this one
				if bytes.Contains(stack, []byte("nats")) || bytes.Contains(stack, []byte("service.(*")) {
					return true
				}
			}
			return false
		}
		for end := time.Now().Add(5 * time.Second); ours(); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("goroutines are left:\n%s", all[:runtime.Stack(all, true)])
			}
		}
	})
}
