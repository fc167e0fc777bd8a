package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"quotabroker/client"
	"quotabroker/wire"
)

// work describes a call on the command line.
type work struct {
	Request string `type:"path" placeholder:"FILE" help:"Provider request body to count, - for standard input."`
	Tokens  int64  `placeholder:"N" help:"Input and output together, where nothing finer is known."`
	Input   int64  `placeholder:"N" help:"Input tokens, counted by you."`
	Output  int64  `placeholder:"N" help:"The most output tokens it may take."`
	Model   string `help:"Model: chooses the tokenizer."`
	Tenant  string `help:"Whose work it is."`
	Kind    string `help:"What sort of job it is."`
}

// request builds the client's request.
func (w *work) request(s *streams) (client.Request, error) {
	r := client.Request{Model: w.Model, Tenant: w.Tenant, Kind: w.Kind}
	ways := 0
	for _, there := range []bool{w.Request != "", w.Tokens != 0, w.Input != 0} {
		if there {
			ways++
		}
	}
	switch {
	case ways != 1:
		return r, &exitError{exitUsage, "say how large the work is with one of --tokens, --input (and --output) and --request"}
	case w.Tokens != 0:
		r.InputTokens, r.MaxOutputTokens = client.Tokens(w.Tokens), client.Tokens(0)
		if w.Output != 0 {
			return r, &exitError{exitUsage, "--tokens is input and output together; with --output use --input"}
		}
		return r, nil
	case w.Input != 0:
		r.InputTokens = client.Tokens(w.Input)
	default:
		body, err := readFile(w.Request, s.in)
		if err != nil {
			return r, err
		}
		r.Body = body
	}
	if w.Output != 0 {
		r.MaxOutputTokens = client.Tokens(w.Output)
	}
	return r, nil
}

func readFile(path string, in io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(path)
}

type askCmd struct {
	asker
	work
	Wait     time.Duration `help:"How long the answer may be held for a grant; 0 answers at once."`
	Deadline time.Duration `help:"How long the work stays useful."`
	TTL      time.Duration `name:"ttl" help:"How long the lease lasts without renewal."`
	ID       string        `name:"id" help:"Idempotency key: the same id has the same lease while it lives."`
	Ticket   string        `help:"Ticket of an earlier deferral: keeps the place."`
	Format   string        `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run asks once and prints the decision.
func (c *askCmd) Run(ctx context.Context, s *streams) error {
	req, err := c.request(s)
	if err != nil {
		return err
	}
	req.Hold, req.Deadline, req.TTL, req.ID = c.Wait, c.Deadline, c.TTL, c.ID
	if err := req.Ticket.UnmarshalText([]byte(c.Ticket)); err != nil {
		return &exitError{exitUsage, err.Error()}
	}
	cl, err := c.connect(ctx, c.Source)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, c.Wait+5*time.Second)
	defer cancel()
	a, err := cl.Try(ctx, req)
	if err != nil {
		return c.explained(err, c.Source)
	}
	if a.Lease != nil {
		a.Lease.Detach() // it is the caller's now, who settles it by its id
	}
	if c.Format == "json" {
		err = printJSON(s.out, &a.Decision)
	} else {
		printDecision(s.out, &a.Decision, c.Source)
	}
	if err != nil {
		return err
	}
	switch d := &a.Decision; {
	case d.Verdict == wire.Grant:
		return nil
	case d.Verdict == wire.Refuse && d.Cause.Permanent():
		return &exitError{code: exitNever}
	default:
		return &exitError{code: exitNotGranted}
	}
}

func printDecision(w io.Writer, d *wire.Decision, source string) {
	switch d.Verdict {
	case wire.Grant:
		borrowed := ""
		if d.Borrowed {
			borrowed = ", above its share: borrowed"
		}
		_, _ = fmt.Fprintf(w, "granted  %s  %d tokens of class %s%s\n", d.Lease, d.Cost.Tokens, d.Class, borrowed)
		_, _ = fmt.Fprintf(w, "         send now; then, within %s: quotabroker settle %s --source %s --input N --output N\n",
			milliseconds(d.TTLMS), d.Lease, source)
	case wire.Defer:
		kind := "about"
		if d.Booked {
			kind = "booked:"
		}
		_, _ = fmt.Fprintf(w, "deferred %s  %s %s: %s", d.Ticket, kind, milliseconds(d.EtaMS), causeText(d))
		_, _ = fmt.Fprintf(w, "; number %d of class %s, %d tokens ahead\n", d.Position, d.Class, d.TokensAhead)
		_, _ = fmt.Fprintf(w, "         ask again in %s with --ticket %s, or let the answer be held with --wait\n", milliseconds(d.RetryAfterMS), d.Ticket)
	default:
		_, _ = fmt.Fprintf(w, "refused  %s: %s\n", d.Cause, d.Message)
		if d.RetryAfterMS > 0 {
			_, _ = fmt.Fprintf(w, "         not before %s from now\n", milliseconds(d.RetryAfterMS))
		}
	}
}

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

type settleCmd struct {
	asker
	Lease   string `arg:"" help:"Lease from the grant, like 7-18a3."`
	Outcome string `enum:"ok,unsent,failed,throttled,overloaded,exhausted,unknown" default:"ok" help:"How the call ended: ok, unsent, failed, throttled, overloaded, exhausted or unknown."`
	Input   int64  `default:"-1" placeholder:"N" help:"All input tokens the provider counted, cached included."`
	Output  int64  `default:"-1" placeholder:"N" help:"All output tokens, reasoning included."`
	Format  string `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run settles one lease.
func (c *settleCmd) Run(ctx context.Context, s *streams) error {
	var id wire.LeaseID
	if err := id.UnmarshalText([]byte(c.Lease)); err != nil {
		return &exitError{exitUsage, err.Error()}
	}
	st := client.Settlement{}
	if err := st.Outcome.UnmarshalText([]byte(c.Outcome)); err != nil {
		return &exitError{exitUsage, err.Error()}
	}
	if c.Input >= 0 || c.Output >= 0 {
		st.Usage = &wire.Usage{InputTokens: max(c.Input, 0), OutputTokens: max(c.Output, 0)}
	}
	cl, err := c.connect(ctx, c.Source)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := short(ctx)
	defer cancel()
	r, err := cl.Settle(ctx, id, st)
	if err != nil {
		return c.explained(err, c.Source)
	}
	if c.Format == "json" {
		return printJSON(s.out, &r)
	}
	late := ""
	if r.Late {
		late = ", late: the lease had ended before"
	}
	_, _ = fmt.Fprintf(s.out, "settled  %s  %d tokens charged, %+d against the estimate%s\n", r.Lease, r.Charged.Tokens, r.DeltaTokens, late)
	return nil
}

type explainCmd struct {
	asker
	work
	Format string `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run explains one ask.
func (c *explainCmd) Run(ctx context.Context, s *streams) error {
	req, err := c.request(s)
	if err != nil {
		return err
	}
	cl, err := c.connect(ctx, c.Source)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := short(ctx)
	defer cancel()
	e, err := cl.Explain(ctx, req)
	if err != nil {
		return c.explained(err, c.Source)
	}
	if c.Format == "json" {
		return printJSON(s.out, &e)
	}
	_, _ = fmt.Fprintln(s.out, e.Why)
	_, _ = fmt.Fprintln(s.out)
	printStandings(s.out, e.Limits, classesOf(e.Classes))
	return nil
}
