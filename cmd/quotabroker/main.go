// Command quotabroker owns an LLM account's quota and decides who may send when:
// "serve" runs the broker, "demo" shows what it is for, "ask", "run", "status" and
// the others speak to a running one.
//
// Exit codes: 0 done or granted, 1 failed, 2 wrong usage or configuration, 3 not
// granted in time, 4 can never be granted, 5 no broker answers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"quotabroker/client"
)

// The exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitNotGranted  = 3
	exitNever       = 4
	exitUnavailable = 5
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
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
	terminal bool // err is a terminal whose line may be written over
}

// exitError ends the program with a code, after its message if it has one.
type exitError struct {
	code    int
	message string
}

func (e *exitError) Error() string { return e.message }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
	var c cli
	code := -1
	parser, err := kong.New(&c,
		kong.Name("quotabroker"),
		kong.Description("Splits one LLM account's quota among classes of work, and tells producers over NATS when to send."),
		kong.Writers(s.out, s.err),
		kong.Exit(func(n int) { code = n }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
	)
	if err != nil {
		return fail(s, err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(negatives(args))
	if code >= 0 {
		return code
	}
	if err != nil {
		_, _ = fmt.Fprintf(s.err, "quotabroker: %v\nTry: quotabroker %s--help\n", err, commandOf(err))
		return exitUsage
	}
	return fail(s, k.Run())
}

// negatives joins a negative number to the flag before it: the parser takes -1 for
// a flag of its own, and would not say what the value of --speed may be. What
// "run" runs has flags that are none of ours.
func negatives(args []string) []string {
	if args[0] == "run" {
		return args
	}
	var out []string
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		last := len(out) - 1
		if last > 0 && negative.MatchString(arg) && strings.HasPrefix(out[last], "--") && !strings.Contains(out[last], "=") {
			out[last] += "=" + arg
			continue
		}
		out = append(out, arg)
	}
	return out
}

var negative = regexp.MustCompile(`^-[.]?[0-9]`)

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

// fail writes an error for a person and returns the exit code that tells a
// program what kind it is.
func fail(s *streams, err error) int {
	if err == nil {
		return 0
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.message != "" {
			_, _ = fmt.Fprintln(s.err, "quotabroker: "+exit.message)
		}
		return exit.code
	}
	_, _ = fmt.Fprintln(s.err, "quotabroker: "+err.Error())
	var refused *client.Refused
	var waited *client.NotGranted
	switch {
	case errors.As(err, &refused) && refused.Permanent():
		return exitNever
	case errors.As(err, &waited) && waited.Broker == nil, errors.As(err, &refused):
		return exitNotGranted
	case errors.Is(err, client.ErrUnavailable):
		return exitUnavailable
	}
	return exitFailed
}
