package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"quotabroker/client"
	"quotabroker/wire"
)

type runCmd struct {
	asker
	work
	Wait    time.Duration `help:"Give up when it was not granted by then, also where there is no broker; 0 waits for ever."`
	Command []string      `arg:"" passthrough:"" help:"The program, after --."`
}

// usageVariable names the file in which the program may leave what its calls
// took: {"input_tokens": N, "output_tokens": N}.
const usageVariable = "QUOTABROKER_USAGE_FILE"

// Help is the end of "run --help".
func (*runCmd) Help() string {
	return `The program runs with two more variables. QUOTABROKER_LEASE is the id of its lease.
QUOTABROKER_USAGE_FILE is an empty file, in which it may leave what the provider counted, as

    {"input_tokens": 812, "output_tokens": 600}

with both, of all its calls together. What it leaves is charged; without it the estimate is.`
}

// Run waits for the grant, runs the program and settles. It ends with the
// program's exit code.
func (c *runCmd) Run(ctx context.Context, s *streams) error {
	path, req, err := c.prepare(ctx, s)
	if err != nil {
		return err
	}
	cl, lease, err := c.acquire(ctx, s, req)
	if cl != nil {
		defer cl.Close()
	}
	if err != nil {
		return gaveUp(ctx, err)
	}
	settlement, code, err := c.execute(ctx, s, path, lease)
	settle, cancel := short(context.WithoutCancel(ctx))
	defer cancel()
	if _, serr := lease.Settle(settle, settlement); serr != nil {
		_, _ = fmt.Fprintf(s.err, "quotabroker: the lease %s was not settled, its reservation stays charged: %v\n", lease.ID(), c.explained(ctx, cl, serr))
	}
	if err != nil {
		return err
	}
	if code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// acquire waits for a broker and for its grant, both as long as --wait allows. The
// client is to be closed if there is one.
func (c *runCmd) acquire(ctx context.Context, s *streams, req client.Request) (*client.Client, *client.Lease, error) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if c.Wait > 0 {
		wait, cancel = context.WithTimeout(ctx, c.Wait)
	}
	defer cancel()
	n := c.notice(s, c.Wait)
	cl, err := c.await(ctx, wait, c.Source, n)
	if err != nil {
		return nil, nil, err
	}
	lease, err := cl.Acquire(wait, req)
	n.ends()
	return cl, lease, c.explained(ctx, cl, c.inVain(err))
}

// inVain says an end that --wait has made in its terms. It comes early where
// nothing more can come within that: "not granted within 0s" would be odd.
func (c *runCmd) inVain(err error) error {
	var waited *client.NotGranted
	var refused *client.Refused
	switch {
	case c.Wait == 0:
	case errors.As(err, &waited):
		waited.Waited = c.Wait
	case errors.As(err, &refused) && refused.Cause == wire.CauseDeadline: // the client made one of --wait
		return &exitError{exitNotGranted, fmt.Sprintf("not granted within %s: it would take about %s", c.Wait, tenths(refused.RetryAfter.Milliseconds()))}
	}
	return err
}

// prepare checks the command line: where the program is, and what is asked for it.
func (c *runCmd) prepare(ctx context.Context, s *streams) (path string, req client.Request, err error) {
	switch {
	case len(c.Command) > 0 && c.Command[0] == "--":
		c.Command = c.Command[1:]
	case len(c.Command) > 0 && strings.HasPrefix(c.Command[0], "-"): // the parser takes it for the program
		return "", req, usageError("unknown flag %s; the program to run comes after --", c.Command[0])
	}
	switch {
	case len(c.Command) == 0:
		return "", req, usageError("name the program to run after --")
	case c.Request == "-" || isStream(c.Request, s.in):
		return "", req, usageError("--request is %s, but standard input is the program's; put the request body into a file", c.Request)
	}
	if c.Wait, err = wholeDuration("--wait", c.Wait); err != nil {
		return "", req, err
	}
	if req, err = c.request(ctx, s); err != nil {
		return "", req, err
	}
	if path, err = exec.LookPath(c.Command[0]); err != nil {
		return "", req, notRun(err, "nothing was asked for")
	}
	return path, req, nil
}

// isStream reports whether a path names what in reads from and a second reader
// would miss, as /dev/stdin does where that is a pipe or a terminal.
func isStream(path string, in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok || path == "" {
		return false
	}
	theirs, err := f.Stat()
	if err != nil || theirs.Mode().IsRegular() {
		return false
	}
	ours, err := os.Stat(path)
	return err == nil && os.SameFile(ours, theirs)
}

// execute runs the program with the signals that this process gets.
func (c *runCmd) execute(ctx context.Context, s *streams, path string, lease *client.Lease) (client.Settlement, int, error) {
	report, err := os.CreateTemp("", "quotabroker-usage-*")
	if err != nil {
		return client.Unsent(), exitFailed, err
	}
	_ = report.Close()
	defer func() { _ = os.Remove(report.Name()) }()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path, c.Command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.program, s.err
	cmd.Env = append(os.Environ(), usageVariable+"="+report.Name(), "QUOTABROKER_LEASE="+lease.ID().String())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if ctx.Err() != nil { // a signal before these were listened to
		return client.Unsent(), exitFailed, ctx.Err()
	}
	if err := cmd.Start(); err != nil {
		return client.Unsent(), exitFailed, notRun(err, "what was granted is given back")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			_ = cmd.Process.Signal(sig)
		case err := <-ended:
			return usageOf(report.Name(), s), exitCode(err), nil
		}
	}
}

// usageOf reads what the program left; without it the reservation stands, for
// nobody knows what was sent.
func usageOf(path string, s *streams) client.Settlement {
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return client.Unknown()
	}
	u, err := parseUsage(data)
	if err != nil {
		_, _ = fmt.Fprintf(s.err, "quotabroker: what the program left in %s is no usage like {\"input_tokens\": 812, \"output_tokens\": 600}: %v; the estimate stays charged\n", usageVariable, err)
		return client.Unknown()
	}
	return client.Settlement{Outcome: wire.OutcomeOK, Usage: u}
}

// parseUsage reads a usage that has both its halves: one that is missing is not 0.
func parseUsage(data []byte) (*wire.Usage, error) {
	var u struct {
		Input  *int64 `json:"input_tokens"`
		Output *int64 `json:"output_tokens"`
	}
	if err := json.Unmarshal(data, &u); err != nil {
		return nil, err
	}
	for _, half := range []struct {
		name  string
		count *int64
	}{{"input_tokens", u.Input}, {"output_tokens", u.Output}} {
		if half.count == nil {
			return nil, fmt.Errorf("%s is missing", half.name)
		}
		if err := checkTokens(half.name, half.count); err != nil {
			return nil, err
		}
	}
	return &wire.Usage{InputTokens: *u.Input, OutputTokens: *u.Output}, nil
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		return exit.ExitCode()
	}
	return exitFailed
}
