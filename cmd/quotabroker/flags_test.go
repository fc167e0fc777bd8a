package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"quotabroker/client"
	"quotabroker/wire"
)

func TestIsNATS(t *testing.T) {
	for address, want := range map[string]bool{
		"nats://127.0.0.1:4222": true, "nats://host": true, "tls://user:pw@host:4222": true, "wss://host/nats": true,
		"127.0.0.1:4222": true, "[::1]:4222": true, "user:pw@host:4222": true,
		"": false, "bogus": false, ":4222": false, "host:": false, "http://x": false, "nats://": false, "nats://:4222": false, "nats://a b": false,
		"nats://host:65535": true, "nats://host:65536": false, "host:0": false,
	} {
		if got := isNATS(address); got != want {
			t.Errorf("isNATS(%q) = %v", address, got)
		}
	}
}

func TestWhereHidesPasswords(t *testing.T) {
	c := connection{URL: "nats://user:pw@one:4222, token@two:4222,tls://three"}
	if got, want := c.where(), "nats://one:4222,two:4222,tls://three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A bound below what the protocol can say stays a bound: 0 would be none.
func TestWholeDuration(t *testing.T) {
	const ms = time.Millisecond
	for d, want := range map[time.Duration]time.Duration{0: 0, 1: ms, ms: ms, ms + 1: 2 * ms, wire.MaxDurationMS * ms: wire.MaxDurationMS * ms} {
		if got, err := wholeDuration("--wait", d); got != want || err != nil {
			t.Errorf("%v: got %v, %v", d, got, err)
		}
	}
	for _, d := range []time.Duration{-1, wire.MaxDurationMS*ms + 1, 1<<63 - 1} {
		var exit *exitError
		if _, err := wholeDuration("--wait", d); !errors.As(err, &exit) || exit.code != exitUsage {
			t.Errorf("%v: got %v", d, err)
		}
	}
}

func TestParseUsage(t *testing.T) {
	u, err := parseUsage([]byte(`{"input_tokens": 0, "output_tokens": 600}`))
	if err != nil || *u != (wire.Usage{OutputTokens: 600}) {
		t.Errorf("got %v, %v", u, err)
	}
	for _, text := range []string{
		`{}`, `{"output_tokens": 7}`, `{"input_tokens": 7}`, `{"input_tokens": null, "output_tokens": 7}`,
		`{"input_tokens": -1, "output_tokens": 7}`, `{"input_tokens": 1, "output_tokens": 9999999999}`, `7`, `{"input_tokens": "7"`,
	} {
		if u, err := parseUsage([]byte(text)); err == nil {
			t.Errorf("%s: got %v", text, u)
		}
	}
}

// Who types a body can be interrupted, though the read cannot.
func TestReadIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&interrupted{syscall.SIGINT})
	in, typing := io.Pipe()
	t.Cleanup(func() { _ = typing.Close() })
	var said bytes.Buffer
	code := run(ctx, []string{"estimate"}, &streams{in: in, out: io.Discard, err: &said})
	if code != 130 || said.String() != "quotabroker: interrupted\n" {
		t.Errorf("got %d, %q", code, said.String())
	}
}

// A deferral says when the grant comes and when to come back, which differ.
func TestDeferral(t *testing.T) {
	var b bytes.Buffer
	d := wire.Decision{
		Verdict: wire.Defer, Class: "batch", Cause: wire.CauseOrder, Ticket: wire.TicketID{Epoch: 7, N: 2},
		EtaMS: 13_175, RetryAfterMS: 5_049, Position: 1, TokensAhead: 20,
	}
	const want = `deferred 7-t2  the grant is expected in about 13.2s: others of the class are ahead; number 1 of class batch, 20 tokens ahead
         to keep the place, ask again in 5.1s with --ticket 7-t2; with --wait the answer is held until the grant
`
	if err := printDecision(&b, &d, "eval"); err != nil || b.String() != want {
		t.Errorf("got %v\n%s", err, b.String())
	}
}

func TestTokens(t *testing.T) {
	for n, want := range map[int64]string{0: "0 tokens", 1: "1 token", 2: "2 tokens"} {
		if got := tokens(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLeases(t *testing.T) {
	for want, l := range map[string]wire.LeaseStatus{
		"0 leases": {}, "1 lease": {InFlight: 1}, "2 leases": {InFlight: 2}, "1 of 4 leases": {InFlight: 1, Concurrency: 4},
	} {
		if got := leases(l); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A deadline that has passed while a broker was away is the shortest, not none.
func TestRemaining(t *testing.T) {
	req := client.Request{Hold: time.Second, Deadline: 2 * time.Second}
	if r := remaining(req, 400*time.Millisecond); r.Hold != 600*time.Millisecond || r.Deadline != 1600*time.Millisecond {
		t.Errorf("got %v, %v", r.Hold, r.Deadline)
	}
	if r := remaining(req, time.Minute); r.Hold != 0 || r.Deadline != time.Millisecond {
		t.Errorf("got %v, %v", r.Hold, r.Deadline)
	}
	if r := remaining(client.Request{Hold: time.Second}, time.Minute); r.Deadline != 0 {
		t.Errorf("got %v", r.Deadline)
	}
}
