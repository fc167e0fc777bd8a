package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/client"
	"quotabroker/wire"
)

type askCmd struct {
	asker
	work
	Wait     time.Duration `help:"How long the answer may be held for a grant, and a broker be waited for; 0 answers at once."`
	Deadline time.Duration `help:"How long the work stays useful."`
	TTL      time.Duration `name:"ttl" help:"How long the lease lasts without renewal."`
	ID       string        `name:"id" help:"Idempotency key: the same id has the same lease while it lives."`
	Ticket   string        `help:"Ticket of an earlier deferral: keeps the place."`
	Format   string        `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run asks once and prints the decision.
func (c *askCmd) Run(ctx context.Context, s *streams) error {
	req, err := c.ask(ctx, s)
	if err != nil {
		return err
	}
	cl, a, err := c.answer(ctx, s, req)
	if cl != nil {
		defer cl.Close()
	}
	if err != nil {
		return gaveUp(ctx, err)
	}
	if c.Format == "json" {
		err = printJSON(s.out, &a.Decision)
	} else {
		err = printDecision(s.out, &a.Decision, c.Source)
	}
	d := &a.Decision
	switch {
	case err != nil && a.Lease != nil: // nobody has learned of it, so nobody will send
		ctx, cancel := short(context.WithoutCancel(ctx))
		defer cancel()
		_, serr := a.Lease.Settle(ctx, client.Unsent())
		return errors.Join(err, serr)
	case err != nil:
		return err
	case d.Verdict == wire.Grant:
		a.Lease.Detach() // it is the caller's now, who settles it by its id
		noteTTL(s, req.TTL, milliseconds(d.TTLMS))
		return nil
	case d.Verdict == wire.Refuse && d.Cause.Permanent():
		return &exitError{code: exitNever}
	default:
		return &exitError{code: exitNotGranted}
	}
}

// ask is the request that the flags describe.
func (c *askCmd) ask(ctx context.Context, s *streams) (client.Request, error) {
	req, err := c.request(ctx, s)
	if err != nil {
		return req, err
	}
	if err := req.Ticket.UnmarshalText([]byte(c.Ticket)); err != nil {
		return req, usageError("--%s", reason(err))
	}
	for _, d := range []struct {
		flag string
		from time.Duration
		to   *time.Duration
	}{{"--wait", c.Wait, &req.Hold}, {"--deadline", c.Deadline, &req.Deadline}, {"--ttl", c.TTL, &req.TTL}} {
		if *d.to, err = wholeDuration(d.flag, d.from); err != nil {
			return req, err
		}
	}
	if req.ID = c.ID; req.ID == "" {
		req.ID = rand.Text() // one for all attempts
	}
	return req, nil
}

// answer asks until a broker has answered, as long as the answer may be held; once
// where it may not. The client is to be closed if there is one.
func (c *askCmd) answer(ctx context.Context, s *streams, req client.Request) (*client.Client, client.Answer, error) {
	const pause = 500 * time.Millisecond
	if req.Hold == 0 {
		return c.once(ctx, req)
	}
	limit := req.Hold
	if req.Deadline > 0 {
		limit = min(limit, req.Deadline)
	}
	n := c.notice(s, limit)
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	since := time.Now()
	cl, err := c.await(ctx, wait, c.Source, n)
	if err != nil {
		return nil, client.Answer{}, err
	}
	for {
		a, err := try(ctx, cl, remaining(req, time.Since(since)))
		if !errors.Is(err, client.ErrUnavailable) || errors.Is(err, nats.ErrConnectionClosed) {
			return cl, a, c.explained(ctx, cl, err)
		}
		select {
		case <-time.After(pause):
		case <-wait.Done():
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return cl, a, c.explained(ctx, cl, err)
		}
	}
}

// remaining is a request some time after it was made: its bounds are counted from
// then, while the client counts them from each ask.
func remaining(req client.Request, passed time.Duration) client.Request {
	req.Hold = max(req.Hold-passed, 0)
	if req.Deadline > 0 {
		req.Deadline = max(req.Deadline-passed, time.Millisecond)
	}
	return req
}

// once asks, and does not wait for a broker.
func (c *askCmd) once(ctx context.Context, req client.Request) (*client.Client, client.Answer, error) {
	cl, err := c.connect(ctx, c.Source, nil)
	if err != nil {
		return nil, client.Answer{}, err
	}
	a, err := try(ctx, cl, req)
	return cl, a, c.explained(ctx, cl, err)
}

// try asks and bounds how long that may take.
func try(ctx context.Context, cl *client.Client, req client.Request) (client.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, req.Hold+5*time.Second)
	defer cancel()
	return cl.Try(ctx, req)
}

// noteTTL says when the broker gave the lease another time to live than was asked.
func noteTTL(s *streams, asked, given time.Duration) {
	if asked > 0 && given != asked {
		_, _ = fmt.Fprintf(s.err, "quotabroker: note: --ttl is %s, and the broker made it %s; without renewal the lease ends then\n", asked, given)
	}
}

func printDecision(w io.Writer, d *wire.Decision, source string) error {
	var b strings.Builder
	switch d.Verdict {
	case wire.Grant:
		borrowed := ""
		if d.Borrowed {
			borrowed = ", above its share: borrowed"
		}
		fmt.Fprintf(&b, "granted  %s  %s of class %s%s\n", d.Lease, tokens(d.Cost.Tokens), d.Class, borrowed)
		fmt.Fprintf(&b, "         send now; then, within %s: quotabroker settle %s --source %s --input N --output N\n",
			milliseconds(d.TTLMS), d.Lease, source)
	case wire.Defer:
		kind := "expected in about"
		if d.Booked {
			kind = "booked in"
		}
		fmt.Fprintf(&b, "deferred %s  the grant is %s %s: %s", d.Ticket, kind, tenths(d.EtaMS), causeText(d))
		fmt.Fprintf(&b, "; number %d of class %s, %s ahead\n", d.Position, d.Class, tokens(d.TokensAhead))
		fmt.Fprintf(&b, "         to keep the place, ask again in %s with --ticket %s; with --wait the answer is held until the grant\n",
			tenths(d.RetryAfterMS), d.Ticket)
	default:
		fmt.Fprintf(&b, "refused  %s: %s\n", d.Cause, d.Message)
		if d.RetryAfterMS > 0 {
			fmt.Fprintf(&b, "         not before %s from now\n", tenths(d.RetryAfterMS))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tokens counts them, as "1 token" or "2 tokens".
func tokens(n int64) string {
	if n == 1 {
		return "1 token"
	}
	return fmt.Sprintf("%d tokens", n)
}

// tenths is a time to come for a person: in tenths of a second, rounded up, so
// that who comes back then does not come early.
func tenths(ms int64) time.Duration { return milliseconds((ms + 99) / 100 * 100) }

// causeText is the cause of a deferral in words.
func causeText(d *wire.Decision) string {
	switch d.Cause {
	case wire.CauseQuota:
		return d.Limit + " is used up for now"
	case wire.CauseReserved:
		return "what is left of " + d.Limit + " is held for other classes"
	case wire.CauseOrder:
		return "others of the class are ahead"
	case wire.CausePace:
		return "borrowing goes at a level rate"
	case wire.CauseTenantLimit:
		return "this tenant is at its cap"
	case wire.CauseConcurrency:
		return "too many calls are under way"
	case wire.CauseProviderPause:
		return "the provider told the account to wait"
	default:
		return d.Cause.String()
	}
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
