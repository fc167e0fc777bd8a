package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// notice tells a person, once, that a broker is waited for. It is the client's
// logger, who notices that a broker has gone. A nil notice says nothing. It is
// safe for concurrent use.
type notice struct {
	to    io.Writer
	whose string        // the pool and the NATS server
	limit time.Duration // how long it is waited for; 0 for ever
	once  sync.Once
}

// waits says that a broker is waited for, if that was not said.
func (n *notice) waits() {
	n.once.Do(func() {
		atMost := ""
		if n.limit > 0 {
			atMost = fmt.Sprintf(", %s at most", n.limit)
		}
		_, _ = fmt.Fprintf(n.to, "quotabroker: no broker answers for %s; waiting for one%s\n", n.whose, atMost)
	})
}

// ends ends the notice: from now on nothing is waited for.
func (n *notice) ends() { n.once.Do(func() {}) }

// Enabled implements slog.Handler.
func (n *notice) Enabled(_ context.Context, l slog.Level) bool {
	return n != nil && l >= slog.LevelWarn
}

// Handle implements slog.Handler.
func (n *notice) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "the broker does not answer" {
		n.waits()
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (n *notice) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup implements slog.Handler.
func (n *notice) WithGroup(string) slog.Handler { return n }
