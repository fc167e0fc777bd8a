package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"quotabroker/client"
	"quotabroker/wire"
)

type runCmd struct {
	asker
	work
	Wait    time.Duration `help:"Give up when it was not granted by then; 0 waits for ever."`
	Command []string      `arg:"" passthrough:"" help:"The program, after --."`
}

// usageVariable names the file in which the program may leave what its calls
// took: {"input_tokens": N, "output_tokens": N}.
const usageVariable = "QUOTABROKER_USAGE_FILE"

// Run waits for the grant, runs the program and settles. It ends with the
// program's exit code.
func (c *runCmd) Run(ctx context.Context, s *streams) error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	if len(c.Command) == 0 {
		return &exitError{exitUsage, "name the program to run after --"}
	}
	req, err := c.request(s)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return &exitError{exitUsage, err.Error() + "; nothing was asked for"}
	}
	cl, err := c.connect(ctx, c.Source)
	if err != nil {
		return err
	}
	defer cl.Close()
	wait := ctx
	if c.Wait > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, c.Wait)
		defer cancel()
	}
	lease, err := cl.Acquire(wait, req)
	if err != nil {
		return c.explained(err, c.Source)
	}
	settlement, code, err := c.execute(ctx, s, path, lease)
	settle, cancel := short(context.WithoutCancel(ctx))
	defer cancel()
	if _, serr := lease.Settle(settle, settlement); serr != nil {
		_, _ = fmt.Fprintf(s.err, "quotabroker: the lease %s was not settled, its reservation stays charged: %v\n", lease.ID(), serr)
	}
	if err != nil {
		return err
	}
	if code != 0 {
		return &exitError{code: code}
	}
	return nil
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
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.out, s.err
	cmd.Env = append(os.Environ(), usageVariable+"="+report.Name(), "QUOTABROKER_LEASE="+lease.ID().String())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return client.Unsent(), exitFailed, err
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
	var u wire.Usage
	if err := json.Unmarshal(data, &u); err != nil {
		_, _ = fmt.Fprintf(s.err, "quotabroker: what the program left in %s is no usage like {\"input_tokens\": 812, \"output_tokens\": 600}: %v\n", usageVariable, err)
		return client.Unknown()
	}
	return client.Settlement{Outcome: wire.OutcomeOK, Usage: &u}
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
