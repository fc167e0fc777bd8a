package estimator

import (
	"encoding/json"
	"math"

	"quotabroker/wire"
)

// Estimator says what requests will cost. It never changes after [New], so any
// number of goroutines may use it at once.
type Estimator struct {
	opt Options
}

// New returns an estimator, or what is wrong with the options. It loads no
// vocabulary: the first estimate does, or [Warm].
func New(opt Options) (*Estimator, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	opt.Models = append([]Model(nil), opt.Models...)
	return &Estimator{opt: opt}, nil
}

// Input is what an estimate is made of. Exactly one of Body and InputTokens is
// given.
type Input struct {
	Model           string          // "": the body's own
	Body            json.RawMessage // a provider request as it would be sent; not changed, not kept
	InputTokens     wire.OptInt     // the producer's own count
	MaxOutputTokens wire.OptInt     // overrides the body's limit
}

// Result is an estimate and how it came about.
type Result struct {
	// Cost is one request. InputTokens is text, framing and media; OutputTokens
	// the limit of one answer, or the default, times the answers asked for;
	// Tokens is their sum and at least 1. None is above wire.MaxTokens.
	Cost wire.Cost

	Model      string // the name used: the input's or the body's, as it was given
	ModelKnown bool   // Encoding is the model's own
	Encoding   string // what it was counted with
	Shape      Shape  // what the body was taken for

	TextTokens    int64 // of Cost.InputTokens, counted text with tools and schemas, corrected by the model's ratio
	FramingTokens int64 // of Cost.InputTokens, the structure round it
	MediaTokens   int64 // of Cost.InputTokens, images, audio and files

	// LimitTokens is the request's own limit on output, times the answers asked
	// for; absent where it sets none.
	LimitTokens wire.OptInt
}

// Estimate returns what a request will cost. An error is always bad_request and
// names the field, "request.messages[0].content"; the time is bounded by the
// bytes of the body, whatever is in it.
func (e *Estimator) Estimate(in Input) (Result, *wire.Error) {
	for _, f := range []struct {
		name string
		n    wire.OptInt
	}{{"input_tokens", in.InputTokens}, {"max_output_tokens", in.MaxOutputTokens}} {
		if f.n.Value < 0 || f.n.Value > wire.MaxTokens {
			return Result{}, wire.BadField(f.name, "%s is %d; it must be from 0 to %d", f.name, f.n.Value, wire.MaxTokens)
		}
	}
	if in.InputTokens.Set == (in.Body != nil) {
		return Result{}, wire.BadField("request", "exactly one of request and input_tokens must be given")
	}
	if in.InputTokens.Set {
		return e.counted(in), nil
	}
	nodes, err := parseJSON(in.Body)
	if err != nil {
		return Result{}, err
	}
	root := newDocument(in.Body, nodes).root()
	model := in.Model
	if model == "" {
		name := root.get("model")
		if !name.isNull() && name.kind() != jsonString {
			return Result{}, wire.BadField("request.model", "request.model is %s; it must be a string", jsonKindNames[name.kind()])
		}
		model = string(name.text())
	}
	p := e.profile(model)
	prompt, err := readBody(root, &p)
	if err != nil {
		return Result{}, err
	}
	if in.MaxOutputTokens.Set {
		prompt.limit = in.MaxOutputTokens
	}
	return e.result(model, &p, &prompt), nil
}

// counted is the estimate of a request whose producer has counted its input.
func (e *Estimator) counted(in Input) Result {
	p := e.profile(in.Model)
	prompt := prompt{limit: in.MaxOutputTokens, answers: 1}
	res := e.result(in.Model, &p, &prompt)
	res.TextTokens = in.InputTokens.Value
	res.Cost.InputTokens = in.InputTokens.Value
	res.Cost.Tokens = max(1, res.Cost.InputTokens+res.Cost.OutputTokens)
	res.Cost.Method = wire.MethodCounted
	return res
}

func (e *Estimator) result(model string, p *profile, prompt *prompt) Result {
	res := Result{Model: model, ModelKnown: p.known, Encoding: p.Encoding.String(), Shape: prompt.shape}
	tokens, method := e.count(p.Encoding, prompt.texts)
	if method != wire.MethodRegression && !p.known {
		method = wire.MethodFallback
	}
	res.TextTokens = clamp(math.Ceil(float64(tokens) * p.InputRatio))
	res.FramingTokens = clamp(float64(prompt.framing))
	res.MediaTokens = clamp(float64(prompt.media[mediaImage])*float64(e.opt.ImageTokens) +
		float64(prompt.media[mediaAudio])*float64(e.opt.AudioTokens) +
		float64(prompt.media[mediaFile])*float64(e.opt.FileTokens))
	output := e.outputTokens(p, prompt)
	if prompt.limit.Set {
		res.LimitTokens = wire.Int(output)
	}
	input := clamp(float64(res.TextTokens + res.FramingTokens + res.MediaTokens))
	res.Cost = wire.Cost{
		Requests: 1, InputTokens: input, OutputTokens: output,
		Tokens: max(1, input+output), Method: method,
	}
	return res
}

// outputTokens is the request's own limit, else the default as far as the model
// can produce it, for each answer.
func (e *Estimator) outputTokens(p *profile, prompt *prompt) int64 {
	each := e.opt.DefaultOutputTokens
	switch {
	case prompt.shape == ShapeEmbeddings:
		return 0
	case prompt.limit.Set:
		each = prompt.limit.Value
	case p.embeds:
		return 0
	case p.MaxOutputTokens > 0:
		each = min(each, p.MaxOutputTokens)
	}
	return clamp(float64(each) * float64(prompt.answers))
}

func clamp(tokens float64) int64 { return int64(min(max(tokens, 0), wire.MaxTokens)) }

// Count returns the tokens of one text. exact is false where it was too much work
// to be counted in full, or no tokenizer may be used; the answer then errs high. Special tokens are text: "<|endoftext|>" is 7 tokens.
func (e *Estimator) Count(enc Encoding, text string) (tokens int64, exact bool) {
	if !enc.valid() {
		enc = e.opt.Fallback
	}
	tokens, method := e.count(enc, [][]byte{[]byte(text)})
	return tokens, method == wire.MethodExact
}

// Work in the units of package bpe: of a text, beside that of what is in it, with
// what it took to read it; of a byte of English prose.
const (
	textWork  = 400
	proseWork = 16
)

// count counts texts, each on its own, in bounded time: from the first on as far
// as the work allows, and what is left by sampling. It may change texts.
func (e *Estimator) count(enc Encoding, texts [][]byte) (int64, wire.Method) {
	if len(texts) == 0 {
		return 0, wire.MethodExact // and no vocabulary is loaded for nothing
	}
	v := vocabularies[enc]()
	if e.opt.ExactBytes == 0 {
		const margin = 1.1 // the regression's p90 error
		bytes := 0
		for _, t := range texts {
			bytes += len(t)
		}
		return int64(min(math.Ceil(margin*v.regress(texts)), float64(bytes))), wire.MethodRegression
	}
	left := e.opt.ExactBytes * proseWork
	var sum int64
	for i, t := range texts {
		left -= textWork
		tokens, read, work := v.bpe.CountWithin(t, left)
		sum += int64(tokens)
		left -= work
		if read < len(t) {
			texts[i] = t[read:]
			return sum + v.sampleTokens(texts[i:], &e.opt.Seed), wire.MethodSampled
		}
	}
	return sum, wire.MethodExact
}
