package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"quotabroker/brokertest"
	"quotabroker/client"
	"quotabroker/wire"
)

// startBroker is the real broker, in this process, with a quota of 900 000 tokens a
// minute.
func startBroker() *brokertest.Server {
	b, err := brokertest.Start(brokertest.TPM(900_000), brokertest.WithTCP())
	if err != nil {
		panic(err)
	}
	return b
}

func Example() {
	broker := startBroker()
	defer broker.Close()
	ctx := context.Background()

	c, err := client.Connect(ctx, client.Options{URL: broker.URL, Source: "eval"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	body := []byte(`{"model":"gpt-5","messages":[{"role":"user","content":"Are you sure?"}]}`)
	err = c.Do(ctx, client.Request{Body: body}, func(_ context.Context, l *client.Lease) (client.Settlement, error) {
		fmt.Println("granted", l.Grant().Cost.Tokens, "tokens to class", l.Grant().Class)
		// … call the provider with body …
		return client.Used(12, 90), nil
	})
	fmt.Println("done:", err)
	// Output:
	// granted 1034 tokens to class batch
	// done: <nil>
}

// Acquire, the call, and Settle by hand. Close is deferred so that a lease is
// never left behind, whichever way the function is left.
func ExampleClient_Acquire() {
	broker := startBroker()
	defer broker.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := client.Connect(ctx, client.Options{URL: broker.URL, Source: "eval"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	lease, err := c.Acquire(ctx, client.Request{
		InputTokens:     client.Tokens(12),
		MaxOutputTokens: client.Tokens(600),
		Model:           "gpt-5",
		Tenant:          "acme",
		Kind:            "judge",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Close()

	// … call the provider …

	reply, err := lease.Settle(ctx, client.Used(12, 90))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("charged", reply.Charged.Tokens, "tokens,", -reply.DeltaTokens, "given back")
	// Output: charged 102 tokens, 510 given back
}

// What an error of Acquire says.
func ExampleClient_Acquire_errors() {
	broker := startBroker()
	defer broker.Close()
	ctx := context.Background()
	c, err := client.Connect(ctx, client.Options{URL: broker.URL, Source: "eval"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	acquire := func(ctx context.Context, tokens int64) {
		lease, err := c.Acquire(ctx, client.Request{InputTokens: client.Tokens(tokens), MaxOutputTokens: client.Tokens(1)})
		var refused *client.Refused
		var waited *client.NotGranted
		switch {
		case err == nil:
			lease.Close()
		case errors.As(err, &refused) && refused.Permanent():
			fmt.Println("never:", refused.Message)
		case errors.As(err, &refused):
			fmt.Println("not now, because of the", refused.Cause)
		case errors.Is(err, client.ErrUnavailable):
			fmt.Println("no broker")
		case errors.As(err, &waited):
			fmt.Println("gave up, waiting for", waited.Last.Limit)
		default:
			fmt.Println(err)
		}
	}
	acquire(ctx, 2_000_000)
	acquire(ctx, 400_000) // much of what batch may borrow at once
	hurry, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	acquire(hurry, 400_000)
	// Output:
	// never: it needs 2000001 of tokens/60s and a job of batch can be given 792000 at most; split it
	// not now, because of the deadline
}

// A program with a queue of its own asks, and puts what is deferred back.
func ExampleClient_Try() {
	broker := startBroker()
	defer broker.Close()
	ctx := context.Background()
	c, err := client.Connect(ctx, client.Options{URL: broker.URL, Source: "eval"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	queue := []client.Request{
		{ID: "job-16", InputTokens: client.Tokens(400_000), MaxOutputTokens: client.Tokens(1)},
		{ID: "job-17", InputTokens: client.Tokens(400_000), MaxOutputTokens: client.Tokens(1)},
	}
	for i := range queue {
		job := &queue[i]
		answer, err := c.Try(ctx, *job)
		if err != nil {
			fmt.Println(err)
			return
		}
		switch d := answer.Decision; d.Verdict {
		case wire.Grant:
			fmt.Println(job.ID, "may go")
			defer answer.Lease.Close()
		case wire.Defer:
			again := time.Duration(d.RetryAfterMS) * time.Millisecond
			job.Ticket = d.Ticket // ask again with it, then
			fmt.Println(job.ID, "again in", again.Round(time.Second), "for", d.Cause)
		case wire.Refuse:
			fmt.Println(job.ID, "never:", d.Message)
		}
	}
	// Output:
	// job-16 may go
	// job-17 again in 8s for pace
}

// A service that must go on without a broker, slowly.
func ExampleSafeRate() {
	broker := startBroker()
	defer broker.Close()
	ctx := context.Background()
	c, err := client.Connect(ctx, client.Options{
		URL:          broker.URL,
		Source:       "api",
		OnBrokerLoss: client.SafeRate(10_000),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	broker.Close()

	for range 3 {
		hurry, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		lease, err := c.Acquire(hurry, client.Request{InputTokens: client.Tokens(4000), MaxOutputTokens: client.Tokens(1000)})
		cancel()
		if err != nil {
			fmt.Println("waits for the next minute:", errors.Is(err, client.ErrUnavailable))
			return
		}
		fmt.Println("granted here:", lease.Local())
		lease.Close()
	}
	// Output:
	// granted here: true
	// granted here: true
	// waits for the next minute: true
}

// Any SDK that takes an http.Client is metered by its transport.
func ExampleTransport() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"Yes."}}],"usage":{"prompt_tokens":12,"completion_tokens":90}}`)
	}))
	defer provider.Close()
	broker := startBroker()
	defer broker.Close()
	c, err := client.Connect(context.Background(), client.Options{URL: broker.URL, Source: "eval"})
	if err != nil {
		fmt.Println(err)
		return
	}

	sdk := http.Client{Transport: &client.Transport{Client: c}}
	resp, err := sdk.Post(provider.URL, "application/json", strings.NewReader(`{"model":"gpt-5","messages":[]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, _ := io.ReadAll(resp.Body) // to its end, where the usage is
	_ = resp.Body.Close()
	c.Close() // waits for the settlement
	fmt.Println(len(answer), "bytes")
	// Output: 96 bytes
}
