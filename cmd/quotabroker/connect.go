package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/client"
)

// connection is how a command finds the broker.
type connection struct {
	URL    string `name:"url" default:"nats://127.0.0.1:4222" env:"QUOTABROKER_URL" help:"NATS server of the broker."`
	Pool   string `default:"default" help:"The account quota to draw on."`
	Prefix string `default:"quota" help:"First part of the broker's subjects."`
	Creds  string `type:"path" help:"NATS credentials file."`
}

// asker is a connection on behalf of a source.
type asker struct {
	connection
	Source string `required:"" env:"QUOTABROKER_SOURCE" help:"Where this work enters; its class follows from it."`
}

// connect opens a client for the source.
func (c *connection) connect(ctx context.Context, source string) (*client.Client, error) {
	opts := client.Options{URL: c.URL, Source: source, Pool: c.Pool, Prefix: c.Prefix}
	if c.Creds != "" {
		opts.NATS = append(opts.NATS, nats.UserCredentials(c.Creds))
	}
	cl, err := client.Connect(ctx, opts)
	if errors.Is(err, client.ErrUnavailable) {
		return nil, &exitError{exitUnavailable, fmt.Sprintf(
			"no NATS server answers at %s; start a broker with \"quotabroker serve --tpm 450k\", or name another with --url", c.URL)}
	}
	return cl, err
}

// explained adds what to do to an error of a broker that does not answer.
func (c *connection) explained(err error, source string) error {
	if errors.Is(err, client.ErrUnavailable) {
		return fmt.Errorf("%w; NATS at %s is there, but no broker leads pool %s for source %s under prefix %s: see \"quotabroker status\"",
			err, c.URL, c.Pool, source, c.Prefix)
	}
	return err
}

// short bounds what a person waits for.
func short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 5*time.Second)
}
