package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"quotabroker/client"
	"quotabroker/wire"
)

type settleCmd struct {
	asker
	Lease   string `arg:"" help:"Lease from the grant, like 7-18a3."`
	Outcome string `enum:"ok,unsent,failed,throttled,overloaded,exhausted,unknown" default:"ok" help:"How the call ended: ok, unsent, failed, throttled, overloaded, exhausted or unknown."`
	Input   *int64 `placeholder:"N" help:"All input tokens the provider counted, cached included."`
	Output  *int64 `placeholder:"N" help:"All output tokens, reasoning included."`
	Format  string `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run settles one lease.
func (c *settleCmd) Run(ctx context.Context, s *streams) error {
	var id wire.LeaseID
	if err := id.UnmarshalText([]byte(c.Lease)); err != nil {
		return usageError("%v", reason(err))
	}
	st := client.Settlement{}
	if err := st.Outcome.UnmarshalText([]byte(c.Outcome)); err != nil {
		return usageError("%v", reason(err))
	}
	var err error
	if st.Usage, err = c.usage(); err != nil {
		return err
	}
	r, err := call(ctx, &c.connection, c.Source, func(ctx context.Context, cl *client.Client) (wire.SettleReply, error) {
		if err := c.unserved(ctx, cl); err != nil {
			return wire.SettleReply{}, err
		}
		return cl.Settle(ctx, id, st)
	})
	if err != nil {
		return err
	}
	if c.Format == "json" {
		return printJSON(s.out, &r)
	}
	late := ""
	if r.Late {
		late = ", late: the lease had ended before"
	}
	_, _ = fmt.Fprintf(s.out, "settled  %s  %s charged, %+d against the estimate%s\n", r.Lease, tokens(r.Charged.Tokens), r.DeltaTokens, late)
	return nil
}

// usage is what the flags say that the provider counted, nil where they say
// nothing. Half of it is no usage: the other half would count as nothing, and what
// was reserved for it would be given back.
func (c *settleCmd) usage() (*wire.Usage, error) {
	switch {
	case c.Input == nil && c.Output == nil:
		return nil, nil
	case c.Input == nil:
		return nil, usageError("--output is there without --input; give both as the provider counted them, or neither, and then what was reserved stays charged")
	case c.Output == nil:
		return nil, usageError("--input is there without --output; give both as the provider counted them, or neither, and then what was reserved stays charged")
	}
	if err := errors.Join(checkTokens("--input", c.Input), checkTokens("--output", c.Output)); err != nil {
		return nil, err
	}
	return &wire.Usage{InputTokens: *c.Input, OutputTokens: *c.Output}, nil
}

// unserved says at once that no broker serves the pool. A settlement would be
// tried again for seconds, which is right while a broker is away for a moment.
func (c *settleCmd) unserved(ctx context.Context, cl *client.Client) error {
	_, err := cl.Status(ctx)
	if !errors.Is(err, nats.ErrNoResponders) {
		return nil
	}
	if there, answered := find(cl); !answered || there.serves(c.Prefix, c.Pool) {
		return nil
	}
	return c.explained(ctx, cl, err)
}
