package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"quotabroker/client"
	"quotabroker/wire"
)

// work describes a call on the command line. A count that is not given is nil.
type work struct {
	Request string `type:"path" placeholder:"FILE" help:"Provider request body to count; - for standard input, but not with run."`
	Tokens  *int64 `placeholder:"N" help:"Input and output together, where nothing finer is known."`
	Input   *int64 `placeholder:"N" help:"Input tokens, counted by you."`
	Output  *int64 `placeholder:"N" help:"The most output tokens it may take."`
	Model   string `help:"Model: chooses the tokenizer."`
	Tenant  string `help:"Whose work it is."`
	Kind    string `help:"What sort of job it is."`
}

// request builds the client's request.
func (w *work) request(ctx context.Context, s *streams) (client.Request, error) {
	r := client.Request{Model: w.Model, Tenant: w.Tenant, Kind: w.Kind}
	if err := w.checkSize(); err != nil {
		return r, err
	}
	switch {
	case w.Tokens != nil:
		r.InputTokens, r.MaxOutputTokens = client.Tokens(*w.Tokens), client.Tokens(0)
	case w.Input != nil:
		r.InputTokens = client.Tokens(*w.Input)
	default:
		body, err := readBody(ctx, s, "--request ", w.Request)
		if err != nil {
			return r, err
		}
		r.Body = body
	}
	if w.Output != nil {
		r.MaxOutputTokens = client.Tokens(*w.Output)
	}
	return r, nil
}

// checkSize checks that the size is said in exactly one way.
func (w *work) checkSize() error {
	var ways []string
	for _, way := range []struct {
		flag  string
		given bool
	}{{"--tokens", w.Tokens != nil}, {"--input", w.Input != nil}, {"--request", w.Request != ""}} {
		if way.given {
			ways = append(ways, way.flag)
		}
	}
	switch {
	case len(ways) == 0:
		return usageError("say how large the work is with one of --tokens, --input (and --output) and --request")
	case len(ways) > 1:
		return usageError("%s exclude each other; each says how large the work is, so give one of them", strings.Join(ways, " and "))
	case w.Tokens != nil && w.Output != nil:
		return usageError("--tokens is input and output together; with --output use --input")
	}
	return errors.Join(checkTokens("--tokens", w.Tokens), checkTokens("--input", w.Input), checkTokens("--output", w.Output))
}

// checkTokens checks a count that a flag gives.
func checkTokens(flag string, n *int64) error {
	if n != nil && (*n < 0 || *n > wire.MaxTokens) {
		return usageError("%s is %d; it must be between 0 and %d", flag, *n, int64(wire.MaxTokens))
	}
	return nil
}

// wholeDuration checks a duration that a flag gives and rounds it up to what the
// protocol can say: a bound that is rounded to none would be the opposite.
func wholeDuration(flag string, d time.Duration) (time.Duration, error) {
	const longest = wire.MaxDurationMS * time.Millisecond
	if d < 0 || d > longest {
		return 0, usageError("%s is %s; it must be between 0s and %s", flag, d, longest)
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond), nil
}

// readBody reads a provider request body. before is what comes before the path in
// messages: the flag.
func readBody(ctx context.Context, s *streams, before, path string) ([]byte, error) {
	body, err := readFile(ctx, path, s.in)
	name := before + path
	if path == "-" {
		name = fileName(path)
	}
	const right = "it must be a JSON object, the request body as the provider takes it"
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, usageError("%s cannot be read: %v", name, withoutPath(err))
	case len(bytes.TrimSpace(body)) == 0:
		return nil, usageError("%s is empty; %s", name, right)
	case !json.Valid(body):
		return nil, usageError("%s is not JSON; %s", name, right)
	case bytes.TrimSpace(body)[0] != '{':
		return nil, usageError("%s is no JSON object; %s", name, right)
	}
	return body, nil
}

// ofBody is the sentence of an error in a request body, for what the command line
// calls the body.
func ofBody(name string, err *wire.Error) string {
	rest, ok := strings.CutPrefix(err.Message, "request")
	if !ok {
		return err.Message
	}
	if rest, ok := strings.CutPrefix(rest, "."); ok { // a field of it
		return name + ": " + rest
	}
	return name + rest
}

// readFile reads a file, or in where the path is "-", which may take as long as a
// person types: ctx ends it.
func readFile(ctx context.Context, path string, in io.Reader) ([]byte, error) {
	if path != "-" {
		return os.ReadFile(path)
	}
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(in)
		read <- result{data, err}
	}()
	select {
	case r := <-read:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
