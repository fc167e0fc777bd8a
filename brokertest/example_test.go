package brokertest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"quotabroker/broker"
	"quotabroker/brokertest"
	"quotabroker/classes"
	"quotabroker/client"
	"quotabroker/wire"
)

// judge is a producer: it asks, calls, and says what the call took.
func judge(ctx context.Context, c *client.Client, call func() (input, output int64)) error {
	req := client.Request{Model: "gpt-4o-mini", Kind: "judge", InputTokens: client.Tokens(400), MaxOutputTokens: client.Tokens(200)}
	return c.Do(ctx, req, func(context.Context, *client.Lease) (client.Settlement, error) {
		return client.Used(call()), nil
	})
}

// The third of three calls waits until the minute has passed in which the first
// two were charged; with virtual time the test takes milliseconds.
func TestProducerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := brokertest.New(t, brokertest.TPM(1200), brokertest.WithConfig(func(c *broker.Config) {
			c.Classes = c.Classes[2:] // batch alone
			c.Classes[0].Share, c.Classes[0].Floor, c.Classes[0].Pace = classes.Whole, 0, 0
			c.Sources = map[string]string{"eval": "batch"}
		}))
		c, err := client.New(s.Conn(t), client.Options{Source: "eval"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		start := time.Now()
		for range 3 {
			if err := judge(t.Context(), c, func() (int64, int64) { return 400, 100 }); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(start); waited < time.Minute || waited > 62*time.Second {
			t.Errorf("three calls took %s", waited)
		}
		if st := s.Status(t); st.Limits[0].Used != 500 || st.Classes[0].Grants != 3 {
			t.Errorf("got %+v", st)
		}
	})
}

func Example() {
	// In a test file of your own:
	_ = func(t *testing.T) {
		s := brokertest.New(t, brokertest.TPM(1000))
		c, err := client.New(s.Conn(t), client.Options{Source: "eval"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		_, err = c.Acquire(t.Context(), client.Request{InputTokens: client.Tokens(5000)})
		if refused := (*client.Refused)(nil); !errors.As(err, &refused) || refused.Cause != wire.CauseTooLarge {
			t.Errorf("5000 tokens of a quota of 1000 a minute: %v", err)
		}
	}
}
