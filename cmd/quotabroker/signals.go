package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// interrupted is the cause of a context that a signal has ended.
type interrupted struct{ signal syscall.Signal }

func (i *interrupted) Error() string { return "interrupted by " + i.signal.String() }

func (i *interrupted) code() int { return exitSignal + int(i.signal) }

// interruptible returns a context that SIGINT and SIGTERM end.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			number, _ := s.(syscall.Signal) // they all are
			cancel(&interrupted{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// interruption returns the signal that has ended ctx, nil where none has.
func interruption(ctx context.Context) *interrupted {
	var i *interrupted
	if errors.As(context.Cause(ctx), &i) {
		return i
	}
	return nil
}

// interruptedCode is the exit code of a command that ended because ctx has.
func interruptedCode(ctx context.Context) int {
	if i := interruption(ctx); i != nil {
		return i.code()
	}
	return exitSignal + int(syscall.SIGINT)
}

// gaveUp is err, unless it is that a signal ended the wait for a grant.
func gaveUp(ctx context.Context, err error) error {
	if i := interruption(ctx); i != nil && errors.Is(err, context.Canceled) {
		return &exitError{i.code(), "interrupted while waiting; the place in the queue is given up"}
	}
	return err
}
