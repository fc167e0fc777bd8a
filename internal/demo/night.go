package demo

import (
	"fmt"
	"io"
	"time"

	"quotabroker/broker"
	"quotabroker/classes"
)

// Options say how the night is played; see [Options.Check] for their ranges.
type Options struct {
	Speed    float64   // seconds of the night in one of the watcher's
	Fixtures int       // of the evaluation
	Workers  int       // of the evaluation
	TPM      int64     // the account's tokens per minute
	Only     string    // "with" or "without"; "": both
	Progress io.Writer // where to say how far the night is; nil: nowhere
	Rewrite  bool      // progress goes to a terminal: one line, written over
}

// The shape of the night, in the night's own time.
const (
	nightBegins   = 2 * time.Hour // on its clock
	evalBegins    = time.Minute   // after that
	nightEnds     = 15 * time.Minute
	patience      = 5 * time.Second // of whoever waits for a live answer
	evalPatience  = 10 * time.Minute
	firstToken    = 250 * time.Millisecond
	tokensPerSec  = 250
	liveLimit     = 1000 // max_tokens of a live request
	evalLimit     = 512
	workEvery     = 4 // of the background trace, every fourth request is played
	requestsRatio = 90
	mostTPM       = 1_000_000_000 // far more than the night can use
)

// Check returns what keeps the night from being played. The error begins with the
// option's name, which is that of the flag too.
func (o *Options) Check() error {
	switch {
	case !(o.Speed >= 1 && o.Speed <= 40): // which NaN is not either
		return fmt.Errorf("speed is %g; it must be between 1 and 40 (at 40 the account's minute lasts 1.5 s)", o.Speed)
	case o.Fixtures < 1 || o.Fixtures > 100_000:
		return fmt.Errorf("fixtures is %d; it must be between 1 and 100000", o.Fixtures)
	case o.Workers < 1 || o.Workers > 2000:
		return fmt.Errorf("workers is %d; it must be between 1 and 2000", o.Workers)
	case o.TPM < 100_000 || o.TPM > mostTPM:
		return fmt.Errorf("tpm is %d; it must be between 100000 (with less, the live traffic alone is too much) and %d", o.TPM, mostTPM)
	case o.Only != "" && o.Only != "with" && o.Only != "without":
		return fmt.Errorf("only is %q; it must be with or without", o.Only)
	}
	return nil
}

// real shortens a duration of the night to the watcher's time.
func (o *Options) real(d time.Duration) time.Duration { return time.Duration(float64(d) / o.Speed) }

// night stretches a measured duration to the night's time.
func (o *Options) night(d time.Duration) time.Duration { return time.Duration(float64(d) * o.Speed) }

// pool is the default pool for the account, with every duration that belongs to
// the night shortened. What belongs to this machine is not: a confirmation takes as
// long as it takes, and the guard covers a real network.
func (o *Options) pool() broker.Config {
	cfg := broker.DefaultConfig()
	cfg.Limits = []classes.Limit{
		{Metric: classes.Tokens, Amount: o.TPM, Span: o.real(time.Minute)},
		{Metric: classes.Requests, Amount: o.TPM / requestsRatio, Span: o.real(time.Minute)},
	}
	cfg.Guard = max(o.real(cfg.Guard), 50*time.Millisecond)
	cfg.MaxDefer = max(o.real(cfg.MaxDefer), time.Second)
	cfg.HalfLife = max(o.real(cfg.HalfLife), time.Second)
	cfg.Near = max(o.real(cfg.Near), time.Second)
	for i := range cfg.Classes {
		c := &cfg.Classes[i]
		c.Book, c.Pace = o.real(c.Book), o.real(c.Pace)
		c.MaxWait, c.AgeAfter = o.real(c.MaxWait), o.real(c.AgeAfter)
	}
	return cfg
}
