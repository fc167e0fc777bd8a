package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"quotabroker/internal/demo"
)

type demoCmd struct {
	Speed    float64 `default:"15" help:"Seconds of the night in one of yours, 1 to 40."`
	Fixtures int     `default:"4000" help:"Fixtures of the nightly evaluation."`
	Workers  int     `default:"50" help:"Workers of the evaluation."`
	TPM      int64   `name:"tpm" default:"900000" help:"The account's tokens per minute."`
	Only     string  `enum:",with,without" default:"" help:"Play the night only with, or only without the broker."`
	Format   string  `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run plays the night and prints what it came to.
func (c *demoCmd) Run(ctx context.Context, s *streams) error {
	results, err := demo.Run(ctx, demo.Options{
		Speed: c.Speed, Fixtures: c.Fixtures, Workers: c.Workers, TPM: c.TPM, Only: c.Only,
		Progress: s.err, Rewrite: s.terminal,
	})
	if err != nil {
		return err
	}
	if c.Format == "json" {
		return printJSON(s.out, results)
	}
	printNight(s.out, c, results)
	return nil
}

func printNight(w io.Writer, c *demoCmd, results []demo.Result) {
	_, _ = fmt.Fprintf(w, "\nA night on an account of %d tokens a minute. At 02:01 the evaluation starts: %d fixtures, %d workers.\n", c.TPM, c.Fixtures, c.Workers)
	for _, r := range results {
		name := "without quotabroker"
		if r.Broker {
			name = "with quotabroker"
		}
		_, _ = fmt.Fprintf(w, "\n%s\n", name)
		t := table(w)
		_, _ = fmt.Fprintln(t, "  class\tasked\tanswered\trefused\tfailed\t429s\twait p50\twait p99\ttokens\t")
		for _, k := range r.Classes {
			_, _ = fmt.Fprintf(t, "  %s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t\n", k.Class, k.Asked, k.Answered, k.Refused, k.Failed, k.Throttled,
				seconds(k.WaitP50MS), seconds(k.WaitP99MS), k.Tokens)
		}
		_ = t.Flush()
		took := "not done by 02:15"
		if r.EvalDone {
			took = "done in " + (time.Duration(r.EvalMS) * time.Millisecond).Round(time.Second).String()
		}
		_, _ = fmt.Fprintf(w, "  evaluation %s, %d fixtures lost; %d refusals (429) at the provider; %.0f %% of the quota used\n",
			took, lost(r), r.Throttled, 100*r.Utilisation)
		if lag := time.Duration(r.LagMS) * time.Millisecond; lag > time.Second {
			_, _ = fmt.Fprintf(w, "  this machine was busy: it was up to %s of the night late, which counts as waiting; a smaller --speed helps\n", lag.Round(100*time.Millisecond))
		}
	}
	_, _ = fmt.Fprintln(w, "\nWaits are of answered calls, from the wish to send until the call that was answered was sent, in the night's time.")
}

// lost counts fixtures that never got an answer.
func lost(r demo.Result) int64 {
	k := r.Classes[len(r.Classes)-1]
	return k.Failed + k.Refused
}

func seconds(ms int64) string { return fmt.Sprintf("%.2fs", float64(ms)/1000) }
