package wire_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"quotabroker/wire"
)

// The schemas of requests name the fields of the Go types, with their bounds.
func TestSchemasNameEveryField(t *testing.T) {
	for _, tt := range []struct {
		schema string
		in     []string // the path of properties that leads to the object
		typ    reflect.Type
	}{
		{"acquire.request", nil, reflect.TypeFor[wire.AcquireRequest]()},
		{"settle.request", nil, reflect.TypeFor[wire.SettleRequest]()},
		{"settle.request", []string{"usage"}, reflect.TypeFor[wire.Usage]()},
		{"settle.request", []string{"provider"}, reflect.TypeFor[wire.ProviderState]()},
		{"settle.response", nil, reflect.TypeFor[wire.SettleReply]()},
		{"renew.request", nil, reflect.TypeFor[wire.RenewRequest]()},
		{"renew.response", nil, reflect.TypeFor[wire.RenewReply]()},
		{"cancel.request", nil, reflect.TypeFor[wire.CancelRequest]()},
		{"cancel.response", nil, reflect.TypeFor[wire.CancelReply]()},
		{"estimate.response", nil, reflect.TypeFor[wire.EstimateReply]()},
		{"estimate.response", []string{"learned"}, reflect.TypeFor[wire.Learned]()},
		{"explain.response", nil, reflect.TypeFor[wire.Explanation]()},
		{"status.response", nil, reflect.TypeFor[wire.Status]()},
		{"status.response", []string{"leases"}, reflect.TypeFor[wire.LeaseStatus]()},
		{"status.response", []string{"provider"}, reflect.TypeFor[wire.ProviderStatus]()},
		{"error", []string{"error"}, reflect.TypeFor[wire.Error]()},
	} {
		object := parseSchema(t, schemaNamed(t, tt.schema))
		for _, name := range tt.in {
			object = object.Properties[name]
		}
		checkFields(t, tt.schema+" "+strings.Join(tt.in, "."), object, tt.typ)
	}
	for _, tt := range []struct {
		schema, def string
		typ         reflect.Type
	}{
		{"acquire.response", "cost", reflect.TypeFor[wire.Cost]()},
		{"settle.request", "limit", reflect.TypeFor[wire.LimitState]()},
		{"explain.response", "class", reflect.TypeFor[wire.ClassExplain]()},
		{"status.response", "limit_status", reflect.TypeFor[wire.LimitStatus]()},
		{"status.response", "class", reflect.TypeFor[wire.ClassStatus]()},
		{"status.response", "amounts", reflect.TypeFor[wire.ClassAmounts]()},
		{"status.response", "histogram", reflect.TypeFor[wire.Histogram]()},
		{"status.response", "tenant", reflect.TypeFor[wire.TenantStatus]()},
	} {
		checkFields(t, tt.schema+" "+tt.def, parseSchema(t, schemaNamed(t, tt.schema)).Defs[tt.def], tt.typ)
	}
}

func checkFields(t *testing.T, where string, object *jsonschema.Schema, typ reflect.Type) {
	t.Helper()
	var names []string
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, slices.Sorted(maps.Keys(object.Properties))); diff != "" {
		t.Errorf("%s (-%s +schema)\n%s", where, typ, diff)
	}
}

func schemaNamed(t *testing.T, name string) wire.Schema {
	t.Helper()
	for _, s := range wire.Schemas() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no schema %s", name)
	return wire.Schema{}
}

// The words and bounds of the schemas are those of the package.
func TestSchemaWordsAndBounds(t *testing.T) {
	acquire := parseSchema(t, schemaNamed(t, "acquire.request"))
	settle := parseSchema(t, schemaNamed(t, "settle.request"))
	decision := parseSchema(t, schemaNamed(t, "acquire.response"))
	failure := parseSchema(t, schemaNamed(t, "error"))
	words := func(n int, word func(i int) string) (out []any) {
		for i := 1; i < n; i++ {
			out = append(out, word(i))
		}
		return out
	}
	causes := func(list []wire.Cause) []any {
		return words(len(list)+1, func(i int) string { return list[i-1].String() })
	}
	codes := words(len(errorCodes)+1, func(i int) string { return string(errorCodes[i-1]) })
	for _, tt := range []struct {
		name      string
		want, got any
	}{
		{"outcomes", words(8, func(i int) string { return wire.Outcome(i).String() }), settle.Properties["outcome"].Enum},
		{"methods", words(6, func(i int) string { return wire.Method(i).String() }), decision.Defs["cost"].Properties["method"].Enum},
		{"causes of a defer", causes(deferCauses), decision.Defs["defer"].Properties["cause"].Enum},
		{"causes of a refuse", causes(refuseCauses), decision.Defs["refuse"].Properties["cause"].Enum},
		{"codes", codes, failure.Properties["error"].Properties["code"].Enum},
		{"tokens", float64(wire.MaxTokens), *acquire.Properties["input_tokens"].Maximum},
		{"durations", float64(wire.MaxDurationMS), *acquire.Properties["wait_ms"].Maximum},
		{"amounts", float64(wire.MaxLimitAmount), *settle.Defs["limit"].Properties["limit"].Maximum},
		{"request ids", wire.MaxRequestIDBytes, *acquire.Properties["request_id"].MaxLength},
		{"texts", wire.MaxTextBytes, *acquire.Properties["tenant"].MaxLength},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-package +schema)\n%s", tt.name, diff)
		}
	}
	if got := len(deferCauses) + len(refuseCauses) - 1; got != wire.NumCauses-1 { // tenant_limit is in both
		t.Errorf("%d causes in the schema, %d in the package", got, wire.NumCauses-1)
	}
}

func TestSchemaFor(t *testing.T) {
	ids := map[string]bool{}
	for _, s := range wire.Schemas() {
		ids[s.ID] = true
	}
	for _, verb := range wire.Verbs() {
		request, response := wire.SchemaFor(verb)
		if !ids[request] || !ids[response] {
			t.Errorf("%s: no schema %q or %q", verb, request, response)
		}
	}
	if request, _ := wire.SchemaFor(wire.VerbExplain); request != "urn:quotabroker:v1:acquire.request" {
		t.Errorf("explain takes %s", request)
	}
	if request, response := wire.SchemaFor("dance"); request != "" || response != "" {
		t.Errorf("an unknown verb has %q and %q", request, response)
	}
}
