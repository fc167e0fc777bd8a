package wire_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"quotabroker/wire"
)

func parseSchema(t *testing.T, s wire.Schema) *jsonschema.Schema {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(s.JSON, &schema); err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return &schema
}

// resolveSchemas returns all schemas by name, ready to validate.
func resolveSchemas(t *testing.T) map[string]*jsonschema.Resolved {
	t.Helper()
	resolved := map[string]*jsonschema.Resolved{}
	for _, s := range wire.Schemas() {
		r, err := parseSchema(t, s).Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		resolved[s.Name] = r
	}
	return resolved
}

func validate(schema *jsonschema.Resolved, text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return schema.Validate(v)
}

// decoders say for each schema whether this package takes a text as its message.
var decoders = map[string]func(text []byte) error{
	"acquire.request":   func(text []byte) error { return wire.DecodeAcquire(text, new(wire.AcquireRequest)) },
	"acquire.response":  func(text []byte) error { return wire.DecodeDecision(text, new(wire.Decision)) },
	"settle.request":    func(text []byte) error { return wire.DecodeSettle(text, new(wire.SettleRequest)) },
	"settle.response":   func(text []byte) error { return wire.DecodeSettleReply(text, new(wire.SettleReply)) },
	"renew.request":     func(text []byte) error { return wire.DecodeRenew(text, new(wire.RenewRequest)) },
	"renew.response":    func(text []byte) error { return json.Unmarshal(text, new(wire.RenewReply)) },
	"cancel.request":    func(text []byte) error { return wire.DecodeCancel(text, new(wire.CancelRequest)) },
	"cancel.response":   func(text []byte) error { return json.Unmarshal(text, new(wire.CancelReply)) },
	"estimate.response": func(text []byte) error { return json.Unmarshal(text, new(wire.EstimateReply)) },
	"explain.response":  func(text []byte) error { return json.Unmarshal(text, new(wire.Explanation)) },
	"status.request":    wire.CheckStatusRequest,
	"status.response":   func(text []byte) error { return json.Unmarshal(text, new(wire.Status)) },
	"error":             func(text []byte) error { return json.Unmarshal(text, new(wire.ErrorBody)) },
}

func TestSchemas(t *testing.T) {
	var names []string
	for _, s := range wire.Schemas() {
		names = append(names, s.Name)
		schema := parseSchema(t, s)
		if schema.ID != s.ID || s.ID != "urn:quotabroker:v1:"+s.Name {
			t.Errorf("%s: $id is %q, ID %q", s.Name, schema.ID, s.ID)
		}
		if schema.Schema != "https://json-schema.org/draft/2020-12/schema" || schema.Title == "" {
			t.Errorf("%s: $schema is %q, title %q", s.Name, schema.Schema, schema.Title)
		}
		checkKeywords(t, s.Name, schema)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(decoders)), names); diff != "" {
		t.Errorf("(-messages +schemas)\n%s", diff)
	}
}

// checkKeywords looks for keywords that draft 2020-12 does not have: a spelling
// mistake is passed over in silence by every validator.
func checkKeywords(t *testing.T, where string, s *jsonschema.Schema) {
	t.Helper()
	if s == nil {
		return
	}
	if len(s.Extra) > 0 {
		t.Errorf("%s: keywords that do not exist: %v", where, s.Extra)
	}
	for name, sub := range s.Properties {
		checkKeywords(t, where+"."+name, sub)
	}
	for name, sub := range s.Defs {
		checkKeywords(t, where+" "+name, sub)
	}
	for _, sub := range slices.Concat(s.OneOf, s.AllOf, []*jsonschema.Schema{
		s.If, s.Then, s.Else, s.Not, s.Items, s.AdditionalProperties, s.PropertyNames,
	}) {
		checkKeywords(t, where, sub)
	}
}

// The definitions are repeated, so that each schema is complete; here is what
// keeps them the same. Two stand apart: an explained decision has no lease and
// no ticket.
func TestSharedDefinitionsAreEqual(t *testing.T) {
	defs := map[string]map[string]any{} // by name, then by schema
	for _, s := range wire.Schemas() {
		var schema struct {
			Defs map[string]any `json:"$defs"`
		}
		if err := json.Unmarshal(s.JSON, &schema); err != nil {
			t.Fatal(err)
		}
		for name, def := range schema.Defs {
			if defs[name] == nil {
				defs[name] = map[string]any{}
			}
			defs[name][s.Name] = def
		}
	}
	for name, bySchema := range defs {
		switch name {
		case "grant", "defer", "class", "limit":
			continue // another thing in each
		}
		var first any
		for schema, def := range bySchema {
			if first == nil {
				first = def
			}
			if diff := cmp.Diff(first, def); diff != "" {
				t.Errorf("%s differs in %s\n%s", name, schema, diff)
			}
		}
	}
}

func TestExamples(t *testing.T) {
	schemas := resolveSchemas(t)
	for name, decode := range decoders {
		files, err := filepath.Glob(filepath.Join("testdata", "examples", name, "*.json"))
		if err != nil || len(files) == 0 {
			t.Errorf("no example of %s: %v", name, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(schemas[name], text); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if err := decode(text); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// The examples of replies, read and written again, are the same documents: no
// field of the protocol is lost and none is made up.
func TestReplyExamplesSurvive(t *testing.T) {
	survive := func(name string, again func(text []byte) ([]byte, error)) {
		files, err := filepath.Glob(filepath.Join("testdata", "examples", name, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out, err := again(text)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			var want, got any
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-file +written)\n%s", file, diff)
			}
		}
	}
	survive("acquire.response", func(text []byte) ([]byte, error) {
		var d wire.Decision
		err := wire.DecodeDecision(text, &d)
		return wire.AppendDecision(nil, &d), err
	})
	survive("settle.response", func(text []byte) ([]byte, error) {
		var r wire.SettleReply
		err := wire.DecodeSettleReply(text, &r)
		return wire.AppendSettleReply(nil, &r), err
	})
	survive("renew.response", func(text []byte) ([]byte, error) {
		var r wire.RenewReply
		err := json.Unmarshal(text, &r)
		return wire.AppendRenewReply(nil, &r), err
	})
	survive("cancel.response", func(text []byte) ([]byte, error) {
		var r wire.CancelReply
		err := json.Unmarshal(text, &r)
		return wire.AppendCancelReply(nil, &r), err
	})
	survive("error", func(text []byte) ([]byte, error) {
		var e wire.ErrorBody
		err := json.Unmarshal(text, &e)
		return wire.AppendError(nil, e.Error), err
	})
	survive("estimate.response", throughJSON[wire.EstimateReply])
	survive("explain.response", throughJSON[wire.Explanation])
	survive("status.response", throughJSON[wire.Status])
}

func throughJSON[T any](text []byte) ([]byte, error) {
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// What the encoders write is what the schemas describe.
func TestGeneratedMessagesMatchSchemas(t *testing.T) {
	schemas := resolveSchemas(t)
	check := func(name string, draw func(t *rapid.T) []byte) {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			text := draw(t)
			if err := validate(schemas[name], text); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
		}))
	}
	check("acquire.request", drawn(genAcquire(), wire.AppendAcquire))
	check("acquire.response", drawn(genDecision(), wire.AppendDecision))
	check("settle.request", drawn(genSettle(), wire.AppendSettle))
	check("settle.response", drawn(genSettleReply(), wire.AppendSettleReply))
	check("renew.request", drawn(genRenew(), wire.AppendRenew))
	check("cancel.request", drawn(genCancel(), wire.AppendCancel))
	check("error", drawn(genError(), wire.AppendError))
	check("renew.response", func(t *rapid.T) []byte {
		return wire.AppendRenewReply(nil, &wire.RenewReply{Lease: genLease().Draw(t, "lease"), TTLMS: genCount().Draw(t, "ttl_ms")})
	})
	check("cancel.response", func(t *rapid.T) []byte {
		return wire.AppendCancelReply(nil, &wire.CancelReply{Cancelled: rapid.Bool().Draw(t, "cancelled")})
	})
	check("estimate.response", func(t *rapid.T) []byte {
		return marshal(t, wire.EstimateReply{
			Cost: genCost().Draw(t, "cost"), ModelKnown: rapid.Bool().Draw(t, "model_known"), Encoding: genText(20).Draw(t, "encoding"),
			Learned: wire.Learned{InputRatio: rapid.Float64Range(0, 100).Draw(t, "input_ratio"), OutputP85: 1, Samples: 2},
		})
	})
	check("explain.response", func(t *rapid.T) []byte {
		d := genDecision().Draw(t, "decision")
		d.Lease, d.Ticket = wire.LeaseID{}, wire.TicketID{} // explaining makes neither
		return marshal(t, wire.Explanation{Decision: d, Why: genText(100).Draw(t, "why"), Classes: []wire.ClassExplain{{Class: "batch"}}})
	})
	check("status.response", func(t *rapid.T) []byte {
		s := wire.Status{Pool: genName().Draw(t, "pool"), Provider: wire.ProviderStatus{State: "ok"}, Draining: rapid.Bool().Draw(t, "draining")}
		if rapid.Bool().Draw(t, "class") {
			cause := rapid.SampledFrom(deferCauses).Draw(t, "cause")
			s.Classes = []wire.ClassStatus{{Class: "batch", Defers: map[string]uint64{cause.String(): 1}}}
		}
		return marshal(t, s)
	})
}

func drawn[T any](g *rapid.Generator[T], encode func([]byte, *T) []byte) func(t *rapid.T) []byte {
	return func(t *rapid.T) []byte {
		v := g.Draw(t, "message")
		return encode(nil, &v)
	}
}

func marshal(t *rapid.T, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The schema and the decoder of a message refuse the same bad bodies.
func TestSchemaAndDecoderRefuse(t *testing.T) {
	schemas := resolveSchemas(t)
	for _, tt := range []struct {
		schema string
		bodies []string
	}{
		{"acquire.request", []string{
			`[]`, `null`, `"x"`, `{}`, `{"input_tokens":1,"request":{}}`, `{"input_tokens":-5}`, `{"input_tokens":1.5}`, `{"input_tokens":"12"}`,
			`{"input_tokens":1000000001}`, `{"input_tokens":1e18}`, `{"Input_Tokens":5}`, `{"request":[]}`, `{"request":"x"}`,
			`{"input_tokens":1,"max_output_tokens":-1}`, `{"input_tokens":1,"tenant":5}`, `{"input_tokens":1,"tenant":"` + strings.Repeat("x", 257) + `"}`,
			`{"input_tokens":1,"kind":[]}`, `{"input_tokens":1,"model":true}`, `{"input_tokens":1,"request_id":"` + strings.Repeat("x", 129) + `"}`,
			`{"input_tokens":1,"wait_ms":-1}`, `{"input_tokens":1,"wait_ms":31536000001}`, `{"input_tokens":1,"deadline_ms":0.5}`, `{"input_tokens":1,"ttl_ms":"1"}`,
			`{"input_tokens":1,"ticket":"7-18a3"}`, `{"input_tokens":1,"ticket":"07-t1"}`, `{"input_tokens":1,"ticket":"7-tA"}`, `{"input_tokens":1,"confirm":1}`,
		}},
		{"settle.request", []string{
			`{}`, `{"lease":"7-1"}`, `{"outcome":"ok"}`, `{"lease":"7-t1","outcome":"ok"}`, `{"lease":"7-0","outcome":"ok"}`, `{"lease":7,"outcome":"ok"}`,
			`{"lease":"7-1","outcome":"OK"}`, `{"lease":"7-1","outcome":""}`, `{"lease":"7-1","outcome":1}`, `{"lease":"7-1","outcome":"ok","usage":{}}`,
			`{"lease":"7-1","outcome":"ok","usage":{"input_tokens":1}}`, `{"lease":"7-1","outcome":"ok","usage":{"input_tokens":-5000,"output_tokens":0}}`,
			`{"lease":"7-1","outcome":"ok","usage":{"input_tokens":1,"output_tokens":1000000000000000000}}`, `{"lease":"7-1","outcome":"ok","usage":[]}`,
			`{"lease":"7-1","outcome":"ok","usage":{"input_tokens":1,"output_tokens":1,"cached_input_tokens":"1"}}`,
			`{"lease":"7-1","outcome":"ok","usage":{"input_tokens":1,"output_tokens":1,"cache_write_tokens":-1}}`,
			`{"lease":"7-1","outcome":"ok","usage":{"input_tokens":1,"output_tokens":1,"reasoning_tokens":2.5}}`,
			`{"lease":"7-1","outcome":"ok","provider":5}`, `{"lease":"7-1","outcome":"ok","provider":{"status":1000}}`,
			`{"lease":"7-1","outcome":"ok","provider":{"retry_after_ms":-1}}`, `{"lease":"7-1","outcome":"ok","provider":{"tokens":{"limit":-1}}}`,
			`{"lease":"7-1","outcome":"ok","provider":{"input_tokens":{"remaining":"1"}}}`, `{"lease":"7-1","outcome":"ok","provider":{"output_tokens":{"reset_ms":31536000001}}}`,
			`{"lease":"7-1","outcome":"ok","provider":{"requests":{"limit":2000000000000000}}}`,
		}},
		{"renew.request", []string{`{}`, `{"ttl_ms":1}`, `{"lease":"7-1","ttl_ms":-1}`, `{"lease":"x"}`}},
		{"cancel.request", []string{`{}`, `{"request_id":""}`, `{"request_id":"a","lease":"7-1"}`, `{"ticket":"7-1"}`, `{"lease":"7-t1"}`, `{"request_id":1}`}},
		{"status.request", []string{`[]`, `null`, `1`}},
		{"acquire.response", []string{
			`{}`, `{"decision":"maybe"}`, `{"decision":"grant","class":"c","pool":"p","ttl_ms":1,"cost":{},"borrowed":false,"waited_ms":0,"epoch":1}`,
			`{"decision":"defer"}`, `{"decision":"refuse"}`,
		}},
		{"settle.response", []string{`{}`, `{"settled":"true","lease":"7-1"}`, `{"settled":true}`, `{"settled":true,"lease":"7-1","charged":{"tokens":-1}}`}},
		{"explain.response", []string{`{"decision":{}}`, `{"decision":{"decision":"maybe"}}`, `{"decision":5}`}},
		{"status.response", []string{`[]`, `{"epoch":-1}`, `{"epoch":"7"}`}},
	} {
		for _, body := range tt.bodies {
			if validate(schemas[tt.schema], []byte(body)) == nil {
				t.Errorf("the schema %s takes %s", tt.schema, body)
			}
			if decoders[tt.schema]([]byte(body)) == nil {
				t.Errorf("the decoder of %s takes %s", tt.schema, body)
			}
		}
	}
}

// Replies are closed: a schema refuses a field that belongs to another verdict.
func TestRepliesAreClosed(t *testing.T) {
	schemas := resolveSchemas(t)
	for _, name := range slices.Sorted(maps.Keys(decoders)) {
		closed := !strings.HasSuffix(name, ".request")
		files, err := filepath.Glob(filepath.Join("testdata", "examples", name, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			more := strings.Replace(string(text), "{", `{"not_in_this_version":1,`, 1)
			more = strings.Replace(more, ",}", "}", 1)
			if err := validate(schemas[name], []byte(more)); (err != nil) != closed {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	const refuse = `"decision":"refuse","class":"c","pool":"p","message":"m","cost":{"requests":1,"input_tokens":1,"output_tokens":1,"tokens":2}`
	for _, body := range []string{
		`{` + refuse + `,"cause":"draining","lease":"7-1"}`,
		`{` + refuse + `,"cause":"draining","limit":"l","limit_tokens":1}`,
		`{` + refuse + `,"cause":"too_large"}`,
		`{` + refuse + `,"cause":"too_large","limit":"l","limit_tokens":1,"retry_after_ms":1}`,
		`{` + refuse + `,"cause":"no_quota","retry_after_ms":1}`,
		`{` + refuse + `,"cause":"reserved"}`,
	} {
		if validate(schemas["acquire.response"], []byte(body)) == nil {
			t.Errorf("the schema takes %s", body)
		}
	}
	if err := validate(schemas["acquire.response"], []byte(`{`+refuse+`,"cause":"draining","retry_after_ms":1}`)); err != nil {
		t.Error(err)
	}
}
