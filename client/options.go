package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/wire"
)

// Options says who asks, where, and what to do when nobody answers. Source is
// required; every other field has a default.
type Options struct {
	// URL is the NATS server, or several of a cluster separated by commas.
	// Connect only. Default nats.DefaultURL.
	URL string

	// Source is the entry point that this program is. The broker derives the
	// class from it, and from nothing else.
	Source string

	// Pool is the account quota that is drawn on. Default "default". A program
	// that draws on several makes a Client for each, on one connection.
	Pool string

	// Prefix is the first part of the broker's subjects. Default "quota".
	Prefix string

	// NATS holds further options for the connection: credentials, TLS, an
	// in-process server; with nats.RetryOnFailedConnect(true) the server need not
	// be there yet. Connect only. They cannot undo those of NATSOptions.
	NATS []nats.Option

	// Timeout is how long the broker may stay silent beyond what it was asked to
	// hold a reply. After it the broker counts as away. Default 2 s.
	Timeout time.Duration

	// OnBrokerLoss is what Acquire and Do do while the broker is away. The zero
	// value is Stop: send nothing.
	OnBrokerLoss LossPolicy

	// OnAbsence is called when the broker is found to be away, once until it answers
	// again: to tell a person that it is waited for, say. It is called from the
	// goroutine that asked, or that renews a lease, and should be quick. nil: nobody
	// is told.
	OnAbsence func(error)

	// LocalEstimate says how many tokens, input and output together, a request
	// counts for against SafeRate. The default counts one token per byte of the
	// body, which errs high for text, plus the request's output limit, or 4096
	// where it has none.
	LocalEstimate func(Request) int64

	// Logger is told what has no caller to be told to. Default: nothing is logged.
	Logger *slog.Logger
}

const (
	defaultPool    = "default"
	defaultTimeout = 2 * time.Second
	connectTimeout = 2 * time.Second
)

// LossPolicy is how many tokens per minute this program may take on its own
// authority while no broker answers. The zero LossPolicy is Stop.
type LossPolicy int64

const (
	// Stop grants nothing: Acquire keeps asking within its context.
	Stop LossPolicy = 0

	// Allow grants everything at once, unmetered. The account's quota is then
	// unguarded for as long as the broker is away.
	Allow LossPolicy = math.MaxInt64
)

// SafeRate grants up to tokensPerMinute in any rolling minute, by a count that
// this Client keeps. Every Client in every process has its own, so the sum over
// all of them must fit what the account can spare.
func SafeRate(tokensPerMinute int64) LossPolicy { return LossPolicy(tokensPerMinute) }

func (o Options) withDefaults() Options {
	if o.URL == "" {
		o.URL = nats.DefaultURL
	}
	if o.Pool == "" {
		o.Pool = defaultPool
	}
	if o.Prefix == "" {
		o.Prefix = wire.DefaultPrefix
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	const names = "it must be 1 to 32 of A-Z a-z 0-9 _ -"
	switch {
	case !wire.ValidName(o.Source):
		return fmt.Errorf("client: Options.Source is %q; %s", o.Source, names)
	case !wire.ValidName(o.Pool):
		return fmt.Errorf("client: Options.Pool is %q; %s", o.Pool, names)
	case strings.ContainsAny(o.Prefix, " \t\r\n*>"), strings.Contains("."+o.Prefix+".", ".."):
		return fmt.Errorf("client: Options.Prefix is %q; it must be a NATS subject without wildcards", o.Prefix)
	case o.Timeout < 0:
		return fmt.Errorf("client: Options.Timeout is %v; it must be positive", o.Timeout)
	case o.OnBrokerLoss < 0:
		return fmt.Errorf("client: Options.OnBrokerLoss is SafeRate(%d); it must be 0 or more", o.OnBrokerLoss)
	}
	return nil
}

// NATSOptions returns how a connection to a broker should be set up. Connect
// uses it; a program that connects by itself and calls New should too.
//
// It reconnects for ever, also after an authentication error, at intervals that
// differ between clients. It keeps nothing to send later while disconnected: a
// request that waited out an outage would ask on behalf of a caller who has long
// gone. Its inboxes lie under _INBOX.<source>, so that a source's permissions need
// not let it listen to the replies of others.
func NATSOptions(source string) []nats.Option {
	return []nats.Option{
		nats.Name("quotabroker client, source " + source),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond),
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1),
		nats.CustomInboxPrefix(inboxPrefix(source)),
		nats.PingInterval(20 * time.Second), // a half-open connection is noticed within a minute
		nats.MaxPingsOutstanding(2),
	}
}

func inboxPrefix(source string) string { return "_INBOX." + source }

// Connect opens a connection to NATS and makes a Client on it; Close closes both.
// It tries every server of the URL once, for at most 2 s each, which a context
// that ends in the meantime does not shorten. Once connected, the Client
// reconnects for ever.
//
// The error matches ErrUnavailable when no server could be reached and
// ErrForbidden when one turned the credentials down.
func Connect(ctx context.Context, opts Options) (*Client, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("client: connecting to NATS: %w", err)
	}
	all := []nats.Option{nats.ErrorHandler(logAsync(opts.Logger))}
	all = append(all, opts.NATS...)
	all = append(all, NATSOptions(opts.Source)...)
	nc, err := nats.Connect(opts.URL, all...)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return nil, fmt.Errorf("client: connecting to NATS: %w", forbidden(err))
	case err != nil:
		return nil, fmt.Errorf("client: connecting to NATS: %w", unavailable(err))
	}
	c, err := New(nc, opts)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	c.ownsConn = true
	return c, nil
}

// New makes a Client on a connection that the caller keeps and closes, which
// should have been made with NATSOptions. URL and NATS are not looked at.
//
// The Client puts itself before the connection's error handler, for as long as
// the connection lives, to learn of denied messages at once. So make the Clients
// of one connection one after the other, and after SetErrorHandler.
func New(nc *nats.Conn, opts Options) (*Client, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if nc == nil {
		return nil, errors.New("client: New needs a connection")
	}
	c := &Client{opts: opts, x: newExchange(nc, inboxPrefix(opts.Source), opts.Logger)}
	c.closing, c.beginClose = context.WithCancel(context.Background())
	c.renewal, c.endRenewals = context.WithCancel(context.Background())
	c.alone.perMinute = int64(opts.OnBrokerLoss)
	return c, nil
}

// logAsync reports what the connection can tell no caller.
func logAsync(log *slog.Logger) nats.ErrHandler {
	return func(_ *nats.Conn, sub *nats.Subscription, err error) {
		if sub == nil {
			log.Warn("NATS reports an error", "error", err)
			return
		}
		log.Warn("NATS reports an error", "error", err, "subject", sub.Subject)
	}
}
