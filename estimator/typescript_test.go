package estimator

import "testing"

// Every construct of a schema that has a rendering of its own.
func TestTypescript(t *testing.T) {
	const list = `[
		{"type":"function","function":{"name":"get_current_weather","description":"Get the current weather","parameters":{
			"type":"object","required":["location","when"],"properties":{
				"location":{"type":"string","title":"Location","description":"The city and state, e.g. San Francisco, CA"},
				"unit":{"type":"string","enum":["celsius","fahrenheit"],"default":"celsius"},
				"when":{"type":["string","null"],"description":""},
				"days":{"type":"integer","default":null},
				"at":{"anyOf":[{"type":"number"},{"type":"array","items":{"type":"boolean"}},true]},
				"list":{"type":"array"},
				"more":{"type":"object","required":[1],"properties":{"deep":{"type":"object"},"odd":{}}},
				"not a schema":7}}}},
		{"type":"function","name":"now","description":"","parameters":{"type":"object","properties":{}}},
		{"type":"web_search"}, 5]`
	const want = `namespace functions {

// Get the current weather
type get_current_weather = (_: {
// Location
// The city and state, e.g. San Francisco, CA
location: string,
unit?: "celsius" | "fahrenheit", // default: "celsius"
when: string | null,
days?: number, // default: null
at?: number | boolean[] | any,
list?: any[],
more?: {
deep?: object,
odd?: any,
},
}) => any;

type now = () => any;

} // namespace functions`
	nodes, err := parseJSON([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	var ts typescript
	functions, others := ts.functions(newDocument([]byte(list), nodes).root())
	if string(ts.out) != want || functions != 2 || others != 2 || ts.untitled != 1 {
		t.Errorf("%d functions, %d others, %d without a description:\n%s", functions, others, ts.untitled, ts.out)
	}
}
