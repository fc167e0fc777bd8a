package main

import (
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
	Output int64  `default:"-1" placeholder:"N" help:"Output limit, instead of the body's."`

	Against []string `type:"path" placeholder:"FILE" help:"Measure the estimates against recorded requests with the usage that came back, as JSON lines."`
	Learn   bool     `help:"With --against: learn from every other pair of a model, and measure on the rest."`
	Format  string   `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run counts one request body on this machine.
func (c *estimateCmd) Run(s *streams) error {
	if len(c.Against) > 0 {
		return c.measure(s)
	}
	body, err := readFile(c.File, s.in)
	if err != nil {
		return err
	}
	if !json.Valid(body) {
		return &exitError{exitUsage, c.File + " is not JSON; it must be a request body as the provider takes it"}
	}
	est, err := estimator.New(estimator.Default())
	if err != nil {
		return err
	}
	r := wire.AcquireRequest{Model: c.Model, Request: body}
	if c.Output >= 0 {
		r.MaxOutputTokens = wire.Int(c.Output)
	}
	reply, werr := service.NewEstimates(est, nil).Estimate(service.Job{}, &r)
	if werr != nil {
		return &exitError{exitUsage, werr.Message}
	}
	if c.Format == "json" {
		return printJSON(s.out, &reply)
	}
	known := ""
	if !reply.ModelKnown {
		known = ", the model has no public tokenizer: it is estimated to err high"
	}
	_, err = fmt.Fprintf(s.out, "%d tokens: %d in, %d out at most (%s, %s%s)\n", reply.Cost.Tokens, reply.Cost.InputTokens,
		reply.Cost.OutputTokens, reply.Cost.Method, reply.Encoding, known)
	return err
}

// leastLearned is how many pairs of a model teach something: recordings have few.
const leastLearned = 3

// measure prints how the estimates of recorded requests err.
func (c *estimateCmd) measure(s *streams) error {
	var pairs []accuracy.Pair
	for _, path := range c.Against {
		f, err := os.Open(path)
		if err != nil {
			return &exitError{exitUsage, err.Error()}
		}
		more, err := accuracy.Read(f)
		_ = f.Close()
		if err != nil {
			return &exitError{exitUsage, fmt.Sprintf("%s: %v", path, err)}
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
