package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"quotabroker/internal/bench"
)

type benchCmd struct {
	Clients string        `default:"1,64" help:"Connections that ask at once, 1 to 10000."`
	Rounds  int           `default:"5" help:"Rounds of each, alternating, 1 to 1000; the medians are printed."`
	Round   time.Duration `default:"1s" help:"Length of a round, 10ms to 1m."`
	Format  string        `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run measures and prints the table.
func (c *benchCmd) Run(ctx context.Context, s *streams) error {
	o := bench.Options{Rounds: c.Rounds, Round: c.Round}
	for text := range strings.SplitSeq(c.Clients, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return &exitError{exitUsage, fmt.Sprintf("--clients is %q; it must be one or more whole numbers, like 1,64", c.Clients)}
		}
		o.Clients = append(o.Clients, n)
	}
	if err := o.Check(); err != nil {
		return &exitError{exitUsage, "--" + err.Error()}
	}
	r, err := bench.Run(ctx, o)
	if err != nil {
		return err
	}
	if c.Format == "json" {
		return printJSON(s.out, r)
	}
	t := table(s.out)
	_, _ = fmt.Fprintln(t, "clients\twhat\tper second\tp50 µs\tp99 µs\t")
	for _, row := range r.Rows {
		_, _ = fmt.Fprintf(t, "%d\t%s\t%.0f\t%.0f\t%.0f\t\n", row.Clients, row.What, row.PerSecond, row.P50US, row.P99US)
	}
	_ = t.Flush()
	for _, ratio := range r.Ratios {
		_, _ = fmt.Fprintf(s.out, "%d clients: acquire has %.2f of the echo's throughput, and %.2f of its p99\n", ratio.Clients, ratio.Throughput, ratio.P99)
	}
	return nil
}
