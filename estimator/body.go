package estimator

import (
	"fmt"
	"slices"
	"strconv"

	"quotabroker/wire"
)

// Shape is the kind of provider request a body was taken for. The zero Shape is
// no body: the producer has counted.
type Shape uint8

// The shapes.
const (
	ShapeCounted     Shape = iota // input_tokens, no body
	ShapeChat                     // OpenAI chat completions, and what imitates it
	ShapeMessages                 // Anthropic messages
	ShapeResponses                // OpenAI responses
	ShapeCompletions              // OpenAI completions
	ShapeEmbeddings               // OpenAI embeddings
)

var shapeNames = [...]string{"counted", "chat", "messages", "responses", "completions", "embeddings"}

// String returns a word for the shape, "" for a value that is none.
func (s Shape) String() string {
	if int(s) >= len(shapeNames) {
		return ""
	}
	return shapeNames[s]
}

// Framing, in tokens. The chat figures are the OpenAI cookbook's: every message
// is 3 tokens and its role and content, a name 1 more, and the answer is opened
// with 3, or 2 by o-series and gpt-5. Recorded requests without tools agree.
const (
	messageTokens = 3
	nameTokens    = 1
	callTokens    = 7 // an earlier tool call, beside its name and arguments: measured
	moreCalls     = 8 // on top for each of several calls in one message: measured
	typedTokens   = 9 // TypeScript of functions in a chat, beside its text
	typedSystem   = 4 // less where a system message is there for it to follow
	typedResponse = 8 // the same in a response, erring high: recorded are 0 to 13 for gpt-4o and gpt-4.1, 8 to 22 for gpt-5
	typedReasoned = 18
	mostTyped     = 5000 // bytes of definitions; longer ones are not recorded, and err high as JSON
	untitled      = 214  // a function whose description is "", in a response: four recordings of gpt-4o
	hostedTokens  = 300  // a tool that the provider runs itself: median of recorded ones, of 24 to 22 000
)

type mediaKind uint8

const (
	mediaImage mediaKind = iota
	mediaAudio
	mediaFile
	numMedia
)

// prompt is what a body holds, before any text is counted.
type prompt struct {
	shape   Shape
	texts   [][]byte // each counted on its own
	framing int64    // tokens that follow from the structure
	media   [numMedia]int64
	tools   bool        // the model is offered tools
	system  bool        // a chat begins with a system message
	sealed  int64       // tokens of encrypted reasoning since the last user message
	limit   wire.OptInt // of one answer's output
	answers int64       // how many are asked for, at least 1
}

// reader walks a body into a prompt. Its error is the first, with the path of
// the value at fault; after it nothing more is read.
type reader struct {
	prompt
	path      []step
	err       *wire.Error
	compacted []byte // backs the texts made of JSON
	typed     bool   // the model is shown functions as TypeScript
}

// step is a member of that name, or with no name the element of an array.
type step struct {
	name  string
	index int
}

// readBody recognises the shape of a body from its fields and reads it.
func readBody(root value, p *profile) (prompt, *wire.Error) {
	r := &reader{path: make([]step, 0, 16), typed: p.known}
	r.answers = 1
	if root.kind() != jsonObject {
		r.wrong(root, "an object")
		return r.prompt, r.err
	}
	switch {
	case !root.get("messages").isNull():
		r.shape = ShapeChat
		if p.anthropic || !root.get("system").isNull() || !root.get("anthropic_version").isNull() {
			r.shape = ShapeMessages
		}
		r.readChat(root, p)
	case !root.get("input").isNull() && isEmbedding(root, p):
		r.shape = ShapeEmbeddings
		r.in("input", root.get("input"), r.plain)
	case !root.get("input").isNull(), root.get("prompt").kind() == jsonObject, !root.get("instructions").isNull():
		r.shape = ShapeResponses
		r.readResponses(root, p)
	case !root.get("prompt").isNull():
		r.shape = ShapeCompletions
		r.in("prompt", root.get("prompt"), r.plain)
		r.in("suffix", root.get("suffix"), r.str)
		r.in("best_of", root.get("best_of"), r.count)
		r.in("n", root.get("n"), r.count)
	default:
		r.fail("request has none of messages, input, prompt, instructions; it must be a chat, responses, completions, embeddings or messages request")
	}
	if r.shape != ShapeEmbeddings {
		for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
			r.in(name, root.get(name), r.outputLimit)
		}
	}
	r.framing += r.sealed + p.HiddenTokens
	if r.tools {
		r.framing += r.toolFraming(p)
	}
	return r.prompt, r.err
}

// toolFraming is what offering tools takes beside their definitions.
func (r *reader) toolFraming(p *profile) int64 {
	switch {
	case r.shape == ShapeResponses && r.typed && p.PrimerTokens == 2:
		return typedReasoned
	case r.shape == ShapeResponses && r.typed:
		return typedResponse
	case r.shape != ShapeChat && r.shape != ShapeMessages:
		return 0
	case r.typed && r.system:
		return typedTokens - typedSystem + p.ToolsTokens
	case r.typed:
		return typedTokens + p.ToolsTokens
	}
	return p.ToolsTokens
}

// isEmbedding tells the two shapes with an "input" apart: only embeddings have
// these fields, and plain strings or tokens in an array.
func isEmbedding(root value, p *profile) bool {
	if p.embeds || !root.get("encoding_format").isNull() || !root.get("dimensions").isNull() {
		return true
	}
	for _, first := range root.get("input").elements() {
		return first.kind() != jsonObject
	}
	return false
}

// plain reads text that stands for itself: a string, an array of them, tokens,
// or an array of token arrays.
func (r *reader) plain(v value) {
	switch v.kind() {
	case jsonString:
		r.text(v.text())
	case jsonArray:
		texts := 0
		for _, e := range v.elements() {
			if e.kind() == jsonString {
				texts++
			}
		}
		r.texts = slices.Grow(r.texts, texts)
		r.each(v, r.plainElement)
	default:
		r.wrong(v, "a string or an array")
	}
}

func (r *reader) plainElement(v value) {
	switch v.kind() {
	case jsonNumber:
		r.framing++
	case jsonString:
		r.text(v.text())
	case jsonArray:
		r.each(v, func(token value) {
			if token.kind() != jsonNumber {
				r.wrong(token, "a token")
			}
			r.framing++
		})
	case jsonObject:
		r.part(v)
	default:
		r.wrong(v, "a string or a token")
	}
}

// text adds text to be counted.
func (r *reader) text(t []byte) {
	if len(t) > 0 {
		r.texts = append(r.texts, t)
	}
}

// str reads a string as text.
func (r *reader) str(v value) {
	if v.kind() != jsonString {
		r.wrong(v, "a string")
		return
	}
	r.text(v.text())
}

// json reads any value as the text of its compact JSON. Data URLs in it are
// media.
func (r *reader) json(v value) {
	if v.isNull() {
		return
	}
	if v.compacted() {
		r.text(v.raw())
		return
	}
	from := len(r.compacted)
	r.compacted = v.compact(r.compacted, func(s value) bool {
		kind, ok := dataURL(s)
		if ok {
			r.media[kind]++
		}
		return ok
	})
	r.text(r.compacted[from:len(r.compacted):len(r.compacted)])
}

// toolList reads tool or function definitions: as TypeScript for OpenAI's models
// where recordings bear that out, else as the text of their JSON, which errs high.
func (r *reader) toolList(v value) {
	switch {
	case v.kind() != jsonArray:
		r.wrong(v, "an array")
	case v.empty():
	case r.typed && len(v.raw()) <= mostTyped:
		var t typescript
		functions, others := t.functions(v)
		r.text(t.out)
		r.tools = r.tools || functions > 0
		r.framing += int64(others) * hostedTokens
		if r.shape == ShapeResponses {
			r.framing += int64(t.untitled) * untitled
		}
	default:
		r.tools = true
		r.json(v)
	}
}

// outputLimit reads one of the fields that bound the output; the largest counts.
func (r *reader) outputLimit(v value) {
	if n, ok := r.whole(v); ok {
		r.limit = wire.Int(max(r.limit.Or(0), n))
	}
}

// count reads how many answers are asked for.
func (r *reader) count(v value) {
	n, ok := r.whole(v)
	if ok && n < 1 {
		r.fail("%s is %d; it must be 1 or more", r.at(), n)
	} else if ok {
		r.answers = max(r.answers, n)
	}
}

// whole reads a whole number from 0 to wire.MaxTokens.
func (r *reader) whole(v value) (n int64, ok bool) {
	if v.isNull() {
		return 0, false
	}
	if v.kind() != jsonNumber {
		r.wrong(v, "a whole number")
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.raw()), 64)
	if err != nil || f < 0 || f > wire.MaxTokens || f != float64(int64(f)) {
		r.fail("%s is %.32s; it must be a whole number from 0 to %d", r.at(), v.raw(), wire.MaxTokens)
		return 0, false
	}
	return int64(f), true
}

// in reads a member of the object at hand; absent and null are passed by.
func (r *reader) in(name string, v value, read func(value)) {
	if r.err != nil || v.isNull() {
		return
	}
	r.path = append(r.path, step{name: name})
	read(v)
	r.path = r.path[:len(r.path)-1]
}

// each reads the elements of an array.
func (r *reader) each(v value, read func(value)) {
	r.path = append(r.path, step{})
	for i, e := range v.elements() {
		if r.err != nil {
			break
		}
		r.path[len(r.path)-1].index = i
		read(e)
	}
	r.path = r.path[:len(r.path)-1]
}

// at returns the current path, "request.messages[0].content".
func (r *reader) at() string {
	path := []byte("request")
	for _, s := range r.path {
		if s.name != "" {
			path = append(append(path, '.'), s.name...)
		} else {
			path = append(strconv.AppendInt(append(path, '['), int64(s.index), 10), ']')
		}
	}
	return string(path)
}

// wrong reports a value of the wrong kind at the current path.
func (r *reader) wrong(v value, want string) {
	r.fail("%s is %s; it must be %s", r.at(), jsonKindNames[v.kind()], want)
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &wire.Error{Code: wire.CodeBadRequest, Field: r.at(), Message: fmt.Sprintf(format, args...)}
	}
}

// roles are those that take one token in both vocabularies.
var roles = []string{"system", "user", "assistant", "tool", "developer", "function"}

// role reads a message's role.
func (r *reader) role(v value) {
	if v.kind() == jsonString && slices.ContainsFunc(roles, v.is) {
		r.framing++
		return
	}
	r.str(v)
}
