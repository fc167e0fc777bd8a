package main

import (
	"errors"
	"log/slog"

	"quotabroker/internal/config"
)

func logger(c *serveCmd, s *streams) *slog.Logger {
	opts := &slog.HandlerOptions{Level: slog.LevelInfo}
	if c.Debug {
		opts.Level = slog.LevelDebug
	}
	if c.LogFormat == "json" {
		opts.ReplaceAttr = readable
		return slog.New(slog.NewJSONHandler(s.err, opts))
	}
	return slog.New(slog.NewTextHandler(s.err, opts))
}

// readable writes durations as the configuration does: in JSON they would be a
// number that does not say its unit.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// cause is an error as attributes of a record: what is wrong with a configuration
// is several sentences, each with its place.
func cause(err error) []any {
	var bad *config.Error
	if errors.As(err, &bad) {
		return []any{"problems", bad.Sentences()}
	}
	return []any{"error", err}
}

// failed returns what the program ends with. Where the log is JSON, the error is
// a record of it, since whoever reads the log takes every line for one.
func (c *serveCmd) failed(log *slog.Logger, what string, err error, code int) error {
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
	}
	if c.LogFormat == "json" {
		log.Error(what, cause(err)...)
		return &exitError{code, ""}
	}
	return &exitError{code, err.Error()}
}
