package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"quotabroker/wire"
)

// A row is one body and the error it must bring: which field, in which words.
type row struct{ name, body, field, message string }

func (c codec[T]) checkRows(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var into T
			err := c.decode([]byte(r.body), &into)
			var e *wire.Error
			if !errors.As(err, &e) {
				t.Fatalf("got error %v, want a *wire.Error", err)
			}
			want := wire.Error{Code: c.code, Field: r.field, Message: r.message}
			if diff := cmp.Diff(want, *e); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAcquireErrors(t *testing.T) {
	long := strings.Repeat("x", 300)
	acquireCodec.checkRows(t, []row{
		{"negative", `{"input_tokens":-5}`, "input_tokens", "input_tokens is -5; it must be 0 or more"},
		{"string for number", `{"input_tokens":"12"}`, "input_tokens", `input_tokens is "12", a string; it must be a whole number`},
		{"boolean for number", `{"input_tokens":false}`, "input_tokens", "input_tokens is false, a boolean; it must be a whole number"},
		{"array for number", `{"input_tokens":[1]}`, "input_tokens", "input_tokens is an array; it must be a whole number"},
		{"object for number", `{"input_tokens":{}}`, "input_tokens", "input_tokens is an object; it must be a whole number"},
		{"fraction", `{"input_tokens":12.0}`, "input_tokens", "input_tokens is 12.0; it must be a whole number in plain digits, without a point or an exponent"},
		{"exponent", `{"input_tokens":1e3}`, "input_tokens", "input_tokens is 1e3; it must be a whole number in plain digits, without a point or an exponent"},
		{"not a number", `{"input_tokens":NaN}`, "input_tokens", `input_tokens is not valid JSON: no value starts with "N", at byte 16`},
		{"leading zero", `{"input_tokens":012}`, "input_tokens", "input_tokens is not valid JSON: a number starts with a needless zero, at byte 16"},
		{"bare minus", `{"input_tokens":-}`, "input_tokens", "input_tokens is not valid JSON: a number lacks a digit, at byte 17"},
		{"too many tokens", `{"input_tokens":1000000001}`, "input_tokens", "input_tokens is 1000000001; it must be at most 1000000000"},
		{"past 64 bits", `{"input_tokens":99999999999999999999}`, "input_tokens", "input_tokens is 99999999999999999999; it must be at most 1000000000"},
		{"past -64 bits", `{"input_tokens":-99999999999999999999}`, "input_tokens", "input_tokens is -99999999999999999999; it must be 0 or more"},
		{"number of many digits", `{"input_tokens":` + strings.Repeat("9", 1000) + `}`, "input_tokens", "input_tokens is " + strings.Repeat("9", 64) + "...; it must be at most 1000000000"},
		{"too long a wait", `{"input_tokens":1,"wait_ms":31536000001}`, "wait_ms", "wait_ms is 31536000001; it must be at most 31536000000"},
		{"an earlier duplicate", `{"input_tokens":-5,"input_tokens":5}`, "input_tokens", "input_tokens is -5; it must be 0 or more"},

		{"number for string", `{"tenant":5}`, "tenant", "tenant is 5, a number; it must be a string"},
		{"tenant too long", `{"tenant":"` + long + `"}`, "tenant", "tenant is 300 bytes long; it must be at most 256"},
		{"request_id too long", `{"request_id":"` + long + `"}`, "request_id", "request_id is 300 bytes long; it must be at most 128"},
		{"not UTF-8", "{\"tenant\":\"a\xff\"}", "tenant", `tenant is "a\xff"; it must be valid UTF-8`},
		{"half a pair", `{"kind":"\ud800x"}`, "kind", "kind holds half of a surrogate pair; it must be valid UTF-8"},
		{"pair the wrong way round", `{"kind":"\ude00\ud83d"}`, "kind", "kind holds half of a surrogate pair; it must be valid UTF-8"},
		{"control character", "{\"model\":\"a\nb\"}", "model", "model is not valid JSON: a string holds a control character, at byte 11"},
		{"unknown escape", `{"model":"\x41"}`, "model", "model is not valid JSON: a string holds an escape that JSON does not have, at byte 10"},
		{"short escape", `{"model":"\u41"}`, "model", "model is not valid JSON: a string holds an escape that JSON does not have, at byte 10"},
		{"no closing quote", `{"model":"gpt`, "model", "model is not valid JSON: it ends too early, at byte 13"},

		{"cut in an escape", `{"model":"gpt\`, "model", "model is not valid JSON: a string holds an escape that JSON does not have, at byte 13"},
		{"broken string for number", `{"input_tokens":"12`, "input_tokens", "input_tokens is not valid JSON: it ends too early, at byte 19"},
		{"broken number for string", `{"tenant":01}`, "tenant", "tenant is not valid JSON: a number starts with a needless zero, at byte 10"},

		{"number for boolean", `{"confirm":1}`, "confirm", "confirm is 1, a number; it must be true or false"},
		{"string for boolean", `{"confirm":"true"}`, "confirm", `confirm is "true", a string; it must be true or false`},
		{"half a boolean", `{"confirm":tru}`, "confirm", "confirm is not valid JSON: a word is neither true nor false nor null, at byte 11"},
		{"another null", `{"confirm":nil}`, "confirm", "confirm is not valid JSON: a word is neither true nor false nor null, at byte 11"},

		{"a lease for a ticket", `{"ticket":"7-18a3"}`, "ticket", `ticket is "7-18a3"; it must be an id from a defer, like 7-t42`},
		{"long ticket cut between characters", `{"ticket":"x` + strings.Repeat("ü", 100) + `"}`, "ticket", `ticket is "x` + strings.Repeat("ü", 31) + `..."; it must be an id from a defer, like 7-t42`},
		{"long ticket", `{"ticket":"` + long + `"}`, "ticket", `ticket is "` + long[:64] + `..."; it must be an id from a defer, like 7-t42`},

		{"string for request", `{"request":"hi"}`, "request", `request is "hi", a string; it must be a JSON object, the provider request body`},
		{"array for request", `{"request":[]}`, "request", "request is an array; it must be a JSON object, the provider request body"},
		{"broken request", `{"request":{"a":1 "b":2}}`, "request", "request is not valid JSON: a comma or a closing bracket is missing, at byte 18"},
		{"deep request", `{"request":` + nested(65, `{"a":`, "}") + `}`, "request", "request nests deeper than 64 levels, at byte 331"},

		{"neither", `{"model":"gpt-5"}`, "", "request and input_tokens are both missing; exactly one must be there"},
		{"both", `{"input_tokens":5,"request":{}}`, "", "request and input_tokens are both there; exactly one must be"},
		{"another case", `{"Input_Tokens":5}`, "", "request and input_tokens are both missing; exactly one must be there"},
		{"null", `{"input_tokens":5,"input_tokens":null}`, "", "request and input_tokens are both missing; exactly one must be there"},

		{"empty", "", "", "the body is empty; it must be a JSON object"},
		{"white space", " \r\n\t", "", "the body is empty; it must be a JSON object"},
		{"no object", `[{"input_tokens":5}]`, "", "the body is an array; it must be a JSON object"},
		{"null body", "null", "", "the body is null; it must be a JSON object"},
		{"number body", "12", "", "the body is 12, a number; it must be a JSON object"},
		{"no JSON", "hello", "", `the body is not valid JSON: no value starts with "h", at byte 0`},
		{"byte order mark", "\ufeff{}", "", `the body is not valid JSON: no value starts with "\xef", at byte 0`},
		{"trailing garbage", `{"input_tokens":5}x`, "", "the body is not valid JSON: something follows the value, at byte 18"},
		{"two bodies", `{"input_tokens":5}{}`, "", "the body is not valid JSON: something follows the value, at byte 18"},
		{"cut off", `{"input_tokens":5`, "", "the body is not valid JSON: it ends too early, at byte 17"},
		{"missing comma", `{"input_tokens":5 "tenant":"a"}`, "", "the body is not valid JSON: a comma or a closing bracket is missing, at byte 18"},
		{"trailing comma", `{"input_tokens":5,}`, "", "the body is not valid JSON: a field name is missing, at byte 18"},
		{"leading comma", `{,"input_tokens":5}`, "", "the body is not valid JSON: a field name is missing, at byte 1"},
		{"missing colon", `{"input_tokens" 5}`, "", "the body is not valid JSON: a colon is missing, at byte 16"},
		{"broken unknown field", `{"later":[1,}`, "", `the body is not valid JSON: no value starts with "}", at byte 12`},
		{"deep unknown field", `{"later":` + nested(65, "[", "]") + `}`, "", "the body nests deeper than 64 levels, at byte 73"},
	})
}

func TestSettleErrors(t *testing.T) {
	const ok = `"lease":"7-18a3","outcome":"ok"`
	const outcomes = "one of ok, unsent, failed, throttled, overloaded, exhausted, unknown"
	const figures = "; it must be there when usage is, as a whole number; 0 where the provider counts none"
	settleCodec.checkRows(t, []row{
		{"no lease", `{"outcome":"ok"}`, "lease", "lease is missing; it must be the id from the grant"},
		{"empty lease", `{"lease":"","outcome":"ok"}`, "lease", "lease is missing; it must be the id from the grant"},
		{"null lease", `{"lease":null,"outcome":"ok"}`, "lease", "lease is missing; it must be the id from the grant"},
		{"another form of a lease", `{"lease":"7-18A3","outcome":"ok"}`, "lease", `lease is "7-18A3"; it must be an id from a grant, like 7-18a3`},
		{"no outcome", `{"lease":"7-18a3"}`, "outcome", "outcome is missing; it must be " + outcomes},
		{"empty outcome", `{"lease":"7-18a3","outcome":""}`, "outcome", `outcome is ""; it must be ` + outcomes},
		{"unknown outcome", `{"lease":"7-18a3","outcome":"OK"}`, "outcome", `outcome is "OK"; it must be ` + outcomes},
		{"number outcome", `{"lease":"7-18a3","outcome":1}`, "outcome", "outcome is 1, a number; it must be a string"},
		{"negative usage", `{` + ok + `,"usage":{"input_tokens":-5000,"output_tokens":1}}`, "usage.input_tokens", "usage.input_tokens is -5000; it must be 0 or more"},
		{"immense usage", `{` + ok + `,"usage":{"input_tokens":1000000000000000000}}`, "usage.input_tokens", "usage.input_tokens is 1000000000000000000; it must be at most 1000000000"},
		{"NaN usage", `{` + ok + `,"usage":{"output_tokens":NaN}}`, "usage.output_tokens", `usage.output_tokens is not valid JSON: no value starts with "N", at byte 58`},
		{"string usage", `{` + ok + `,"usage":{"output_tokens":"5"}}`, "usage.output_tokens", `usage.output_tokens is "5", a string; it must be a whole number`},
		{"no usage figures", `{` + ok + `,"usage":{}}`, "usage.input_tokens", "usage.input_tokens is missing" + figures},
		{"no output figure", `{` + ok + `,"usage":{"input_tokens":5,"output_tokens":null}}`, "usage.output_tokens", "usage.output_tokens is missing" + figures},
		{"list of usages", `{` + ok + `,"usage":[]}`, "usage", "usage is an array; it must be an object"},
		{"cut in usage", `{` + ok + `,"usage":{"input_tokens":5`, "usage", "usage is not valid JSON: it ends too early, at byte 58"},
		{"broken unknown field in usage", `{` + ok + `,"usage":{"later":}}`, "usage", `usage is not valid JSON: no value starts with "}", at byte 50`},
		{"bad status", `{` + ok + `,"provider":{"status":1000}}`, "provider.status", "provider.status is 1000; it must be at most 999"},
		{"bad limit", `{` + ok + `,"provider":{"input_tokens":{"remaining":-1}}}`, "provider.input_tokens.remaining", "provider.input_tokens.remaining is -1; it must be 0 or more"},
		{"bad reset", `{` + ok + `,"provider":{"requests":{"reset_ms":1.5}}}`, "provider.requests.reset_ms", "provider.requests.reset_ms is 1.5; it must be a whole number in plain digits, without a point or an exponent"},
		{"broken unknown field in a limit", `{` + ok + `,"provider":{"tokens":{"later":[}}}`, "provider.tokens", `provider.tokens is not valid JSON: no value starts with "}", at byte 64`},
		{"limit is a number", `{` + ok + `,"provider":{"tokens":5}}`, "provider.tokens", "provider.tokens is 5, a number; it must be an object"},
	})
}

func TestRenewErrors(t *testing.T) {
	renewCodec.checkRows(t, []row{
		{"no lease", `{"ttl_ms":1}`, "lease", "lease is missing; it must be the id from the grant"},
		{"negative ttl", `{"lease":"7-18a3","ttl_ms":-1}`, "ttl_ms", "ttl_ms is -1; it must be 0 or more"},
		{"empty", "", "", "the body is empty; it must be a JSON object"},
	})
}

func TestCancelErrors(t *testing.T) {
	cancelCodec.checkRows(t, []row{
		{"nothing", `{}`, "", "0 of request_id, ticket and lease are there; exactly one must be"},
		{"empty ids", `{"request_id":"","ticket":"","lease":""}`, "", "0 of request_id, ticket and lease are there; exactly one must be"},
		{"two", `{"request_id":"r","ticket":"7-t42"}`, "", "2 of request_id, ticket and lease are there; exactly one must be"},
		{"ticket as lease", `{"lease":"7-t42"}`, "lease", `lease is "7-t42"; it must be an id from a grant, like 7-18a3`},
	})
}

func TestDecisionErrors(t *testing.T) {
	decisionCodec.checkRows(t, []row{
		{"no decision", `{}`, "decision", "decision is missing; it must be one of grant, defer, refuse"},
		{"an error body", `{"error":{"code":"internal","message":"m"}}`, "decision", "decision is missing; it must be one of grant, defer, refuse"},
		{"unknown decision", `{"decision":"maybe"}`, "decision", `decision is "maybe"; it must be one of grant, defer, refuse`},
		{"grant without lease", `{"decision":"grant"}`, "lease", "lease is missing; it must be there on a grant"},
		{"defer without ticket", `{"decision":"defer","cause":"quota","retry_after_ms":1}`, "ticket", "ticket is missing; it must be there on a defer"},
		{"defer to now", `{"decision":"defer","cause":"quota","ticket":"7-t42","retry_after_ms":0}`, "retry_after_ms", "retry_after_ms is 0; it must be at least 1"},
		{"defer without cause", `{"decision":"defer","ticket":"7-t42","retry_after_ms":1}`, "cause", "cause is missing; it must be there on a defer and on a refuse"},
		{"refuse without cause", `{"decision":"refuse","message":"no"}`, "cause", "cause is missing; it must be there on a defer and on a refuse"},
		{"negative epoch", `{"decision":"grant","epoch":-1}`, "epoch", "epoch is -1; it must be 0 or more"},
		{"epoch past 64 bits", `{"decision":"grant","epoch":18446744073709551616}`, "epoch", "epoch is 18446744073709551616; it must be at most 18446744073709551615"},
		{"epoch far past 64 bits", `{"decision":"grant","epoch":-99999999999999999999}`, "epoch", "epoch is -99999999999999999999; it must be 0 or more"},
		{"bad cost", `{"decision":"grant","cost":{"tokens":"5"}}`, "cost.tokens", `cost.tokens is "5", a string; it must be a whole number`},
		{"bad method", `{"decision":"grant","cost":{"method":"guessed"}}`, "cost.method", `cost.method is "guessed"; it must be one of exact, counted, sampled, fallback, regression`},
	})
	settleReplyCodec.checkRows(t, []row{
		{"settle reply without lease", `{"settled":true}`, "lease", "lease is missing; it must be there"},
		{"settle reply of a wrong type", `{"charged":{"requests":-1}}`, "charged.requests", "charged.requests is -1; it must be 0 or more"},
	})
}

// What is accepted that a reader may not expect. Everything else that is
// accepted is compared with the reference by the fuzz tests.
func TestDecodeAccepts(t *testing.T) {
	count := wire.Int(5)
	for _, tt := range []struct {
		name, body string
		want       wire.AcquireRequest
	}{
		{"unknown fields", `{"class":"interactive","input_tokens":5,"later":[{"x":1e400}]}`, wire.AcquireRequest{InputTokens: count}},
		{"the last duplicate", `{"input_tokens":4,"tenant":"a","input_tokens":5,"tenant":null}`, wire.AcquireRequest{InputTokens: count}},
		{"nulls", `{"request":null,"input_tokens":5,"tenant":null,"confirm":null,"ticket":null,"wait_ms":null}`, wire.AcquireRequest{InputTokens: count}},
		{"zero is there", `{"input_tokens":0,"max_output_tokens":-0,"deadline_ms":0}`, wire.AcquireRequest{InputTokens: wire.Int(0), MaxOutputTokens: wire.Int(0), DeadlineMS: wire.Int(0)}},
		{"empty ticket", `{"input_tokens":5,"ticket":""}`, wire.AcquireRequest{InputTokens: count}},
		{"escaped name", `{"inp\u0075t_tokens":5}`, wire.AcquireRequest{InputTokens: count}},
		{"escaped text", `{"input_tokens":5,"tenant":"a\u00fC\uD83d\ude00\"\\\/\b\f\n\r\t\u0000"}`, wire.AcquireRequest{InputTokens: count, Tenant: "aü😀\"\\/\b\f\n\r\t\x00"}},
		{"escaped ticket", `{"input_tokens":5,"ticket":"7\u002dt42"}`, wire.AcquireRequest{InputTokens: count, Ticket: wire.TicketID{Epoch: 7, N: 0x42}}},
		{"request untouched", `{"request": { "a" : [ 1 , "\ud800" ] } }`, wire.AcquireRequest{Request: []byte(`{ "a" : [ 1 , "\ud800" ] }`)}},
		{"the deepest request", `{"request":` + nested(64, `{"a":`, "}") + `}`, wire.AcquireRequest{Request: []byte(nested(64, `{"a":`, "}"))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := wire.AcquireRequest{Model: "from before", TTLMS: 1, Confirm: true} // all of it must go
			if err := wire.DecodeAcquire([]byte(tt.body), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Tenants that are free text stay apart, whatever they would mean as a subject.
func TestTenantsStayApart(t *testing.T) {
	seen := map[string]bool{}
	for _, tenant := range []string{"acme.eu", "user@x.com", "a b", "a:b", "ü", "u\u0308", "*", ">", "a..b", "A", "a", "", "\x00", "\ufffd"} {
		body := wire.AppendAcquire(nil, &wire.AcquireRequest{Tenant: tenant, InputTokens: wire.Int(1)})
		var r wire.AcquireRequest
		if err := wire.DecodeAcquire(body, &r); err != nil {
			t.Fatal(err)
		}
		if r.Tenant != tenant || seen[r.Tenant] {
			t.Errorf("%q was read back as %q", tenant, r.Tenant)
		}
		seen[r.Tenant] = true
	}
}

func TestRequestIsAView(t *testing.T) {
	body := []byte(`{"request":{"a":1},"tenant":"x"}`)
	var r wire.AcquireRequest
	if err := wire.DecodeAcquire(body, &r); err != nil {
		t.Fatal(err)
	}
	if &r.Request[0] != &body[11] {
		t.Error("the request was copied")
	}
	// An append to the view must not write into the rest of the body.
	_ = append(r.Request, "!!!!"...)
	if string(body) != `{"request":{"a":1},"tenant":"x"}` {
		t.Errorf("the body became %s", body)
	}
}

// A provider that is given twice must not keep limits of the first time.
func TestPartsOfTheLastDuplicate(t *testing.T) {
	const body = `{"lease":"7-1","outcome":"ok","provider":{"status":429,"tokens":{"limit":5}},` +
		`"provider":{"tokens":{"limit":6,"remaining":1},"tokens":{"limit":7,"later":{}}},"usage":{"input_tokens":9,"output_tokens":9},"usage":null}`
	var got wire.SettleRequest
	if err := wire.DecodeSettle([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want := wire.SettleRequest{
		Lease: wire.LeaseID{Epoch: 7, N: 1}, Outcome: wire.OutcomeOK,
		Provider: &wire.ProviderState{Tokens: &wire.LimitState{Limit: wire.Int(7)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheckStatusRequest(t *testing.T) {
	for _, body := range []string{"", " \n", "{}", ` {"job_id":"j1","deep":[{}]} `} {
		if err := wire.CheckStatusRequest([]byte(body)); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
	for body, want := range map[string]string{
		"[]":    "the body is an array; it must be a JSON object",
		"null":  "the body is null; it must be a JSON object",
		"{}{}":  "the body is not valid JSON: something follows the value, at byte 2",
		`{"a":`: "the body is not valid JSON: it ends too early, at byte 5",
	} {
		err := wire.CheckStatusRequest([]byte(body))
		if !errors.Is(err, &wire.Error{Code: wire.CodeBadRequest}) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", body, err, want)
		}
	}
}
