package natsnode

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// echo checks that a producer is answered through the node.
func echo(t *testing.T, n *Node, producer *nats.Conn) {
	t.Helper()
	sub, err := n.Conn().Subscribe("echo", func(m *nats.Msg) { _ = m.Respond(m.Data) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := n.Conn().FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := producer.RequestWithContext(ctx, "echo", []byte("hello"))
	if err != nil || string(m.Data) != "hello" {
		t.Fatalf("got %v, %v", m, err)
	}
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
}

func embedded(t *testing.T, o Embedded) *Node {
	t.Helper()
	n, err := StartEmbedded(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func TestInProcessOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := embedded(t, Embedded{DontListen: true})
		if n.URL() != "" {
			t.Errorf("a server that does not listen has the URL %s", n.URL())
		}
		c, err := n.Connect()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		echo(t, n, c)
	})
}

func TestListens(t *testing.T) {
	n := embedded(t, Embedded{Port: -1})
	c, err := nats.Connect(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	echo(t, n, c)
	if !strings.HasPrefix(n.URL(), "nats://127.0.0.1:") || c.MaxPayload() != DefaultMaxPayload {
		t.Errorf("got %s with a payload of %d", n.URL(), c.MaxPayload())
	}
}

func TestMaxPayload(t *testing.T) {
	n := embedded(t, Embedded{DontListen: true, MaxPayload: 1000})
	if err := n.Conn().Publish("x", make([]byte, 1001)); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("got %v", err)
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	port := l.Addr().(*net.TCPAddr).Port
	_, err = StartEmbedded(Embedded{Port: port})
	if err == nil {
		t.Fatal("two listen on one port")
	}
	for _, want := range []string{"port " + l.Addr().String()[len("127.0.0.1:"):] + " is already in use", "nats.listen"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than a line", err)
	}
}

func TestNoAddressOfOurs(t *testing.T) {
	_, err := StartEmbedded(Embedded{Host: "192.0.2.1", Port: -1})
	if err == nil || !strings.Contains(err.Error(), "192.0.2.1 is no address of this machine") {
		t.Errorf("got %v", err)
	}
}

func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := embedded(t, Embedded{DontListen: true})
		n.Conn().Close()
		if err := <-n.Lost(); err == nil || !strings.Contains(err.Error(), "for good") {
			t.Errorf("got %v", err)
		}
		wanted := embedded(t, Embedded{DontListen: true})
		wanted.Close()
		wanted.Close()
		synctest.Wait()
		select {
		case err := <-wanted.Lost():
			t.Errorf("an end that was wanted is a loss: %v", err)
		default:
		}
	})
}

// Nothing is kept for a NATS that is not there: it would be late when it is.
func TestDialBeforeNATSIsThere(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := Dial(External{URL: "nats://" + free.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	select {
	case <-n.Up():
		t.Error("it is up before NATS is there")
	default:
	}
	if err := n.Conn().Publish("x", nil); err == nil {
		t.Error("something was published to nobody, for later")
	}
	status := n.Conn().StatusChanged(nats.CONNECTED)
	server := embedded(t, Embedded{Port: port})
	select {
	case <-status:
	case <-time.After(5 * time.Second):
		t.Fatal("not connected within 5 s")
	}
	<-n.Up()
	c, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	echo(t, n, c)
}

func TestDialRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	n := embedded(t, Embedded{Port: -1})
	here := n.URL()
	for _, c := range []struct {
		name string
		o    External
		want string
	}{
		{"no url", External{}, "needs a url"},
		{"two identities", External{URL: here, Creds: "a", NkeyFile: "b"}, "name one"},
		{"no credentials file", External{URL: here, Creds: filepath.Join(dir, "none")}, "creds: open"},
		{"no nkey", External{URL: here, NkeyFile: file("empty", "")}, "nkey_file"},
		{"half a certificate", External{URL: here, Cert: "a"}, "cert and key together"},
		{"no CA", External{URL: here, CA: filepath.Join(dir, "none")}, "tls.ca: open"},
		{"a CA that is none", External{URL: here, CA: file("ca", "x")}, "connecting to NATS at " + here},
		{"TLS where there is none", External{URL: strings.Replace(here, "nats:", "tls:", 1)}, "secure connection not available"},
		{"an nkey that nobody asks for", External{URL: here, NkeyFile: file("seed", string(seed))}, "nkeys not supported"},
		{"not a URL", External{URL: "nats://[::1"}, "connecting to NATS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := Dial(c.o)
			if err == nil {
				n.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q does not say %q", err, c.want)
			}
		})
	}
}

func TestRedacted(t *testing.T) {
	for urls, want := range map[string]string{
		"nats://user:secret@host:4222":      "nats://host:4222",
		"host:4222, tls://token@other:4222": "nats://host:4222,tls://other:4222",
		"nats://host":                       "nats://host",
	} {
		if got := redacted(urls); got != want {
			t.Errorf("%s: got %s, want %s", urls, got, want)
		}
	}
}

// A hundred thousand errors of a kind are a few lines.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q := newQuiet(slog.New(slog.NewTextHandler(&out, nil)))
		for range 100_000 {
			q.asyncError(nil, &nats.Subscription{Subject: "s"}, nats.ErrSlowConsumer)
			time.Sleep(200 * time.Microsecond) // 20 s
		}
		q.asyncError(nil, nil, nats.ErrPermissionViolation)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[1], "left_out=49999") || !strings.Contains(lines[2], "permission") {
			t.Errorf("got %d lines:\n%s", len(lines), out.String())
		}
	})
}

// A night without NATS is a few lines too, further and further apart, and the next
// outage is said at once.
func TestAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q := newQuiet(slog.New(slog.NewTextHandler(&out, nil)))
		lines := func() int { return strings.Count(out.String(), "\n") }
		q.warn(absence, "NATS is not there yet")
		q.notYet(nil, nats.ErrNoServers)
		if lines() != 1 {
			t.Errorf("an absence is said twice at once:\n%s", out.String())
		}
		for range 8 * 3600 {
			time.Sleep(time.Second)
			q.notYet(nil, nats.ErrNoServers)
		}
		if n := lines(); n < 90 || n > 105 {
			t.Errorf("a night of eight hours has %d lines", n)
		}
		q.connected(nil)
		before := lines()
		q.disconnected(nil, nats.ErrStaleConnection)
		q.notYet(nil, nats.ErrNoServers)
		if lines() != before+1 || !strings.Contains(out.String(), "is down; reconnecting") {
			t.Errorf("the next outage has %d lines", lines()-before)
		}
	})
}
