package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"quotabroker/client"
	"quotabroker/wire"
)

// explained turns an error of a client that is connected into one sentence that
// says what to do, and gives it its exit code.
func (c *connection) explained(ctx context.Context, cl *client.Client, err error) error {
	var waited *client.NotGranted
	var bad *wire.Error
	switch {
	case interruption(ctx) != nil && errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &waited) && waited.Broker != nil:
		return &exitError{exitUnavailable, notWithin(waited) + ": " + c.absence(cl, waited.Broker)}
	case errors.As(err, &waited):
		return &exitError{exitNotGranted, strings.TrimSuffix(waited.Error(), ": "+waited.Err.Error())}
	case errors.Is(err, client.ErrUnavailable):
		return &exitError{exitUnavailable, c.absence(cl, err)}
	case errors.As(err, &bad) && bad.Code == wire.CodeBadRequest:
		return usageError("%s", flagged(bad))
	case bad != nil: // what is left is the code, for programs
		return &exitError{exitFailed, bad.Message}
	}
	return err
}

func notWithin(n *client.NotGranted) string {
	return fmt.Sprintf("not granted within %s", n.Waited.Round(time.Millisecond))
}

// flagged is the sentence of an error about a field, with the flag that sets it.
func flagged(err *wire.Error) string {
	if err.Field == "request" || strings.HasPrefix(err.Field, "request.") {
		return ofBody("--request", err)
	}
	flag := map[string]string{
		"request_id": "--id", "model": "--model", "tenant": "--tenant", "kind": "--kind", "ticket": "--ticket",
		"input_tokens": "--input", "max_output_tokens": "--output", "lease": "the lease",
		"usage.input_tokens": "--input", "usage.output_tokens": "--output", "ttl_ms": "--ttl, in milliseconds,",
	}[err.Field]
	rest, ok := strings.CutPrefix(err.Message, err.Field)
	if flag == "" || !ok {
		return err.Message
	}
	return flag + rest
}

// unusable are the errors of a server that answers and does not let this program
// in, which waiting mends no more than it would a wrong flag, and what does.
var unusable = []struct {
	err    error
	advice string
}{
	{nats.ErrAuthorization, "give credentials that it knows with --creds"},
	{nats.ErrAuthExpired, "give credentials that it knows with --creds"},
	{nats.ErrAuthRevoked, "give credentials that it knows with --creds"},
	{nats.ErrAccountAuthExpired, "give credentials that it knows with --creds"},
	{nats.ErrSecureConnWanted, "it speaks no TLS, so name it with nats:// instead of tls://, or another with --url"},
	{nats.ErrSecureConnRequired, "it wants TLS, so name it with tls://"},
	{nats.ErrNoInfoReceived, "it is no NATS server, so name another with --url"},
}

// unconnected says why there is no connection, nil if there is one.
func (c *connection) unconnected(err error) error {
	for _, u := range unusable {
		if errors.Is(err, u.err) {
			return &exitError{exitFailed, fmt.Sprintf("what answers at %s refuses: %s; %s", c.where(), strings.TrimPrefix(u.err.Error(), "nats: "), u.advice)}
		}
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return &exitError{exitFailed, fmt.Sprintf("what answers at %s cannot be trusted: %v; name another with --url", c.where(), certificate.Err)}
	case errors.Is(err, client.ErrUnavailable):
		return &exitError{exitUnavailable, fmt.Sprintf(
			"no NATS server answers at %s; start a broker with \"quotabroker serve --tpm 450k\", or name another with --url", c.where())}
	}
	return err
}

// absence says why no broker answered, as far as NATS knows.
func (c *connection) absence(cl *client.Client, err error) string {
	var refused *client.Refused
	var said *wire.Error
	switch {
	case errors.As(err, &refused): // draining, the one refusal that is waited out
		return fmt.Sprintf("the broker of pool %s is going away, and no other has taken over", c.Pool)
	case errors.As(err, &said):
		return fmt.Sprintf("the broker of pool %s can decide nothing now: %s", c.Pool, said.Message)
	case !cl.Conn().IsConnected():
		return fmt.Sprintf("the connection to NATS at %s is lost, and the server has not come back", c.where())
	}
	there, answered := find(cl)
	switch {
	case !answered:
		return fmt.Sprintf("nothing at %s answered for pool %s in time; the broker may be frozen or busy, so try again", c.where(), c.Pool)
	case len(there) == 0:
		return fmt.Sprintf("a NATS server answers at %s, but no broker serves there; start one with \"quotabroker serve --tpm 450k\", or name another server with --url", c.where())
	case there.serves(c.Prefix, c.Pool):
		return fmt.Sprintf("the broker of pool %s is there, but did not answer in time; try again", c.Pool)
	case there.prefixed(c.Prefix):
		return fmt.Sprintf("no broker serves pool %s at %s; there it serves %s", c.Pool, c.where(), there)
	}
	return fmt.Sprintf("no broker serves pool %s with prefix %s at %s; there it serves %s", c.Pool, c.Prefix, c.where(), there)
}

// offer is a pool that a broker serves.
type offer struct{ prefix, pool string }

// offers are what all the brokers behind a NATS server serve.
type offers []offer

func (o offers) serves(prefix, pool string) bool { return slices.Contains(o, offer{prefix, pool}) }

func (o offers) prefixed(prefix string) bool {
	return slices.ContainsFunc(o, func(of offer) bool { return of.prefix == prefix })
}

func (o offers) String() string {
	var words []string
	for _, of := range o {
		word := "--pool " + of.pool
		if of.prefix != wire.DefaultPrefix {
			word += " --prefix " + of.prefix
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// find asks the brokers, over NATS discovery, what they serve. Nothing says how
// many there are: it ends when no more has come for a while. answered is false where
// not even the server said that there is none, so that nothing is known.
func find(cl *client.Client) (found offers, answered bool) {
	const first, further = time.Second, 100 * time.Millisecond
	nc := cl.Conn()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, false
	}
	defer func() { _ = sub.Unsubscribe() }()
	if nc.PublishRequest("$SRV.INFO.quotabroker", inbox, nil) != nil {
		return nil, false
	}
	for patience := first; ; patience = further {
		m, err := sub.NextMsg(patience)
		if err != nil {
			answered = answered || errors.Is(err, nats.ErrNoResponders)
			break
		}
		answered = true
		if m.Header.Get("Status") != "" { // the server's: there is none
			break
		}
		found = append(found, offersOf(m)...)
	}
	slices.SortFunc(found, func(a, b offer) int { return strings.Compare(a.prefix+"."+a.pool, b.prefix+"."+b.pool) })
	return slices.Compact(found), answered
}

// offersOf reads a broker's answer to discovery, nothing from any other message.
func offersOf(m *nats.Msg) offers {
	var info micro.Info
	if json.Unmarshal(m.Data, &info) != nil {
		return nil
	}
	pool := info.Metadata["pool"]
	for _, e := range info.Endpoints {
		if prefix, ok := strings.CutSuffix(e.Subject, wire.Subject("", wire.VerbAcquire, "*", pool)); ok {
			return offers{{prefix, pool}}
		}
	}
	return nil
}

// reason is an error without the code that programs read.
func reason(err error) string {
	var coded *wire.Error
	if errors.As(err, &coded) {
		return coded.Message
	}
	return err.Error()
}
