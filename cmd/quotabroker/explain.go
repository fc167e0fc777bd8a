package main

import (
	"context"
	"fmt"

	"quotabroker/client"
	"quotabroker/wire"
)

type explainCmd struct {
	asker
	work
	Format string `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run explains one ask.
func (c *explainCmd) Run(ctx context.Context, s *streams) error {
	req, err := c.request(ctx, s)
	if err != nil {
		return err
	}
	e, err := call(ctx, &c.connection, c.Source, func(ctx context.Context, cl *client.Client) (wire.Explanation, error) {
		return cl.Explain(ctx, req)
	})
	if err != nil {
		return err
	}
	if c.Format == "json" {
		return printJSON(s.out, &e)
	}
	_, _ = fmt.Fprintln(s.out, e.Why)
	_, _ = fmt.Fprintln(s.out)
	printStandings(s.out, e.Limits, classesOf(e.Classes))
	return nil
}
