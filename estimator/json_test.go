package estimator

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var jsonSamples = []string{
	`null`, `true`, `false`, `0`, `-0`, `-1.5e+10`, `1E5`, `""`, `"a\"b\\c\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00"`, `[]`, `{}`,
	`[1,"a",{"b":[null,{"c":true}]},[[]]]`, " { \"a\" : [ 1 , 2 ] ,\t\"b\":\r\n{} } ", `{"a":1,"a":2,"":3}`,
	`"\ud800"`, `"\ud800\u0041"`, `"\udc00\ud800x"`, `"\u0000\u001f\u007f"`, "\"\xff\xc3\"", "\"\u2028\"",
	``, ` `, `nul`, `truee`, `tru`, `01`, `-`, `1.`, `.5`, `1e`, `1e+`, `+1`, `"`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", "\"\x00\"",
	`[`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 2]`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{1:2}`, `]`, `}`, `1 1`, `{}x`, "\ufeff{}",
}

// checkJSON compares the parser with encoding/json: what it accepts, and what it
// reads, member by member.
func checkJSON(t *testing.T, body []byte) {
	t.Helper()
	nodes, err := parseJSON(body)
	if err != nil {
		if json.Valid(body) && !strings.Contains(err.Message, "deeper") {
			t.Fatalf("%q: %v", body, err)
		}
		return
	}
	if !json.Valid(body) {
		t.Fatalf("%q was accepted", body)
	}
	root := (&document{body: body, nodes: nodes}).root()
	var want any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if got := decoded(root); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q reads as %#v, want %#v", body, got, want)
	}
	compact := root.compact(nil, func(value) bool { return false })
	if root.compacted() && !bytes.Equal(compact, root.raw()) {
		t.Fatalf("%q is said to be compact, as %q", body, compact)
	}
	var again any
	dec = json.NewDecoder(bytes.NewReader(compact))
	dec.UseNumber()
	if err := dec.Decode(&again); err != nil || !reflect.DeepEqual(again, want) {
		t.Fatalf("%q is compact %q (%v)", body, compact, err)
	}
}

// decoded is a value as encoding/json has it.
func decoded(v value) any {
	switch v.kind() {
	case jsonBool:
		return string(v.raw()) == "true"
	case jsonNumber:
		return json.Number(v.raw())
	case jsonString:
		return strings.Map(func(r rune) rune { return r }, string(v.text()))
	case jsonArray:
		list := []any{}
		for _, e := range v.elements() {
			list = append(list, decoded(e))
		}
		return list
	case jsonObject:
		object := map[string]any{}
		for key, val := range v.members() {
			object[decoded(key).(string)] = decoded(val)
		}
		return object
	default: // null
		return nil
	}
}

func TestJSONIsEncodingJSON(t *testing.T) {
	for _, s := range jsonSamples {
		checkJSON(t, []byte(s))
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range jsonSamples {
		f.Add([]byte(s))
	}
	f.Fuzz(checkJSON)
}

func TestCompact(t *testing.T) {
	for in, want := range map[string]string{
		` [ 1 , "a\u00e9\/\"\n\u0001" , { "k" : null } ] `:  `[1,"aé/\"\n\u0001",{"k":null}]`,
		`{"url":"data:image/png;base64,AAAA","t":"data:x"}`: `{"url":"","t":"data:x"}`,
	} {
		nodes, err := parseJSON([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		root := (&document{body: []byte(in), nodes: nodes}).root()
		got := root.compact(nil, func(s value) bool { _, ok := dataURL(s); return ok })
		if string(got) != want {
			t.Errorf("%s is compact %s, want %s", in, got, want)
		}
	}
	if got := (value{}).compact(nil, nil); string(got) != "null" {
		t.Errorf("the absent value is %s", got)
	}
}

func TestGet(t *testing.T) {
	body := []byte(`{"a":1,"b":{"a":5},"a":2,"\u0063":3}`)
	nodes, err := parseJSON(body)
	if err != nil {
		t.Fatal(err)
	}
	root := newDocument(body, nodes).root()
	for name, want := range map[string]string{"a": "2", "c": "3", "b": `{"a":5}`} {
		if got := root.get(name); string(got.raw()) != want {
			t.Errorf("%s is %s, want %s", name, got.raw(), want)
		}
	}
	if !root.get("d").isNull() || !root.get("a").get("x").isNull() || root.get("a").text() != nil {
		t.Error("an absent member is something")
	}
}

// TestGetOfManyMembers: with an index, absent, repeated and escaped names read as
// without one.
func TestGetOfManyMembers(t *testing.T) {
	body := []byte(`{"n":1,` + strings.Repeat(`"x":0,"y":{"n":7},`, 1000) + `"\u006d\u006fdel":"m","n":2,"tools":[]}`)
	nodes, err := parseJSON(body)
	if err != nil {
		t.Fatal(err)
	}
	indexed, plain := newDocument(body, nodes), &document{body: body, nodes: nodes}
	if indexed.index == nil {
		t.Fatal("no index")
	}
	fields := slices.Sorted(maps.Keys(rootFields))
	for _, name := range append(fields, "x", "y", "z") {
		if got, want := indexed.root().get(name), plain.root().get(name); got.at != want.at {
			t.Errorf("%s is value %d, want %d", name, got.at, want.at)
		}
	}
	if got := indexed.root().get("model"); !got.is("m") {
		t.Errorf("the model is %s", got.raw())
	}
}
