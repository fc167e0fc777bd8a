// Command quotabroker owns an LLM account's quota and decides who may send when:
// "serve" runs the broker, "demo" shows what it is for, "ask", "run", "status" and
// the others speak to a running one. docs/cli.md has what scripts may rely on.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Serve    serveCmd    `cmd:"" help:"Run a broker."`
	Demo     demoCmd     `cmd:"" help:"Play a night on one LLM account, without and with the broker."`
	Ask      askCmd      `cmd:"" help:"Ask for a grant."`
	Settle   settleCmd   `cmd:"" help:"Say what a granted call really took."`
	Run      runCmd      `cmd:"" help:"Run a program once it may be run: ask, run, settle."`
	Status   statusCmd   `cmd:"" help:"Show who uses the quota, who borrows, who waits."`
	Explain  explainCmd  `cmd:"" help:"Say what an ask would be answered now, and why."`
	Estimate estimateCmd `cmd:"" help:"Count what a request will cost, without a broker."`
	Config   configCmd   `cmd:"" help:"Check or print a configuration."`
	Schema   schemaCmd   `cmd:"" help:"Print the JSON Schemas of the protocol."`
	Bench    benchCmd    `cmd:"" help:"Measure grants over NATS against a bare echo."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
	Help     helpCmd     `cmd:"" help:"Show the help of a command."`

	ShowVersion showVersion `name:"version" help:"Print the version."`
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
	program  io.Writer // out as it came, for a program that is to have it
	terminal bool      // err is a terminal whose line may be written over
}

func main() {
	ctx, stop := interruptible(context.Background())
	defer stop()
	os.Exit(run(ctx, os.Args[1:], &streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, terminal: isTerminal(os.Stderr)}))
}

// isTerminal reports whether f is a terminal that understands control sequences.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, s *streams) int {
	out := &output{to: s.out}
	err := command(ctx, args, &streams{in: s.in, out: out, err: s.err, program: s.out, terminal: s.terminal})
	if out.err != nil { // whatever else it came to: who reads the output has not got it
		err = &exitError{exitFailed, fmt.Sprintf("standard output could not be written: %v", withoutPath(out.err))}
	}
	return fail(ctx, s, err)
}

// command parses a command line and runs its command.
func command(ctx context.Context, args []string, s *streams) error {
	var c cli
	ended := false // by a flag that is a command of its own, like --help
	parser, err := kong.New(&c, append(values(),
		kong.Name("quotabroker"),
		kong.Description("Splits one LLM account's quota among classes of work, and tells producers over NATS when to send."),
		kong.Writers(s.out, s.err),
		kong.Exit(func(int) { ended = true }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Help(printHelp),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
	)...)
	if err != nil {
		return err
	}
	k, err := parser.Parse(helpFirst(args))
	var wrong *exitError
	switch {
	case ended:
		return nil
	case errors.As(err, &wrong): // what values said, without the parser's words before it
		return wrong
	case err != nil:
		return &exitError{exitUsage, fmt.Sprintf("%v\nTry: quotabroker %s--help", err, commandOf(err))}
	}
	return k.Run()
}

// commandOf returns the command that a parse error belongs to, with a space.
func commandOf(err error) string {
	var p *kong.ParseError
	if errors.As(err, &p) && p.Context != nil {
		if path := p.Context.Command(); path != "" {
			return firstWord(path) + " "
		}
	}
	return ""
}

func firstWord(s string) string {
	for i, r := range s {
		if r == ' ' {
			return s[:i]
		}
	}
	return s
}
