package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// drain refuses what waits and asks, and lets the leases in flight end.
func (b *server) drain(ctx context.Context) error {
	limit := b.cmd.DrainLimit
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	if n := b.inFlight(ctx); n > 0 {
		b.log.Info("draining: what waits is refused, leases in flight may end; a second signal ends the broker at once",
			"leases", n, "limit", limit, "until", time.Now().Add(limit).Round(time.Second))
	} else {
		b.log.Info("draining: what waits is refused, and no lease is in flight")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	go func() {
		select {
		case <-again: // told twice: it is meant
			cancel()
		case <-ctx.Done():
		}
	}()
	err := b.svc.Drain(ctx)
	switch {
	case errors.Is(err, context.Canceled):
		b.log.Warn("ended by a second signal: some leases had not ended", "error", err)
	case err != nil:
		b.log.Warn("some leases had not ended", "limit", limit, "error", err)
	}
	b.log.Info("ended")
	return nil
}

// inFlight counts the leases that a drain waits for.
func (b *server) inFlight(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var n int64
	for _, status := range b.svc.Statuses(ctx) {
		n += status.Leases.InFlight
	}
	return n
}
