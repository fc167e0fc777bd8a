// Package client is how a Go program asks quotabroker for tokens before it calls
// a language model, and says afterwards what the call really took.
//
// # Quick start
//
//	c, err := client.Connect(ctx, client.Options{
//		URL:    "nats://127.0.0.1:4222",
//		Source: "eval",
//	})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//
//	err = c.Do(ctx, client.Request{Model: "gpt-5", Body: body},
//		func(ctx context.Context, _ *client.Lease) (client.Settlement, error) {
//			res, err := callTheModel(ctx, body)
//			if err != nil {
//				return client.Settlement{}, err // what was reserved stays charged
//			}
//			return client.Used(res.InputTokens, res.OutputTokens), nil
//		})
//
// [Client.Do] is [Client.Acquire], the call, and [Lease.Settle] whatever
// happens. [Transport] does the same for a whole http.Client, so that a
// provider's SDK is metered without a change to the code that uses it.
// [FromResponse] makes the settlement of a response that the program has read itself.
// [Client.Try] is one ask and the broker's raw answer, for programs that keep a
// queue of their own.
//
// # What waits, and what fails
//
// Acquire waits as long as its context allows: first in the broker's queue, with
// the reply held back, then with the ticket it was given, asking again exactly
// when the broker told it to. It returns a lease, or an error that says which of
// four things happened:
//
//   - [*Refused]: the broker decided against it. Either no wait would help, or the
//     wait that it expects is longer than the context, or the class, allows.
//   - [*NotGranted]: the context ended first. It wraps the context's error and
//     holds the last answer, so that the reason for the wait is not lost.
//   - [ErrForbidden], [ErrPayloadTooLarge], [*wire.Error]: the request cannot
//     work as it is.
//   - [ErrClosed].
//
// A broker that is away is never taken for one that says yes. Acquire keeps
// asking, at jittered intervals of at most 1.5 s, and the error at the end matches
// [ErrUnavailable]. Whoever must go on without a broker says so, and how fast,
// with [Options.OnBrokerLoss].
//
// # Late and lost messages
//
// Every ask carries an id, so asking twice charges once. Nothing is kept for
// later while the connection is down: no old ask is ever delivered late. A grant
// is confirmed to the broker when, and only when, Acquire is about to return it;
// one that arrives after its caller has gone is not, and the broker takes it back.
//
// # Concurrency
//
// A [Client] and a [Lease] may be used from any number of goroutines. The package
// starts one goroutine per client and one per unsettled lease; [Client.Close] ends
// them all and waits for them.
package client
