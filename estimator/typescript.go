package estimator

// Function definitions reach OpenAI's models as TypeScript, not as JSON:
//
//	namespace functions {
//
//	// Get the current weather
//	type get_current_weather = (_: {
//	// Location
//	// The city and state, e.g. San Francisco, CA
//	location: string,
//	unit?: "celsius" | "fahrenheit", // default: "celsius"
//	}) => any;
//
//	} // namespace functions
//
// What is said here in comments, names and types is the models' own account of it,
// as published by hmarr/openai-chat-tokens; titles and defaults are what recorded
// requests take more where they have some. Those to gpt-3.5, gpt-4 and gpt-4o take as
// many tokens as this text and 9 more, 5 beside a system message.

// typescript writes tool or function definitions.
type typescript struct {
	out      []byte
	untitled int // functions whose description is ""
}

// functions writes the functions of a list, and returns how many there are and how
// many tools are none.
func (t *typescript) functions(list value) (functions, others int) {
	for _, tool := range list.elements() {
		f := tool
		if inner := tool.get("function"); inner.kind() == jsonObject {
			f = inner
		}
		if f.get("name").kind() != jsonString {
			others++
			continue
		}
		if functions == 0 {
			t.add("namespace functions {\n\n")
		}
		functions++
		t.function(f)
	}
	if functions > 0 {
		t.add("} // namespace functions")
	}
	return functions, others
}

func (t *typescript) add(s string) { t.out = append(t.out, s...) }

func (t *typescript) text(v value) {
	if v.kind() == jsonString {
		t.out = append(t.out, v.text()...)
	}
}

func (t *typescript) function(f value) {
	switch d := f.get("description"); {
	case d.is(""):
		t.untitled++
	case d.kind() == jsonString:
		t.comment(d)
	}
	t.add("type ")
	t.text(f.get("name"))
	parameters := f.get("parameters")
	if parameters.get("properties").empty() || parameters.get("properties").kind() != jsonObject {
		t.add(" = () => any;\n\n")
		return
	}
	t.add(" = (_: {\n")
	t.properties(parameters)
	t.add("}) => any;\n\n")
}

func (t *typescript) comment(d value) {
	t.add("// ")
	t.text(d)
	t.add("\n")
}

// properties writes the members of an object's schema, a line each.
func (t *typescript) properties(schema value) {
	required := namesIn(schema.get("required"))
	for name, p := range schema.get("properties").members() {
		if p.kind() != jsonObject {
			continue
		}
		for _, about := range []string{"title", "description"} {
			if d := p.get(about); d.kind() == jsonString && !d.is("") {
				t.comment(d)
			}
		}
		t.text(name)
		if !required[string(name.text())] {
			t.add("?")
		}
		t.add(": ")
		t.schema(p)
		t.add(",")
		if d := p.get("default"); d.doc != nil { // null is one too
			t.add(" // default: ")
			t.out = append(t.out, d.raw()...)
		}
		t.add("\n")
	}
}

func namesIn(list value) map[string]bool {
	if list.kind() != jsonArray || list.empty() {
		return nil
	}
	names := map[string]bool{}
	for _, v := range list.elements() {
		if v.kind() == jsonString {
			names[string(v.text())] = true
		}
	}
	return names
}

// schema writes a type.
func (t *typescript) schema(p value) {
	if p.kind() != jsonObject {
		t.add("any")
		return
	}
	if enum := p.get("enum"); enum.kind() == jsonArray && !enum.empty() {
		t.join(enum, func(v value) { t.out = append(t.out, v.raw()...) })
		return
	}
	for _, of := range []string{"anyOf", "oneOf", "allOf"} {
		if list := p.get(of); list.kind() == jsonArray && !list.empty() {
			t.join(list, t.schema)
			return
		}
	}
	kind := p.get("type")
	if kind.kind() == jsonArray {
		t.join(kind, func(v value) { t.named(v, p) })
		return
	}
	t.named(kind, p)
}

func (t *typescript) join(list value, one func(value)) {
	for i, v := range list.elements() {
		if i > 0 {
			t.add(" | ")
		}
		one(v)
	}
}

func (t *typescript) named(kind, p value) {
	switch {
	case kind.is("array"):
		if items := p.get("items"); items.kind() == jsonObject {
			t.schema(items)
			t.add("[]")
			return
		}
		t.add("any[]")
	case kind.is("object"):
		if props := p.get("properties"); props.kind() != jsonObject || props.empty() {
			t.add("object")
			return
		}
		t.add("{\n")
		t.properties(p)
		t.add("}")
	case kind.is("integer"):
		t.add("number")
	case kind.kind() == jsonString:
		t.text(kind)
	default:
		t.add("any")
	}
}
