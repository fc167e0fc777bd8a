package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"quotabroker/internal/config"
	"quotabroker/internal/demo"
)

type demoCmd struct {
	Speed    float64 `default:"15" help:"Seconds of the night in one of yours, 1 to 40."`
	Fixtures int     `default:"4000" help:"Fixtures of the nightly evaluation, 1 to 100000."`
	Workers  int     `default:"50" help:"Workers of the evaluation, 1 to 2000."`
	TPM      string  `name:"tpm" default:"900k" help:"The account's tokens per minute, 100k or more."`
	Only     string  `enum:"with,without,both" default:"both" help:"Play the night with the broker, without, or both ways."`
	Format   string  `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run plays the night and prints what it came to. Of a night that is interrupted
// it prints the half that was played to its end.
func (c *demoCmd) Run(ctx context.Context, s *streams) error {
	o, err := c.options(s)
	if err != nil {
		return err
	}
	results, err := demo.Run(ctx, o)
	interrupted := err != nil && ctx.Err() != nil
	if err != nil && !interrupted {
		return err
	}
	if len(results) > 0 || !interrupted {
		if err := c.print(s, &o, results); err != nil {
			return err
		}
	}
	switch {
	case !interrupted:
		return nil
	case len(results) == 0:
		return &exitError{interruptedCode(ctx), "interrupted before a night was over; there is nothing to show"}
	}
	return &exitError{interruptedCode(ctx), "interrupted; only the night without the broker was played in full"}
}

func (c *demoCmd) options(s *streams) (demo.Options, error) {
	tpm, err := config.ParseAmount(c.TPM)
	if err != nil {
		return demo.Options{}, &exitError{exitUsage, fmt.Sprintf("--tpm is %q; %v", c.TPM, err)}
	}
	o := demo.Options{
		Speed: c.Speed, Fixtures: c.Fixtures, Workers: c.Workers, TPM: tpm, Only: c.Only,
		Progress: s.err, Rewrite: s.terminal,
	}
	if c.Only == "both" {
		o.Only = ""
	}
	if err := o.Check(); err != nil {
		return demo.Options{}, &exitError{exitUsage, "--" + err.Error()}
	}
	return o, nil
}

func (c *demoCmd) print(s *streams, o *demo.Options, results []demo.Result) error {
	if c.Format == "json" {
		return printJSON(s.out, results)
	}
	printNight(s.out, o, results)
	return nil
}

// printNight writes for a terminal of 80 columns.
func printNight(w io.Writer, o *demo.Options, results []demo.Result) {
	_, _ = fmt.Fprintf(w, "\nA night on an account of %d tokens a minute. At 02:01 the evaluation\nstarts: %d fixtures, %d workers.\n", o.TPM, o.Fixtures, o.Workers)
	for _, r := range results {
		printHalf(w, r)
	}
	_, _ = fmt.Fprintln(w, "\np50 and p99 are of the waits of answered calls, from the wish to send until the\ncall that was answered was sent, in the night's time.")
}

func printHalf(w io.Writer, r demo.Result) {
	name := "without quotabroker"
	if r.Broker {
		name = "with quotabroker"
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", name)
	t := table(w)
	_, _ = fmt.Fprintln(t, "class\tasked\tanswered\trefused\tfailed\t429s\tp50\tp99\ttokens\t")
	for _, k := range r.Classes {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t\n", k.Class, k.Asked, k.Answered, k.Refused, k.Failed, k.Throttled,
			seconds(k.WaitP50MS), seconds(k.WaitP99MS), thousands(k.Tokens))
	}
	_ = t.Flush()
	took := "not done by 02:15"
	if r.EvalDone {
		took = "done in " + (time.Duration(r.EvalMS) * time.Millisecond).Round(time.Second).String()
	}
	_, _ = fmt.Fprintf(w, "  evaluation %s, %d fixtures lost;\n  %d refusals (429) at the provider; %.0f %% of the quota used\n",
		took, lost(r), r.Throttled, 100*r.Utilisation)
	if lag := time.Duration(r.LagMS) * time.Millisecond; lag > time.Second {
		_, _ = fmt.Fprintf(w, "  this machine was busy: it was up to %s of the night late, which counts\n  as waiting; a smaller --speed helps\n", lag.Round(100*time.Millisecond))
	}
}

// lost counts fixtures that never got an answer.
func lost(r demo.Result) int64 {
	k := r.Classes[len(r.Classes)-1]
	return k.Failed + k.Refused
}

func seconds(ms int64) string { return fmt.Sprintf("%.2fs", float64(ms)/1000) }

// thousands writes a count in thousands once it is ten thousand.
func thousands(n int64) string {
	if n < 10_000 {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt((n+500)/1000, 10) + "k"
}
