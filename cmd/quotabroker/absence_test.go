package main

import (
	"strings"
	"testing"

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
