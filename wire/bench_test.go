package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"quotabroker/wire"
)

// Bodies as producers send them. acquireBody is of the size that the transport
// was measured with.
const (
	acquireBody = `{"request_id":"eval-2041-attempt-1","model":"gpt-5-mini","input_tokens":812,"max_output_tokens":600,"tenant":"acme.eu",` +
		`"kind":"judge","wait_ms":5000,"deadline_ms":60000,"ttl_ms":120000,"ticket":"7-t42","confirm":true}`
	countedBody = `{"input_tokens":812,"max_output_tokens":600,"wait_ms":5000,"ticket":"7-t42","confirm":true}`
	settleBody  = `{"lease":"7-18a3","outcome":"ok","usage":{"input_tokens":812,"cached_input_tokens":512,"output_tokens":188,"reasoning_tokens":64},` +
		`"provider":{"status":200,"tokens":{"limit":1000000,"remaining":998000,"reset_ms":120},"requests":{"limit":500,"remaining":499}}}`
	grantBody = `{"decision":"grant","lease":"7-18a3","class":"batch","pool":"default","ttl_ms":120000,"cost":{"requests":1,"input_tokens":812,` +
		`"output_tokens":600,"tokens":1412,"method":"exact"},"borrowed":true,"waited_ms":0,"epoch":7}`
	settledBody = `{"settled":true,"lease":"7-18a3","charged":{"requests":1,"input_tokens":812,"output_tokens":188,"tokens":1000},"delta_tokens":-412}`
)

// promptBody is an acquire with a provider request of 64 KiB in it.
var promptBody = []byte(`{"model":"gpt-5","request":{"messages":[{"role":"user","content":"` +
	strings.Repeat(`The quick brown fox said \"jump\" over the lazy dog.\n`, 64<<10/54) + `"}],"max_completion_tokens":600}}`)

func must[T any](decode func([]byte, *T) error, body string) *T {
	v := new(T)
	if err := decode([]byte(body), v); err != nil {
		panic(err)
	}
	return v
}

// The allocations that doc comments promise: one for each text that is there,
// one for a usage, one for a provider state, and none to encode.
func TestAllocs(t *testing.T) {
	acquire := must(wire.DecodeAcquire, acquireBody)
	settle := must(wire.DecodeSettle, settleBody)
	grant := must(wire.DecodeDecision, grantBody)
	settled := must(wire.DecodeSettleReply, settledBody)
	deferred, refused := loaded, loaded
	deferred.Verdict, refused.Verdict = wire.Defer, wire.Refuse
	failure := wire.BadField("input_tokens", "input_tokens is -5; it must be 0 or more")
	renew, cancel := &wire.RenewRequest{Lease: grant.Lease}, &wire.CancelRequest{RequestID: "r\n"}
	buf := make([]byte, 0, 4096)
	acquireText, countedText, settleText := []byte(acquireBody), []byte(countedBody), []byte(settleBody)
	grantText, settledText := []byte(grantBody), []byte(settledBody)
	renewText, cancelText := []byte(`{"lease":"7-18a3","ttl_ms":5}`), []byte(`{"lease":"7-18a3"}`)
	for _, tt := range []struct {
		name string
		want float64
		run  func() error
	}{
		{"decode acquire: 4 texts", 4, func() error { return wire.DecodeAcquire(acquireText, acquire) }},
		{"decode acquire: no text", 0, func() error { return wire.DecodeAcquire(countedText, new(wire.AcquireRequest)) }},
		{"decode acquire: a request, 1 text", 1, func() error { return wire.DecodeAcquire(promptBody, new(wire.AcquireRequest)) }},
		{"decode settle: usage, provider", 2, func() error { return wire.DecodeSettle(settleText, new(wire.SettleRequest)) }},
		{"decode renew", 0, func() error { return wire.DecodeRenew(renewText, new(wire.RenewRequest)) }},
		{"decode cancel", 0, func() error { return wire.DecodeCancel(cancelText, new(wire.CancelRequest)) }},
		{"decode decision: class, pool", 2, func() error { return wire.DecodeDecision(grantText, new(wire.Decision)) }},
		{"decode settle reply", 0, func() error { return wire.DecodeSettleReply(settledText, new(wire.SettleReply)) }},
		{"encode", 0, func() error {
			b := wire.AppendAcquire(buf, acquire)
			b = wire.AppendSettle(b, settle)
			b = wire.AppendRenew(b, renew)
			b = wire.AppendCancel(b, cancel)
			b = wire.AppendDecision(b, grant)
			b = wire.AppendDecision(b, &deferred)
			b = wire.AppendDecision(b, &refused)
			b = wire.AppendSettleReply(b, settled)
			b = wire.AppendRenewReply(b, &wire.RenewReply{Lease: grant.Lease})
			b = wire.AppendCancelReply(b, &wire.CancelReply{})
			wire.AppendError(b, failure)
			return nil
		}},
		{"validate", 0, func() error { return acquire.Validate() }},
	} {
		var err error
		got := testing.AllocsPerRun(100, func() { err = tt.run() })
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got != tt.want {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.want)
		}
	}
}

// benchDecode compares a decoder with encoding/json on one body, in one run.
func benchDecode[T any](b *testing.B, decode func([]byte, *T) error, body []byte) {
	b.Run("wire", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		v := new(T)
		for b.Loop() {
			if err := decode(body, v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encodingjson", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			v := new(T) // encoding/json would fill up what is left in an old one
			if err := json.Unmarshal(body, v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecodeAcquire(b *testing.B) { benchDecode(b, wire.DecodeAcquire, []byte(acquireBody)) }

func BenchmarkDecodeAcquirePrompt(b *testing.B) { benchDecode(b, wire.DecodeAcquire, promptBody) }

func BenchmarkDecodeSettle(b *testing.B) { benchDecode(b, wire.DecodeSettle, []byte(settleBody)) }

func BenchmarkDecodeSettleReply(b *testing.B) {
	benchDecode(b, wire.DecodeSettleReply, []byte(settledBody))
}

// plainDecision is a grant as one would declare it for encoding/json alone: the
// real Decision has methods that lead back to this package.
type plainDecision struct {
	Decision string       `json:"decision"`
	Lease    wire.LeaseID `json:"lease"`
	Class    string       `json:"class"`
	Pool     string       `json:"pool"`
	TTLMS    int64        `json:"ttl_ms"`
	Cost     wire.Cost    `json:"cost"`
	Borrowed bool         `json:"borrowed"`
	WaitedMS int64        `json:"waited_ms"`
	Epoch    uint64       `json:"epoch"`
}

func BenchmarkDecodeDecision(b *testing.B) {
	body := []byte(grantBody)
	b.Run("wire", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var d wire.Decision
			if err := wire.DecodeDecision(body, &d); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encodingjson", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var d plainDecision
			if err := json.Unmarshal(body, &d); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAppendDecision(b *testing.B) {
	d := must(wire.DecodeDecision, grantBody)
	var plain plainDecision
	if err := json.Unmarshal([]byte(grantBody), &plain); err != nil {
		b.Fatal(err)
	}
	benchAppend(b, wire.AppendDecision, d, plain)
}

func BenchmarkAppendAcquire(b *testing.B) {
	r := must(wire.DecodeAcquire, acquireBody)
	benchAppend(b, wire.AppendAcquire, r, r)
}

func BenchmarkAppendSettle(b *testing.B) {
	r := must(wire.DecodeSettle, settleBody)
	benchAppend(b, wire.AppendSettle, r, r)
}

func benchAppend[T any](b *testing.B, encode func([]byte, *T) []byte, v *T, plain any) {
	b.Run("wire", func(b *testing.B) {
		buf := make([]byte, 0, 1024)
		b.ReportAllocs()
		for b.Loop() {
			buf = encode(buf[:0], v)
		}
	})
	b.Run("encodingjson", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(plain); err != nil {
				b.Fatal(err)
			}
		}
	})
}
