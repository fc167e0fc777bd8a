package estimator

import "slices"

// readChat reads the two shapes with messages: OpenAI chat and Anthropic.
func (r *reader) readChat(root value, p *profile) {
	messages := root.get("messages")
	r.in("messages", messages, func(v value) {
		if v.kind() != jsonArray {
			r.wrong(v, "an array")
			return
		}
		r.each(v, r.message)
		for _, first := range v.elements() {
			r.system = first.kind() == jsonObject && first.get("role").is("system")
			break
		}
	})
	r.in("system", root.get("system"), func(v value) {
		r.framing += messageTokens + 1
		r.content(v)
	})
	r.framing += p.PrimerTokens
	r.in("tools", root.get("tools"), r.toolList)
	r.in("functions", root.get("functions"), r.toolList)
	r.in("response_format", root.get("response_format"), r.format)
	r.in("output_format", root.get("output_format"), r.format)
	r.in("output_config", root.get("output_config"), func(v value) {
		r.in("format", v.get("format"), r.format)
	})
	r.in("n", root.get("n"), r.count)
}

// format reads how the answer must look: a schema is part of the prompt, the
// bare wish for JSON or text is not.
func (r *reader) format(v value) {
	if v.kind() != jsonObject {
		r.wrong(v, "an object")
	} else if !v.get("schema").isNull() {
		r.json(v.get("schema"))
	} else {
		r.in("json_schema", v.get("json_schema"), r.json)
	}
}

// message reads one message of a chat, or a message item of a responses input.
func (r *reader) message(v value) {
	if v.kind() != jsonObject {
		r.wrong(v, "an object")
		return
	}
	r.framing += messageTokens
	if v.empty() {
		return // a body may be a million of these
	}
	r.in("role", v.get("role"), r.role)
	r.in("name", v.get("name"), func(v value) {
		r.framing += nameTokens
		r.str(v)
	})
	r.in("content", v.get("content"), r.content)
	r.in("refusal", v.get("refusal"), r.str)
	r.in("reasoning_content", v.get("reasoning_content"), r.str)
	r.in("tool_calls", v.get("tool_calls"), func(v value) {
		if v.kind() != jsonArray {
			r.wrong(v, "an array")
			return
		}
		calls := int64(0)
		r.each(v, func(call value) {
			if call.kind() != jsonObject {
				r.wrong(call, "an object")
				return
			}
			calls++
			r.in("function", call.get("function"), r.call)
			r.in("custom", call.get("custom"), r.call)
		})
		r.framing += calls * callTokens
		if calls > 1 {
			r.framing += calls * moreCalls
		}
	})
	r.in("function_call", v.get("function_call"), func(v value) {
		r.framing += messageTokens
		r.call(v)
	})
}

// call reads an earlier call of a tool: its name and arguments, which are a
// string of JSON, or with some providers the JSON itself.
func (r *reader) call(v value) {
	if v.kind() != jsonObject {
		r.wrong(v, "an object")
		return
	}
	r.in("name", v.get("name"), r.str)
	for _, name := range []string{"arguments", "input"} {
		r.in(name, v.get(name), r.textOrJSON)
	}
}

func (r *reader) textOrJSON(v value) {
	if v.kind() == jsonString {
		r.text(v.text())
		return
	}
	r.json(v)
}

// content reads what a message says: a string or an array of parts.
func (r *reader) content(v value) {
	switch v.kind() {
	case jsonString:
		r.text(v.text())
	case jsonArray:
		r.texts = slices.Grow(r.texts, v.length())
		r.each(v, r.part)
	default:
		r.wrong(v, "a string or an array of parts")
	}
}
