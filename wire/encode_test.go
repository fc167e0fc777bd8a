package wire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"quotabroker/wire"
)

// loaded is a decision with every field set, as a core may leave one behind:
// of these only those of its verdict may be sent.
var loaded = wire.Decision{
	Class: "batch", Pool: "default",
	Cost:  wire.Cost{Requests: 1, InputTokens: 812, OutputTokens: 600, Tokens: 1412, Method: wire.MethodExact},
	Lease: wire.LeaseID{Epoch: 7, N: 0x18a3}, TTLMS: 120000, Borrowed: true, WaitedMS: 40, Epoch: 7,
	Cause: wire.CauseReserved, RetryAfterMS: 1830, Message: "a sentence",
	Ticket: wire.TicketID{Epoch: 7, N: 0x42}, EtaMS: 9000, Booked: true, Position: 12, TokensAhead: 48210, Limit: "tokens/60s",
	LimitTokens: 60000,
}

func TestAppendDecision(t *testing.T) {
	const cost = `"cost":{"requests":1,"input_tokens":812,"output_tokens":600,"tokens":1412,"method":"exact"}`
	for _, tt := range []struct {
		name string
		edit func(d *wire.Decision)
		want string
	}{
		{
			"grant", func(d *wire.Decision) { d.Verdict = wire.Grant },
			`{"decision":"grant","lease":"7-18a3","class":"batch","pool":"default","ttl_ms":120000,` + cost + `,"borrowed":true,"waited_ms":40,"epoch":7}`,
		},
		{
			"defer", func(d *wire.Decision) { d.Verdict = wire.Defer },
			`{"decision":"defer","class":"batch","pool":"default","ticket":"7-t42","retry_after_ms":1830,"eta_ms":9000,"booked":true,"position":12,` +
				`"tokens_ahead":48210,"cause":"reserved","limit":"tokens/60s","waited_ms":40,` + cost + `}`,
		},
		{
			"first defer", func(d *wire.Decision) { d.Verdict, d.WaitedMS, d.Limit = wire.Defer, 0, "" },
			`{"decision":"defer","class":"batch","pool":"default","ticket":"7-t42","retry_after_ms":1830,"eta_ms":9000,"booked":true,"position":12,` +
				`"tokens_ahead":48210,"cause":"reserved","limit":"",` + cost + `}`,
		},
		{
			"refuse", func(d *wire.Decision) { d.Verdict, d.Cause = wire.Refuse, wire.CauseClassSaturated },
			`{"decision":"refuse","class":"batch","pool":"default","cause":"class_saturated","retry_after_ms":1830,"message":"a sentence",` + cost + `}`,
		},
		{
			"refuse without a time", func(d *wire.Decision) { d.Verdict, d.Cause, d.RetryAfterMS = wire.Refuse, wire.CauseDraining, 0 },
			`{"decision":"refuse","class":"batch","pool":"default","cause":"draining","message":"a sentence",` + cost + `}`,
		},
		{
			"too large", func(d *wire.Decision) { d.Verdict, d.Cause = wire.Refuse, wire.CauseTooLarge },
			`{"decision":"refuse","class":"batch","pool":"default","cause":"too_large","message":"a sentence","limit":"tokens/60s","limit_tokens":60000,` + cost + `}`,
		},
		{
			"no quota", func(d *wire.Decision) { d.Verdict, d.Cause = wire.Refuse, wire.CauseNoQuota },
			`{"decision":"refuse","class":"batch","pool":"default","cause":"no_quota","message":"a sentence",` + cost + `}`,
		},
		{
			"explained grant", func(d *wire.Decision) { d.Verdict, d.Lease, d.Cost = wire.Grant, wire.LeaseID{}, wire.Cost{} },
			`{"decision":"grant","class":"batch","pool":"default","ttl_ms":120000,"cost":{"requests":0,"input_tokens":0,"output_tokens":0,"tokens":0},` +
				`"borrowed":true,"waited_ms":40,"epoch":7}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := loaded
			tt.edit(&d)
			if got := string(wire.AppendDecision(nil, &d)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			std, err := json.Marshal(d)
			if err != nil || string(std) != tt.want {
				t.Errorf("json.Marshal gives\n%s\n%v", std, err)
			}
		})
	}
}

func TestDecisionWithoutVerdict(t *testing.T) {
	if text, err := json.Marshal(wire.Decision{}); err == nil {
		t.Errorf("json.Marshal gives %s", text)
	}
	defer func() {
		if recover() == nil {
			t.Error("AppendDecision does not panic")
		}
	}()
	wire.AppendDecision(nil, &wire.Decision{Verdict: wire.Refuse + 1})
}

func TestAppendRequests(t *testing.T) {
	lease := wire.LeaseID{Epoch: 7, N: 0x18a3}
	for want, got := range map[string][]byte{
		`{}`: wire.AppendAcquire(nil, &wire.AcquireRequest{}),
		`{"request_id":"r","model":"m","request":{"a": 1},"max_output_tokens":0,"tenant":"t","kind":"k","wait_ms":1,"deadline_ms":0,"ttl_ms":2,` +
			`"ticket":"7-t42","confirm":true}`: wire.AppendAcquire(nil, &wire.AcquireRequest{
			RequestID: "r", Model: "m", Request: []byte(`{"a": 1}`), MaxOutputTokens: wire.Int(0), Tenant: "t", Kind: "k", WaitMS: 1,
			DeadlineMS: wire.Int(0), TTLMS: 2, Ticket: wire.TicketID{Epoch: 7, N: 0x42}, Confirm: true,
		}),
		`{"input_tokens":0}`:                  wire.AppendAcquire(nil, &wire.AcquireRequest{InputTokens: wire.Int(0)}),
		`{"lease":"7-18a3","outcome":"ok"}`:   wire.AppendSettle(nil, &wire.SettleRequest{Lease: lease, Outcome: wire.OutcomeOK}),
		`{"lease":"7-18a3"}`:                  wire.AppendRenew(nil, &wire.RenewRequest{Lease: lease}),
		`{"lease":"7-18a3","ttl_ms":5}`:       wire.AppendRenew(nil, &wire.RenewRequest{Lease: lease, TTLMS: 5}),
		`{"lease":"7-18a3","ttl_ms":0}`:       wire.AppendRenewReply(nil, &wire.RenewReply{Lease: lease}),
		`{"cancelled":false}`:                 wire.AppendCancelReply(nil, &wire.CancelReply{}),
		`{"request_id":"a\"\\\u0000\n\r\t/"}`: wire.AppendCancel(nil, &wire.CancelRequest{RequestID: "a\"\\\x00\n\r\t/"}),
		`{"ticket":"7-t1"}`:                   wire.AppendCancel(nil, &wire.CancelRequest{Ticket: wire.TicketID{Epoch: 7, N: 1}}),
		`[{"lease":"7-18a3"}`:                 wire.AppendCancel([]byte("["), &wire.CancelRequest{Lease: lease}),
		`{"lease":"7-18a3","outcome":"throttled","usage":{"input_tokens":0,"output_tokens":0},"provider":{"retry_after_ms":0,"tokens":{},` +
			`"requests":{"limit":0,"remaining":1,"reset_ms":2}}}`: wire.AppendSettle(nil, &wire.SettleRequest{
			Lease: lease, Outcome: wire.OutcomeThrottled, Usage: &wire.Usage{}, Provider: &wire.ProviderState{
				RetryAfterMS: wire.Int(0), Tokens: &wire.LimitState{},
				Requests: &wire.LimitState{Limit: wire.Int(0), Remaining: wire.Int(1), ResetMS: wire.Int(2)},
			},
		}),
		`{"settled":true,"late":true,"lease":"7-18a3","charged":{"requests":0,"input_tokens":0,"output_tokens":0,"tokens":0},"delta_tokens":-1}`: wire.AppendSettleReply(nil, &wire.SettleReply{
			Settled: true, Late: true, Lease: lease, DeltaTokens: -1,
		}),
	} {
		if string(got) != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestOptIntJSON(t *testing.T) {
	type message struct {
		A wire.OptInt
		B wire.OptInt `json:",omitzero"`
	}
	for _, tt := range []struct {
		m    message
		text string
	}{
		{message{}, `{"A":null}`},
		{message{A: wire.Int(0), B: wire.Int(0)}, `{"A":0,"B":0}`},
		{message{A: wire.Int(-9223372036854775808), B: wire.Int(9223372036854775807)}, `{"A":-9223372036854775808,"B":9223372036854775807}`},
	} {
		text, err := json.Marshal(tt.m)
		if err != nil || string(text) != tt.text {
			t.Errorf("got %s, %v, want %s", text, err, tt.text)
		}
		back := message{A: wire.Int(3)}
		if err := json.Unmarshal([]byte(tt.text), &back); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(tt.m, back); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.text, diff)
		}
	}
	for bad, want := range map[string]string{
		`"12"`:                 `number is "12", a string; it must be a whole number`,
		`12.0`:                 "number is 12.0; it must be a whole number in plain digits, without a point or an exponent",
		`1e3`:                  "number is 1e3; it must be a whole number in plain digits, without a point or an exponent",
		`true`:                 "number is true, a boolean; it must be a whole number",
		`9223372036854775808`:  "number is 9223372036854775808; it must be at most 9223372036854775807",
		`-9223372036854775809`: "number is -9223372036854775809; it must be at least -9223372036854775808",
	} {
		v := wire.Int(7)
		var e *wire.Error
		if err := json.Unmarshal([]byte(bad), &v); !errors.As(err, &e) || e.Message != want || v != wire.Int(7) {
			t.Errorf("%s: got %v, %v, want %s", bad, v, err, want)
		}
	}
	if v := wire.Int(5); v.Or(9) != 5 || (wire.OptInt{Value: 5}).Or(9) != 9 || v.IsZero() || !(wire.OptInt{Value: 5}).IsZero() {
		t.Error("an absent number is not absent, or a present one is")
	}
}

// Nothing that a reader loops over is ever null.
func TestStatusHasNoNulls(t *testing.T) {
	for _, v := range []any{
		wire.Status{Classes: []wire.ClassStatus{{}}},
		&wire.Status{},
		wire.Explanation{Decision: wire.Decision{Verdict: wire.Grant}, Classes: []wire.ClassExplain{{}}},
		wire.Explanation{Decision: wire.Decision{Verdict: wire.Grant}},
	} {
		text, err := json.Marshal(v)
		if err != nil || strings.Contains(string(text), "null") {
			t.Errorf("%s, %v", text, err)
		}
	}
	// Marshalling a copy leaves the value as it was.
	s := wire.Status{}
	if _, err := json.Marshal(&s); err != nil || s.Limits != nil {
		t.Errorf("%v, %v", s.Limits, err)
	}
}

func TestDecisionUnmarshalJSON(t *testing.T) {
	d := loaded
	d.Verdict = wire.Grant
	before := d
	if err := json.Unmarshal([]byte("null"), &d); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, d); diff != "" {
		t.Errorf("a null changes it:\n%s", diff)
	}
	// No lease: this is what an explanation holds. Nothing of before is left.
	if err := json.Unmarshal([]byte(`{"decision":"grant","class":"batch"}`), &d); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(wire.Decision{Verdict: wire.Grant, Class: "batch"}, d); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var e *wire.Error
	if err := json.Unmarshal([]byte(`{"decision":"grant","ttl_ms":"1"}`), &d); !errors.As(err, &e) || e.Field != "ttl_ms" {
		t.Error(err)
	}
	var x wire.Explanation
	if err := json.Unmarshal([]byte(`{"decision":{"decision":"never"}}`), &x); !errors.As(err, &e) || e.Field != "decision" {
		t.Error(err)
	}
}
