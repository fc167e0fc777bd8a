package estimator

// readResponses reads OpenAI's responses shape.
func (r *reader) readResponses(root value, p *profile) {
	r.in("instructions", root.get("instructions"), func(v value) {
		if !v.is("") {
			r.framing += messageTokens + 1
			r.content(v)
		}
	})
	r.in("input", root.get("input"), func(v value) {
		switch v.kind() {
		case jsonString:
			r.framing += messageTokens + 1
			r.text(v.text())
		case jsonArray:
			r.each(v, r.item)
		default:
			r.wrong(v, "a string or an array of items")
		}
	})
	r.framing += p.PrimerTokens
	r.in("prompt", root.get("prompt"), func(v value) { r.in("variables", v.get("variables"), r.json) })
	r.in("tools", root.get("tools"), r.toolList)
	r.in("text", root.get("text"), func(v value) {
		if v.kind() != jsonObject {
			r.wrong(v, "an object")
			return
		}
		r.in("format", v.get("format"), r.format)
	})
}

// item reads one item of an input. What is no message, call or result is
// counted as the text of its JSON.
func (r *reader) item(v value) {
	if v.kind() != jsonObject {
		r.wrong(v, "an object")
		return
	}
	kind := v.get("type")
	if !kind.isNull() && kind.kind() != jsonString {
		r.in("type", kind, r.str)
		return
	}
	switch string(kind.text()) {
	case "", "message":
		if v.get("role").is("user") {
			r.sealed = 0
		}
		r.message(v)
	case "function_call", "custom_tool_call":
		r.framing += messageTokens + callTokens
		r.call(v)
	case "function_call_output", "custom_tool_call_output":
		r.framing += messageTokens + 1
		r.in("output", v.get("output"), r.content)
	case "reasoning":
		r.in("content", v.get("content"), r.content)
		r.in("encrypted_content", v.get("encrypted_content"), func(v value) { r.sealed += sealedTokens(v) })
	case "compaction":
		r.in("encrypted_content", v.get("encrypted_content"), func(v value) { r.framing += sealedTokens(v) })
	case "image_generation_call":
		r.media[mediaImage]++
	default:
		r.json(v)
	}
}

// sealedTokens estimates the tokens in an encrypted string: a sixth of its
// bytes beyond the first 900, from 12 recorded requests. Reasoning counts only
// until the next user message; its summary never does.
func sealedTokens(v value) int64 {
	return max(0, int64(len(v.raw()))-900) / 6
}
