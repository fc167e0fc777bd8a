package estimator

import "bytes"

// part reads one part of a content, of any provider. A type nobody knows is
// counted as the text of its JSON, which errs high.
func (r *reader) part(v value) {
	if v.kind() == jsonString {
		r.text(v.text())
		return
	}
	if v.kind() != jsonObject {
		r.wrong(v, "an object")
		return
	}
	if v.empty() {
		r.framing++ // what {} is as text; a body may be a million of these
		return
	}
	kind := v.get("type")
	if !kind.isNull() && kind.kind() != jsonString {
		r.in("type", kind, r.str)
		return
	}
	switch string(kind.text()) {
	case "text", "input_text", "output_text", "reasoning_text", "summary_text":
		r.in("text", v.get("text"), r.str)
	case "refusal":
		r.in("refusal", v.get("refusal"), r.str)
	case "thinking":
		r.in("thinking", v.get("thinking"), r.str)
	case "redacted_thinking":
		r.in("data", v.get("data"), func(v value) { r.framing += sealedTokens(v) })
	case "image_url", "input_image", "image":
		r.media[mediaImage]++
	case "input_audio", "audio":
		r.media[mediaAudio]++
	case "file", "input_file":
		r.media[mediaFile]++
	case "document":
		r.document(v)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		r.framing += callTokens
		r.call(v)
	case "tool_result":
		r.in("content", v.get("content"), r.content)
	case "":
		r.untyped(v)
	default:
		r.json(v)
	}
}

// untyped reads a part without a type: Bedrock's {"text": …}, or anything.
func (r *reader) untyped(v value) {
	text := v.get("text")
	if text.kind() == jsonString {
		r.text(text.text())
		return
	}
	r.json(v)
}

// document reads Anthropic's document: plain text and content are text, a PDF
// or a reference is a file.
func (r *reader) document(v value) {
	source := v.get("source")
	r.in("title", v.get("title"), r.str)
	r.in("context", v.get("context"), r.str)
	switch {
	case source.get("type").is("text"):
		r.in("source", source, func(v value) { r.in("data", v.get("data"), r.str) })
	case source.get("type").is("content"):
		r.in("source", source, func(v value) { r.in("content", v.get("content"), r.content) })
	default:
		r.media[mediaFile]++
	}
}

// dataURL reports whether a string is inline data, and of what kind. Only its
// beginning is looked at.
func dataURL(v value) (kind mediaKind, ok bool) {
	raw := v.raw()
	head, ok := bytes.CutPrefix(raw[1:min(len(raw), 128)], []byte("data:"))
	if !ok || !bytes.Contains(head, []byte("base64,")) {
		return 0, false
	}
	switch {
	case bytes.HasPrefix(head, []byte("image")):
		return mediaImage, true
	case bytes.HasPrefix(head, []byte("audio")):
		return mediaAudio, true
	}
	return mediaFile, true
}
