package wire_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"quotabroker/wire"
)

// Every decoder is compared with its reference: both accept, with equal values,
// or both refuse. What was accepted must also survive encoding, pass Validate,
// and be read alike by encoding/json.

// codec is one message with its two decoders and its encoder.
type codec[T any] struct {
	decode   func(data []byte, into *T) error
	refer    func(data []byte) (T, error)
	encode   func(b []byte, v *T) []byte
	validate func(v *T) error // nil for replies
	code     wire.Code        // of the decoder's errors
}

var (
	acquireCodec = codec[wire.AcquireRequest]{
		wire.DecodeAcquire, refAcquire, wire.AppendAcquire, (*wire.AcquireRequest).Validate, wire.CodeBadRequest,
	}
	settleCodec = codec[wire.SettleRequest]{
		wire.DecodeSettle, refSettle, wire.AppendSettle, (*wire.SettleRequest).Validate, wire.CodeBadRequest,
	}
	renewCodec = codec[wire.RenewRequest]{
		wire.DecodeRenew, refRenew, wire.AppendRenew, (*wire.RenewRequest).Validate, wire.CodeBadRequest,
	}
	cancelCodec = codec[wire.CancelRequest]{
		wire.DecodeCancel, refCancel, wire.AppendCancel, (*wire.CancelRequest).Validate, wire.CodeBadRequest,
	}
	decisionCodec = codec[wire.Decision]{
		wire.DecodeDecision, refDecision, wire.AppendDecision, nil, wire.CodeInternal,
	}
	settleReplyCodec = codec[wire.SettleReply]{
		wire.DecodeSettleReply, refSettleReply, wire.AppendSettleReply, nil, wire.CodeInternal,
	}
)

func (c codec[T]) fuzz(f *testing.F, examples ...string) {
	for _, example := range examples {
		for _, s := range seeds(example) {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got T
		err := c.decode(data, &got)
		want, refErr := c.refer(data)
		if (err == nil) != (refErr == nil) {
			t.Fatalf("decoder: %v\nreference: %v\nbody: %q", err, refErr, data)
		}
		if err != nil {
			checkError(t, err, c.code)
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-reference +decoder)\n%s\nbody: %q", diff, data)
		}
		if c.validate != nil {
			if err := c.validate(&got); err != nil {
				t.Fatalf("decoded, but not valid: %v\nbody: %q", err, data)
			}
			c.checkRoundTrip(t, &got)
		}
	})
}

// checkRoundTrip checks that v is read back as it was written, by the decoder
// and by encoding/json, and that what encoding/json writes is read alike.
func (c codec[T]) checkRoundTrip(t interface{ Fatalf(string, ...any) }, v *T) {
	text := c.encode(nil, v)
	var back T
	if err := c.decode(text, &back); err != nil {
		t.Fatalf("%v\nencoded: %s", err, text)
	}
	if diff := cmp.Diff(*v, back); diff != "" {
		t.Fatalf("(-written +read)\n%s\nencoded: %s", diff, text)
	}
	var std T
	if err := json.Unmarshal(text, &std); err != nil {
		t.Fatalf("encoding/json: %v\nencoded: %s", err, text)
	}
	if diff := cmp.Diff(*v, std); diff != "" {
		t.Fatalf("(-written +read by encoding/json)\n%s\nencoded: %s", diff, text)
	}
	stdText, err := json.Marshal(*v)
	if err != nil {
		t.Fatalf("encoding/json: %v", err)
	}
	var again T
	if err := c.decode(stdText, &again); err != nil {
		t.Fatalf("%v\nencoded by encoding/json: %s", err, stdText)
	}
	// Both texts are read as the same value; encoding/json compacts and escapes a
	// raw request, so that it is compared as a text only where it is compact.
	if diff := cmp.Diff(*v, again, cmp.Transformer("compact", compactJSON)); diff != "" {
		t.Fatalf("(-written by encoding/json +read)\n%s\nencoded: %s", diff, stdText)
	}
}

// compactJSON brings a raw value to the form in which encoding/json sends it.
func compactJSON(raw json.RawMessage) string {
	text, err := json.Marshal(raw)
	if err != nil {
		return "not JSON: " + err.Error()
	}
	return string(text)
}

// checkError checks what holds of every decoding error: a person can read it on
// one line, whatever was sent, and it fits in a header.
func checkError(t *testing.T, err error, code wire.Code) {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is no *wire.Error", err)
	}
	if e.Code != code {
		t.Errorf("code is %q, want %q", e.Code, code)
	}
	if len(e.Message) == 0 || len(e.Message) > 500 || !utf8.ValidString(e.Message) || strings.ContainsFunc(e.Message, unicode.IsControl) {
		t.Errorf("no fit message: %q", e.Message)
	}
	if !strings.HasPrefix(e.Message, e.Field) {
		t.Errorf("message %q does not name the field %q", e.Message, e.Field)
	}
}

func FuzzDecodeAcquire(f *testing.F) {
	acquireCodec.fuzz(f, `{"request_id":"r1","model":"gpt-5","request":{"messages":[{"role":"user","content":"hi"}],"max_tokens":5},`+
		`"max_output_tokens":600,"tenant":"acme","kind":"judge","wait_ms":5000,"deadline_ms":60000,"ttl_ms":120000,"ticket":"7-t42","confirm":true}`)
}

func FuzzDecodeSettle(f *testing.F) {
	settleCodec.fuzz(f, `{"lease":"7-18a3","outcome":"ok","usage":{"input_tokens":812,"cached_input_tokens":512,"cache_write_tokens":3,`+
		`"output_tokens":188,"reasoning_tokens":64},"provider":{"status":200,"retry_after_ms":0,"tokens":{"limit":1000000,"remaining":998000,`+
		`"reset_ms":120},"input_tokens":{"limit":1},"output_tokens":{"remaining":1},"requests":{"limit":500,"remaining":499}}}`)
}

func FuzzDecodeRenew(f *testing.F) {
	renewCodec.fuzz(f, `{"lease":"7-18a3","ttl_ms":120000}`)
}

func FuzzDecodeCancel(f *testing.F) {
	cancelCodec.fuzz(f, `{"request_id":"r1"}`, `{"ticket":"7-t42"}`, `{"lease":"7-18a3"}`)
}

func FuzzDecodeDecision(f *testing.F) {
	decisionCodec.fuzz(f,
		`{"decision":"grant","lease":"7-18a3","class":"batch","pool":"default","ttl_ms":120000,"cost":{"requests":1,`+
			`"input_tokens":812,"output_tokens":600,"tokens":1412,"method":"exact"},"borrowed":true,"waited_ms":0,"epoch":18446744073709551615}`,
		`{"decision":"defer","class":"batch","pool":"default","ticket":"7-t42","retry_after_ms":1830,"eta_ms":1830,"booked":true,`+
			`"position":12,"tokens_ahead":48210,"cause":"reserved","limit":"tokens/60s","cost":{"requests":1,"tokens":5}}`,
		`{"decision":"refuse","class":"batch","pool":"default","cause":"too_large","message":"m","limit":"l","limit_tokens":9,"cost":{}}`,
	)
}

func FuzzDecodeSettleReply(f *testing.F) {
	settleReplyCodec.fuzz(f, `{"settled":true,"late":true,"lease":"7-18a3","charged":{"requests":1,"input_tokens":812,"output_tokens":188,`+
		`"tokens":1000,"method":"counted"},"delta_tokens":-412}`)
}

func FuzzCheckStatusRequest(f *testing.F) {
	for _, s := range seeds(`{"job_id":"1"}`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// The body is one object more than what is skipped in the other messages.
		err, refErr := wire.CheckStatusRequest(data), refStatusRequest(data)
		if (err == nil) != (refErr == nil) {
			t.Fatalf("decoder: %v\nreference: %v\nbody: %q", err, refErr, data)
		}
		if err != nil {
			checkError(t, err, wire.CodeBadRequest)
		}
	})
}

// FuzzText puts any bytes into a free text and reads the message back.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "a\x00b", "\xff", "ü\xc3", "\ud7ff\ue000", "\u2028\"\\/<>&\x7f\t", "\xed\xa0\x80", "01234567\"9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := wire.Error{Code: wire.CodeBadRequest, Field: s, Message: s}
		text := wire.AppendError(nil, &e)
		if !json.Valid(text) || !utf8.Valid(text) {
			t.Fatalf("not valid JSON: %q", text)
		}
		var body wire.ErrorBody
		if err := json.Unmarshal(text, &body); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); !sameButRuns(body.Error.Message, want, s) {
			t.Fatalf("%q was read back as %q", s, body.Error.Message)
		}
		stdText, err := json.Marshal(wire.ErrorBody{Error: &e})
		if err != nil {
			t.Fatal(err)
		}
		var std wire.ErrorBody
		if err := json.Unmarshal(stdText, &std); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(std, body); diff != "" {
			t.Fatalf("(-encoding/json +ours)\n%s", diff)
		}
		if !utf8.ValidString(s) {
			return
		}
		r := wire.AcquireRequest{Tenant: s, InputTokens: wire.Int(1)}
		var back wire.AcquireRequest
		switch err := wire.DecodeAcquire(wire.AppendAcquire(nil, &r), &back); {
		case (err != nil) != (len(s) > wire.MaxTextBytes):
			t.Fatalf("%d bytes: %v", len(s), err)
		case err == nil && back.Tenant != s:
			t.Fatalf("%q was read back as %q", s, back.Tenant)
		}
	})
}

// sameButRuns compares got with what s should become. strings.ToValidUTF8 makes
// one replacement of a run of bad bytes, the encoders one of each byte.
func sameButRuns(got, want, s string) bool {
	if utf8.ValidString(s) {
		return got == want
	}
	return got == string([]rune(s))
}

// seeds returns a message and many ways to break it.
func seeds(example string) []string {
	out := []string{
		example, " \t\r\n" + example + "\n ", example + "x", example + example, example[:len(example)-1], example[:len(example)/2],
		"", " ", "{}", "[]", "null", "true", `"{}"`, "12", "{", "{,}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`, `{'a':1}`, "\ufeff{}",
	}
	with := func(member string) {
		out = append(out, "{"+member+","+example[1:], example[:len(example)-1]+","+member+"}")
	}
	// As an unknown field, well-formed or not.
	for _, v := range []string{
		"null", "nul", "true", "falsch", "NaN", "Infinity", "-", "-0", "01", "-01", "1.", ".5", "1e", "1e+", "1E-9", "0.0e0", "1e400", "+1", "0x1",
		`"\ud800"`, `"\ud83d\ude00"`, `"\x"`, `"\u12g4"`, `"\u"`, `"`, "\"\x01\"", "\"\xff\"", "\"12345678\x1f\"", `"1234567890\"\\\/\b\f\n\r\t"`,
		"[]", "[,]", "[1,]", "[1 2]", "[}", "{]", `{"a":[{"b":{}},[]],"c":0}`,
		nested(64, "[", "]"), nested(65, "[", "]"), nested(64, `{"a":`, "}"), nested(65, `{"a":`, "}"), nested(33, `[{"a":`, "}]"),
	} {
		with(`"unknown":` + v)
	}
	// As a known field: the wrong type, out of bounds, the last of several.
	for _, name := range append(fieldNames(example), "Input_Tokens", `inp\u0075t_tokens`, "\xff") {
		for _, v := range []string{
			"null", "true", "0", "-0", "-1", "-5000", "12", "12.0", "1e3", "1000000000", "1000000001", "9223372036854775807", "9223372036854775808",
			"-9223372036854775808", "-9223372036854775809", "18446744073709551616", "1000000000000000000", `"12"`, `"NaN"`, "NaN", `""`, "[]", "{}", `{"a":1}`,
			`"7-18a3"`, `"7-t42"`, `"7-18A3"`, `"07-1"`, `"7-01"`, `"\u0037-18a3"`, `"18446744073709551616-1"`, `"ok"`, `"grant"`, `"OK"`, "\"\xff\"", `"\ud800"`, `"\ud83d\ude00"`,
		} {
			out = append(out, example[:len(example)-1]+`,"`+name+`":`+v+"}")
		}
		with(`"` + name + `":null`)
	}
	// Figures of a settlement that would mint tokens.
	for _, v := range []string{"-5000", "NaN", "1000000000000000000", `"5"`, "null", "1.5", "[1]"} {
		with(`"usage":{"input_tokens":` + v + `,"output_tokens":1}`)
		with(`"usage":{"input_tokens":1,"output_tokens":` + v + `}`)
		with(`"provider":{"tokens":{"limit":` + v + `}}`)
		with(`"cost":{"tokens":` + v + `}`)
	}
	with(`"usage":{"output_tokens":1}`)
	with(`"request":` + nested(65, `{"a":`, "}"))
	with(`"request":` + nested(64, `{"a":`, "}"))
	for _, n := range []int{128, 129, 256, 257} {
		with(`"request_id":"` + strings.Repeat("a", n) + `"`)
		with(`"tenant":"` + strings.Repeat("a", n) + `"`)
		with(`"kind":"` + strings.Repeat("ü", n/2) + `"`)
	}
	return out
}

// fieldNames returns the names of a message's own fields.
func fieldNames(example string) []string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(example), &fields); err != nil {
		panic(err)
	}
	return slices.Sorted(maps.Keys(fields))
}
