package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"quotabroker/client"
	"quotabroker/internal/natsnode"
)

// What is said of a broker that does not answer is only what is known: a server
// that says that nobody listens is another thing than silence.
func TestAbsence(t *testing.T) {
	node, err := natsnode.StartEmbedded(natsnode.Embedded{Host: "127.0.0.1", Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	c := connection{URL: strings.Replace(node.URL(), "//", "//user:secret@", 1), Pool: "default", Prefix: "quota"}
	cl, err := c.connect(t.Context(), "eval", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	says := func(want string) {
		t.Helper()
		got := c.absence(cl, client.ErrUnavailable)
		if !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("got %s", got)
		}
	}
	says("but no broker serves there")

	const reply = `{"metadata": {"pool": "fast"}, "endpoints": [{"subject": "quota.v1.acquire.*.fast"}]}`
	sub, err := node.Conn().Subscribe("$SRV.INFO.quotabroker", func(m *nats.Msg) {
		_ = m.Respond([]byte(reply))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	says("no broker serves pool default at nats://127.0.0.1:")
	says("; there it serves --pool fast")
	c.Pool = "fast"
	says("the broker of pool fast is there, but did not answer in time")
	c.Prefix = "other"
	says("no broker serves pool fast with prefix other at ")
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Conn().Subscribe("$SRV.INFO.quotabroker", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := node.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	says("answered for pool fast in time; the broker may be frozen or busy")
}

// Who answers and does not let us in is another thing than nobody: it is said for
// what it is, and not waited for.
func TestUnusableServer(t *testing.T) {
	locked, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, Username: "user", Password: "secret", NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	locked.Start()
	t.Cleanup(locked.Shutdown)
	if !locked.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	at := locked.Addr().String()
	for url, want := range map[string]string{
		"nats://" + at:                  " refuses: authorization violation; give credentials that it knows with --creds\n",
		"nats://user:wrong@" + at:       " refuses: authorization violation; give credentials that it knows with --creds\n",
		"tls://user:secret@" + at:       " refuses: secure connection not available; it speaks no TLS, so name it with nats:// instead of tls://, or another with --url\n",
		"nats://" + greeter(t, "SSH-2"): " refuses: protocol exception, INFO not received; it is no NATS server, so name another with --url\n",
	} {
		var said bytes.Buffer
		code := run(t.Context(), []string{"run", "--url", url, "--source", "eval", "--tokens", "5", "--", "true"}, &streams{out: io.Discard, err: &said})
		if code != exitFailed || !strings.HasPrefix(said.String(), "quotabroker: what answers at ") || !strings.HasSuffix(said.String(), want) {
			t.Errorf("%s: got %d, %s", url, code, said.String())
		}
		if strings.Contains(said.String(), "secret") || strings.Contains(said.String(), "wrong") {
			t.Errorf("the password is in %s", said.String())
		}
	}
}

// greeter is the address of a server that greets in a protocol of its own.
func greeter(t *testing.T, greeting string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(greeting + "\r\n"))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}
