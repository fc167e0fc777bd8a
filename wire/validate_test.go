package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"quotabroker/wire"
)

// Validate refuses what the decoder refuses, in the same words: each row is a
// message built in Go and what it looks like on the wire.
func TestValidateAgreesWithDecode(t *testing.T) {
	long := strings.Repeat("x", 300)
	one := wire.Int(1)
	lease := wire.LeaseID{Epoch: 7, N: 0x18a3}
	acquire := func(r wire.AcquireRequest) error { return r.Validate() }
	settle := func(r wire.SettleRequest) error { return r.Validate() }
	decodeAcquire := func(body string) error { return wire.DecodeAcquire([]byte(body), new(wire.AcquireRequest)) }
	decodeSettle := func(body string) error { return wire.DecodeSettle([]byte(body), new(wire.SettleRequest)) }
	for _, tt := range []struct {
		name          string
		built, onWire error
	}{
		{"request_id", acquire(wire.AcquireRequest{RequestID: long}), decodeAcquire(`{"request_id":"` + long + `"}`)},
		{"model", acquire(wire.AcquireRequest{Model: long}), decodeAcquire(`{"model":"` + long + `"}`)},
		{"tenant", acquire(wire.AcquireRequest{Tenant: "\xff"}), decodeAcquire("{\"tenant\":\"\xff\"}")},
		{"kind", acquire(wire.AcquireRequest{Kind: long}), decodeAcquire(`{"kind":"` + long + `"}`)},
		{"input_tokens", acquire(wire.AcquireRequest{InputTokens: wire.Int(-5)}), decodeAcquire(`{"input_tokens":-5}`)},
		{"max_output_tokens", acquire(wire.AcquireRequest{MaxOutputTokens: wire.Int(2e9)}), decodeAcquire(`{"max_output_tokens":2000000000}`)},
		{"wait_ms", acquire(wire.AcquireRequest{WaitMS: -1}), decodeAcquire(`{"wait_ms":-1}`)},
		{"deadline_ms", acquire(wire.AcquireRequest{DeadlineMS: wire.Int(-1)}), decodeAcquire(`{"deadline_ms":-1}`)},
		{"ttl_ms", acquire(wire.AcquireRequest{TTLMS: 1e12}), decodeAcquire(`{"ttl_ms":1000000000000}`)},
		{"request", acquire(wire.AcquireRequest{Request: []byte(`[]`)}), decodeAcquire(`{"request":[]}`)},
		{"neither", acquire(wire.AcquireRequest{}), decodeAcquire(`{}`)},
		{"both", acquire(wire.AcquireRequest{InputTokens: one, Request: []byte(`{}`)}), decodeAcquire(`{"input_tokens":1,"request":{}}`)},
		{"lease", settle(wire.SettleRequest{Outcome: wire.OutcomeOK}), decodeSettle(`{"outcome":"ok"}`)},
		{"outcome", settle(wire.SettleRequest{Lease: lease}), decodeSettle(`{"lease":"7-18a3"}`)},
		{
			"usage", settle(wire.SettleRequest{Lease: lease, Outcome: wire.OutcomeOK, Usage: &wire.Usage{OutputTokens: -5}}),
			decodeSettle(`{"lease":"7-18a3","outcome":"ok","usage":{"output_tokens":-5}}`),
		},
		{
			"provider", settle(wire.SettleRequest{Lease: lease, Outcome: wire.OutcomeOK, Provider: &wire.ProviderState{Status: -1}}),
			decodeSettle(`{"lease":"7-18a3","outcome":"ok","provider":{"status":-1}}`),
		},
		{
			"limit", settle(wire.SettleRequest{Lease: lease, Outcome: wire.OutcomeOK, Provider: &wire.ProviderState{Tokens: &wire.LimitState{Limit: wire.Int(2e15)}}}),
			decodeSettle(`{"lease":"7-18a3","outcome":"ok","provider":{"tokens":{"limit":2000000000000000}}}`),
		},
		{"renew", new(wire.RenewRequest).Validate(), wire.DecodeRenew([]byte(`{}`), new(wire.RenewRequest))},
		{"renew ttl", (&wire.RenewRequest{Lease: lease, TTLMS: -1}).Validate(), wire.DecodeRenew([]byte(`{"lease":"7-18a3","ttl_ms":-1}`), new(wire.RenewRequest))},
		{"cancel", new(wire.CancelRequest).Validate(), wire.DecodeCancel([]byte(`{}`), new(wire.CancelRequest))},
		{"cancel id", (&wire.CancelRequest{RequestID: long}).Validate(), wire.DecodeCancel([]byte(`{"request_id":"`+long+`"}`), new(wire.CancelRequest))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.built == nil {
				t.Fatal("Validate accepts it")
			}
			if diff := cmp.Diff(tt.onWire, tt.built); diff != "" {
				t.Errorf("(-decoder +Validate)\n%s", diff)
			}
		})
	}
}

// A request body that would break the message around it never leaves.
func TestValidateRequestBody(t *testing.T) {
	for body, want := range map[string]string{
		`{}x`:                      "request is not valid JSON: something follows the value, at byte 2",
		`{"a":1`:                   "request is not valid JSON: it ends too early, at byte 6",
		`{},"tenant":"b"`:          "request is not valid JSON: something follows the value, at byte 2",
		"{}\x00":                   "request is not valid JSON: something follows the value, at byte 2",
		`null`:                     "request is null; it must be a JSON object, the provider request body",
		` `:                        "request is not valid JSON: it ends too early, at byte 1",
		nested(65, `{"a":`, "}"):   "request nests deeper than 64 levels, at byte 320",
		nested(66, `[{"a":`, "}]"): "request is an array; it must be a JSON object, the provider request body",
	} {
		err := (&wire.AcquireRequest{Request: []byte(body)}).Validate()
		var e *wire.Error
		if !errors.As(err, &e) || e.Message != want || e.Field != "request" {
			t.Errorf("%.40s: got %v, want %s", body, err, want)
		}
	}
	for _, body := range []string{`{}`, " {\"a\":[1]}\n", nested(64, `{"a":`, "}")} {
		if err := (&wire.AcquireRequest{Request: []byte(body)}).Validate(); err != nil {
			t.Errorf("%.40s: %v", body, err)
		}
	}
}
