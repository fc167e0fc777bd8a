package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"quotabroker/estimator"
	"quotabroker/estimator/learn"
	"quotabroker/internal/accuracy"
	"quotabroker/internal/service"
	"quotabroker/wire"
)

type estimateCmd struct {
	File   string `arg:"" optional:"" default:"-" help:"Provider request body; standard input without one."`
	Model  string `help:"Model: chooses the tokenizer; the body's own without it."`
	Output *int64 `placeholder:"N" help:"Output limit, instead of the body's."`

	Against []string `type:"path" placeholder:"FILE" help:"Measure the estimates against recorded requests with the usage that came back, as JSON lines."`
	Learn   bool     `help:"With --against: learn from every other pair of a model, and measure on the rest."`
	Format  string   `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run counts one request body on this machine.
func (c *estimateCmd) Run(ctx context.Context, s *streams) error {
	if len(c.Against) > 0 {
		return c.measure(s)
	}
	if c.Learn {
		return usageError("--learn is there without --against; it learns from the recorded requests that --against names")
	}
	if err := checkTokens("--output", c.Output); err != nil {
		return err
	}
	body, err := readBody(ctx, s, "", c.File)
	if err != nil {
		return err
	}
	est, err := estimator.New(estimator.Default())
	if err != nil {
		return err
	}
	r := wire.AcquireRequest{Model: c.Model, Request: body}
	if c.Output != nil {
		r.MaxOutputTokens = wire.Int(*c.Output)
	}
	reply, werr := service.NewEstimates(est, nil).Estimate(service.Job{}, &r)
	if werr != nil {
		return usageError("%s", ofBody(fileName(c.File), werr))
	}
	if c.Format == "json" {
		return printJSON(s.out, &reply)
	}
	_, err = fmt.Fprintf(s.out, "%s: %d in, %d out at most (%s, %s%s)\n", tokens(reply.Cost.Tokens), reply.Cost.InputTokens,
		reply.Cost.OutputTokens, reply.Cost.Method, reply.Encoding, c.doubt(body, reply.ModelKnown))
	return err
}

// doubt says why the tokenizer may not be the model's.
func (c *estimateCmd) doubt(body []byte, known bool) string {
	var named struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &named) // a model that is no string names none
	switch {
	case known:
		return ""
	case c.Model == "" && named.Model == "":
		return ", no model was named: it is estimated to err high; --model or the body's model names one"
	}
	return ", the model has no public tokenizer: it is estimated to err high"
}

// leastLearned is how many pairs of a model teach something: recordings have few.
const leastLearned = 3

// measure prints how the estimates of recorded requests err.
func (c *estimateCmd) measure(s *streams) error {
	var pairs []accuracy.Pair
	for _, path := range c.Against {
		f, err := os.Open(path)
		if err != nil {
			return usageError("--against %s cannot be read: %v", path, withoutPath(err))
		}
		more, err := accuracy.Read(f)
		_ = f.Close()
		if err != nil {
			return usageError("--against %s: %v", path, err)
		}
		pairs = append(pairs, more...)
	}
	est, err := estimator.New(estimator.Default())
	if err != nil {
		return err
	}
	var learned *learn.Table
	if c.Learn {
		o := learn.Default()
		o.Least, o.Sorts = leastLearned, len(pairs)
		if learned, err = learn.New(o); err != nil {
			return err
		}
	}
	rows := accuracy.Measure(est, pairs, learned)
	if c.Format == "json" {
		return printJSON(s.out, rows)
	}
	return accuracy.Print(s.out, rows)
}
