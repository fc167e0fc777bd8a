package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/client"
	"quotabroker/wire"
)

// connection is how a command finds the broker.
type connection struct {
	URL    string `name:"url" default:"nats://127.0.0.1:4222" env:"QUOTABROKER_URL" help:"NATS server of the broker."`
	Pool   string `default:"default" help:"The account quota to draw on."`
	Prefix string `default:"quota" help:"First part of the broker's subjects."`
	Creds  string `type:"path" help:"NATS credentials file."`
}

// asker is a connection on behalf of a source.
type asker struct {
	connection
	Source string `env:"QUOTABROKER_SOURCE" help:"Where this work enters, like eval; its class follows from it. Required."`
}

// options checks the flags and makes the client's options of them.
func (c *connection) options(source string) (client.Options, error) {
	const names = "it must be 1 to 32 of A-Z a-z 0-9 _ -"
	o := client.Options{URL: c.URL, Source: source, Pool: c.Pool, Prefix: c.Prefix}
	switch {
	case source == "":
		return o, usageError("--source is missing; name where the work enters, like --source eval, or set QUOTABROKER_SOURCE")
	case !wire.ValidName(source):
		return o, usageError("--source is %q; %s", source, names)
	case !wire.ValidName(c.Pool):
		return o, usageError("--pool is %q; %s", c.Pool, names)
	case c.Prefix == "", strings.ContainsAny(c.Prefix, " \t\r\n*>"), strings.Contains("."+c.Prefix+".", ".."):
		return o, usageError("--prefix is %q; it must be a NATS subject without wildcards, like quota", c.Prefix)
	}
	for _, address := range strings.Split(c.URL, ",") {
		if !isNATS(strings.TrimSpace(address)) {
			return o, usageError("--url is %q; it must be the address of a NATS server, like nats://127.0.0.1:4222, or several with commas between them", c.where())
		}
	}
	if c.Creds == "" {
		return o, nil
	}
	creds, err := credentials(c.Creds)
	o.NATS = append(o.NATS, creds)
	return o, err
}

// where is the address for messages: without what may be a password.
func (c *connection) where() string {
	addresses := strings.Split(c.URL, ",")
	for i, address := range addresses {
		scheme, rest, ok := strings.Cut(strings.TrimSpace(address), "://")
		if !ok {
			scheme, rest = "", scheme
		} else {
			scheme += "://"
		}
		addresses[i] = scheme + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return strings.Join(addresses, ",")
}

// isNATS reports whether an address may be a NATS server's: a URL, or host:port.
// A bare word is more likely a mistake than a host.
func isNATS(address string) bool {
	bare := !strings.Contains(address, "://")
	if bare {
		address = "nats://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || bare && u.Port() == "" {
		return false
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return false
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
		return true
	}
	return false
}

// credentials reads a credentials file before the connection does, whose error
// would look like a server that is not there.
func credentials(path string) (nats.Option, error) {
	option := nats.UserCredentials(path)
	var o nats.Options
	err := option(&o)
	if err == nil {
		_, err = o.UserJWT()
	}
	if err == nil {
		_, err = o.SignatureCB([]byte("nonce"))
	}
	if err != nil {
		return nil, usageError("--creds is %q, which cannot be used: %v; it must be a NATS credentials file with a user's JWT and seed", path, withoutPath(err))
	}
	return option, nil
}

// connect opens a client for the source. n may be nil.
func (c *connection) connect(ctx context.Context, source string, n *notice) (*client.Client, error) {
	opts, err := c.options(source)
	if err != nil {
		return nil, err
	}
	if n != nil {
		opts.OnAbsence = func(error) { n.waits() }
	}
	type result struct {
		cl  *client.Client
		err error
	}
	done := make(chan result, 1)
	go func() { // a dial takes 2 s at most and does not end with ctx
		cl, err := client.Connect(ctx, opts)
		done <- result{cl, err}
	}()
	select {
	case r := <-done:
		return r.cl, c.unconnected(r.err)
	case <-ctx.Done():
		go func() {
			if r := <-done; r.cl != nil {
				r.cl.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// notice says that a broker is waited for, for as long as limit, 0 for ever.
func (c *connection) notice(s *streams, limit time.Duration) *notice {
	return &notice{to: s.err, whose: fmt.Sprintf("pool %s at %s", c.Pool, c.where()), limit: limit}
}

// await connects like connect, and waits for a NATS server as long as wait lasts,
// which ends with ctx at the latest. The first attempt may take its time: it has
// as much where nothing is waited for.
func (c *connection) await(ctx, wait context.Context, source string, n *notice) (*client.Client, error) {
	const pause = 500 * time.Millisecond
	for attempt := ctx; ; attempt = wait {
		cl, err := c.connect(attempt, source, n)
		var exit *exitError
		if err == nil || attempt.Err() == nil && (!errors.As(err, &exit) || exit.code != exitUnavailable) {
			return cl, err
		}
		if wait.Err() == nil {
			n.waits()
		}
		select {
		case <-time.After(pause):
		case <-wait.Done():
		}
		if errors.Is(wait.Err(), context.DeadlineExceeded) {
			return nil, &exitError{exitUnavailable, fmt.Sprintf("no NATS server answered at %s within %s; start a broker with \"quotabroker serve --tpm 450k\", or name another with --url", c.where(), n.limit)}
		}
		if i := interruption(ctx); i != nil {
			return nil, &exitError{i.code(), "interrupted while waiting for a broker; nothing was asked for"}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// call connects on behalf of a source and lets f speak to the broker, for as long as
// a person waits.
func call[T any](ctx context.Context, c *connection, source string, f func(context.Context, *client.Client) (T, error)) (answer T, err error) {
	cl, err := c.connect(ctx, source, nil)
	if err != nil {
		return answer, err
	}
	defer cl.Close()
	ctx, cancel := short(ctx)
	defer cancel()
	answer, err = f(ctx, cl)
	return answer, c.explained(ctx, cl, err)
}

// short bounds what a person waits for.
func short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 5*time.Second)
}
