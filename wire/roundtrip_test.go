package wire_test

import (
	"testing"

	"pgregory.net/rapid"
)

func TestRoundTrip(t *testing.T) {
	t.Run("acquire", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, acquireCodec, genAcquire()) }))
	t.Run("settle", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, settleCodec, genSettle()) }))
	t.Run("renew", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, renewCodec, genRenew()) }))
	t.Run("cancel", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, cancelCodec, genCancel()) }))
	t.Run("decision", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, decisionCodec, genDecision()) }))
	t.Run("settle reply", rapid.MakeCheck(func(t *rapid.T) { roundTrip(t, settleReplyCodec, genSettleReply()) }))
}

func roundTrip[T any](t *rapid.T, c codec[T], g *rapid.Generator[T]) {
	v := g.Draw(t, "message")
	if c.validate != nil {
		if err := c.validate(&v); err != nil {
			t.Fatalf("not valid: %v", err)
		}
	}
	c.checkRoundTrip(t, &v)
}
