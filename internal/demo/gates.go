package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"quotabroker/client"
	"quotabroker/estimator"
	"quotabroker/internal/natsnode"
	"quotabroker/internal/service"
)

// nobody decides: every producer calls the provider, and tries again as the
// provider's own SDK does.
type nobody struct{}

// The SDK's defaults: two retries for a live call, waiting as long as the response
// says, else 0.5 s doubled with each try to 8 s at most, less up to a quarter. An
// evaluation harness is set up to try harder.
const (
	liveRetries = 2
	evalRetries = 5
	firstBack   = 500 * time.Millisecond
	mostBack    = 8 * time.Second
)

func (nobody) call(ctx context.Context, p *play, j *job) (time.Time, usage, error) {
	retries := liveRetries
	if j.kind == eval {
		retries = evalRetries
	}
	for try := 0; ; try++ {
		sent := time.Now()
		u, err := p.post(ctx, j)
		var t *throttled
		if !errors.As(err, &t) || try == retries {
			return sent, u, err
		}
		wait := t.wait
		if wait == 0 {
			wait = p.o.real(min(firstBack<<try, mostBack))
			wait -= time.Duration(rand.Int64N(int64(wait)/4 + 1))
		}
		if !sleep(ctx, wait) {
			return sent, usage{}, ctx.Err()
		}
	}
}

// brokered producers ask the broker first.
type brokered struct {
	node    *natsnode.Node
	service *service.Service
	clients [kinds]*client.Client
}

// open starts a broker of its own on a free port and connects a client for each
// source.
func open(ctx context.Context, o *Options, est *estimator.Estimator) (*brokered, error) {
	node, err := natsnode.StartEmbedded(natsnode.Embedded{Port: -1})
	if err != nil {
		return nil, err
	}
	b := &brokered{node: node}
	b.service, err = service.New(service.Options{
		Conn:     node.Conn(),
		Config:   service.Config{Pools: []brokerConfig{o.pool()}},
		Estimate: service.NewEstimates(est, nil).Estimate,
	})
	if err == nil {
		err = b.service.Start(ctx)
	}
	for k := range b.clients {
		if err == nil {
			b.clients[k], err = client.Connect(ctx, client.Options{URL: node.URL(), Source: sources[k]})
		}
	}
	if err != nil {
		b.close()
		return nil, fmt.Errorf("starting the broker: %w", err)
	}
	return b, nil
}

func (b *brokered) close() {
	for _, c := range b.clients {
		if c != nil {
			c.Close()
		}
	}
	if b.service != nil {
		b.service.Close()
	}
	b.node.Close()
}

func (b *brokered) call(ctx context.Context, p *play, j *job) (time.Time, usage, error) {
	req := client.Request{Model: model, Body: j.body, MaxOutputTokens: client.Tokens(j.outputLimit)}
	if j.body == nil {
		req.InputTokens = client.Tokens(j.inputTokens)
	}
	if j.kind == live {
		req.Deadline = p.o.real(patience)
	}
	var sent time.Time
	var u usage
	err := b.clients[j.kind].Do(ctx, req, func(ctx context.Context, _ *client.Lease) (client.Settlement, error) {
		sent = time.Now()
		var err error
		u, err = p.post(ctx, j)
		var t *throttled
		switch {
		case err == nil:
			return client.Used(u.InputTokens, u.OutputTokens), nil
		case errors.As(err, &t):
			return client.Failed(429, t.wait), err
		}
		return client.Unknown(), err
	})
	var refused *client.Refused
	var waited *client.NotGranted
	if errors.As(err, &refused) || errors.As(err, &waited) {
		err = fmt.Errorf("%w: %w", errRefused, err)
	}
	return sent, u, err
}
