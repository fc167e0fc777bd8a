package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"

	"quotabroker/client"
	"quotabroker/wire"
)

// The exit codes, which exitCodes explains.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitNotGranted  = 3
	exitNever       = 4
	exitUnavailable = 5

	exitNotExecutable = 126 // these three as shells have them
	exitNotFound      = 127
	exitSignal        = 128 // and the signal's number
)

// exitCodes ends the help. docs/cli.md says the same at greater length.
const exitCodes = `
Exit codes:
  0    done, or granted
  1    failed: the broker refused the message, or this machine could not do it
  2    the command line is wrong, or a file that it names; nothing was done
  3    not granted: deferred, refused for now, or not granted within --wait
  4    can never be granted
  5    no broker answers
  130  interrupted (143: terminated) before it was done
"run" ends with the code of its program, 128 + N where signal N ended it; 127 when
there is no such program, 126 when it cannot be executed.
`

// exitError ends the program with a code, after its message if it has one.
type exitError struct {
	code    int
	message string
}

func (e *exitError) Error() string { return e.message }

// usageError says what is wrong with the command line, or a file that it names.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...)}
}

// fail writes an error for a person and returns the exit code that tells a
// program what kind it is.
func fail(ctx context.Context, s *streams, err error) int {
	if err == nil {
		return 0
	}
	code, message := codeOf(err), err.Error()
	var exit *exitError
	switch signal := interruption(ctx); {
	case errors.As(err, &exit):
		code, message = exit.code, exit.message
	case signal != nil && errors.Is(err, context.Canceled):
		code, message = signal.code(), "interrupted"
	}
	if message != "" {
		_, _ = fmt.Fprintln(s.err, "quotabroker: "+message)
	}
	return code
}

func codeOf(err error) int {
	var refused *client.Refused
	switch {
	case errors.As(err, &refused) && refused.Permanent():
		return exitNever
	case errors.Is(err, client.ErrUnavailable):
		return exitUnavailable
	case errors.As(err, &refused):
		return exitNotGranted
	case errors.Is(err, &wire.Error{Code: wire.CodeBadRequest}):
		return exitUsage
	}
	return exitFailed
}

// notRun is the error of a program that cannot be started, with what became of
// its request.
func notRun(err error, request string) error {
	code := exitNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = exitNotFound
	}
	return &exitError{code, err.Error() + "; " + request}
}

// output passes on what is written to it and remembers the first error, so that
// not every line that is printed has to look for one.
type output struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// withoutPath is an error of a file without the file, which the sentence names.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
