package estimator

import "strings"

// Model describes the models whose normal name begins with Prefix. The normal
// name is what is left when provider, region and fine-tune prefixes are off, in
// lower case: "openai/GPT-4o" and "ft:gpt-4o:acme::x1" are "gpt-4o".
//
// A Prefix ends where a word of the name ends: "o1" covers "o1" and "o1-mini"
// but not "o1x". The longest matching Prefix counts.
type Model struct {
	Prefix          string
	Encoding        Encoding // the model's own; 0: it has no public one, Options.Fallback stands in
	InputRatio      float64  // its tokens for each counted one; 0 means 1
	MaxOutputTokens int64    // the most the model can produce, 0: unknown; embeddings: NoOutput
	PrimerTokens    int64    // what the provider adds to open the answer; 0 means 3
	HiddenTokens    int64    // what it adds to every request: a system prompt of its own
	ToolsTokens     int64    // what it adds to a chat that offers tools, beside their definitions
}

// NoOutput as Model.MaxOutputTokens says that the model produces no tokens.
const NoOutput = -1

// models are the families known by name. Encodings follow openai/tiktoken's
// model.py, extended by the names that came after; the maxima are those of the
// providers' model pages. Ratios are priors for models without a public
// vocabulary, from counts of Claude 3 to 4.6 of 1.15 to 1.25 o200k tokens and
// of later ones of 1.4 to 1.7. HiddenTokens and ToolsTokens are medians of
// recorded requests, a few of each family.
var models = []Model{
	{Prefix: "gpt-3.5", Encoding: CL100K, MaxOutputTokens: 4096},
	{Prefix: "gpt-35", Encoding: CL100K, MaxOutputTokens: 4096}, // Azure's spelling
	{Prefix: "gpt-4", Encoding: CL100K, MaxOutputTokens: 8192},
	{Prefix: "gpt-4-32k", Encoding: CL100K, MaxOutputTokens: 32_768},
	{Prefix: "gpt-4-turbo", Encoding: CL100K, MaxOutputTokens: 4096},
	{Prefix: "gpt-4-1106", Encoding: CL100K, MaxOutputTokens: 4096},
	{Prefix: "gpt-4-0125", Encoding: CL100K, MaxOutputTokens: 4096},
	{Prefix: "gpt-4-vision", Encoding: CL100K, MaxOutputTokens: 4096},
	{Prefix: "davinci-002", Encoding: CL100K},
	{Prefix: "babbage-002", Encoding: CL100K},
	{Prefix: "text-embedding-3", Encoding: CL100K, MaxOutputTokens: NoOutput},
	{Prefix: "text-embedding-ada-002", Encoding: CL100K, MaxOutputTokens: NoOutput},

	{Prefix: "gpt-4o", Encoding: O200K, MaxOutputTokens: 16_384},
	{Prefix: "chatgpt-4o", Encoding: O200K, MaxOutputTokens: 16_384},
	{Prefix: "gpt-4.1", Encoding: O200K, MaxOutputTokens: 32_768},
	{Prefix: "gpt-4.5", Encoding: O200K, MaxOutputTokens: 16_384},
	{Prefix: "gpt-5", Encoding: O200K, MaxOutputTokens: 128_000, PrimerTokens: 2, ToolsTokens: 84},
	{Prefix: "gpt-oss", Encoding: O200K, MaxOutputTokens: 131_072, HiddenTokens: 64},
	{Prefix: "o1", Encoding: O200K, MaxOutputTokens: 100_000, PrimerTokens: 2},
	{Prefix: "o1-preview", Encoding: O200K, MaxOutputTokens: 32_768, PrimerTokens: 2},
	{Prefix: "o1-mini", Encoding: O200K, MaxOutputTokens: 65_536, PrimerTokens: 2},
	{Prefix: "o3", Encoding: O200K, MaxOutputTokens: 100_000, PrimerTokens: 2},
	{Prefix: "o4-mini", Encoding: O200K, MaxOutputTokens: 100_000, PrimerTokens: 2},
	{Prefix: "codex-mini", Encoding: O200K, MaxOutputTokens: 100_000, PrimerTokens: 2},
	{Prefix: "computer-use-preview", Encoding: O200K},

	{Prefix: "claude", InputRatio: 1.55, ToolsTokens: 560},
	{Prefix: "claude-2", InputRatio: 1.2, MaxOutputTokens: 4096},
	{Prefix: "claude-instant", InputRatio: 1.2, MaxOutputTokens: 4096},
	{Prefix: "claude-3", InputRatio: 1.2, ToolsTokens: 320},
	{Prefix: "claude-3-opus", InputRatio: 1.2, MaxOutputTokens: 4096, ToolsTokens: 540},
	{Prefix: "claude-3-haiku", InputRatio: 1.2, MaxOutputTokens: 4096, ToolsTokens: 320},
	{Prefix: "claude-3-sonnet", InputRatio: 1.2, MaxOutputTokens: 4096, ToolsTokens: 320},
	{Prefix: "claude-3-5", InputRatio: 1.2, MaxOutputTokens: 8192, ToolsTokens: 320},
	{Prefix: "claude-sonnet-4", InputRatio: 1.2, MaxOutputTokens: 64_000, ToolsTokens: 380},
	{Prefix: "claude-opus-4", InputRatio: 1.2, MaxOutputTokens: 32_000, ToolsTokens: 380},
	{Prefix: "claude-sonnet-4-5", InputRatio: 1.2, MaxOutputTokens: 64_000, ToolsTokens: 510},
	{Prefix: "claude-sonnet-4-6", InputRatio: 1.2, MaxOutputTokens: 64_000, ToolsTokens: 510},
	{Prefix: "claude-haiku-4", InputRatio: 1.2, MaxOutputTokens: 64_000, ToolsTokens: 510},
	{Prefix: "claude-opus-4-5", InputRatio: 1.2, MaxOutputTokens: 64_000, ToolsTokens: 510},
	{Prefix: "claude-opus-4-6", InputRatio: 1.2, MaxOutputTokens: 64_000, ToolsTokens: 510},
	{Prefix: "claude-opus-4-7", InputRatio: 1.55, ToolsTokens: 560},
	{Prefix: "claude-opus-4-8", InputRatio: 1.55, ToolsTokens: 560},
	{Prefix: "gemini", InputRatio: 1.1},
	{Prefix: "mistral", InputRatio: 1.15},
	{Prefix: "deepseek", InputRatio: 1.1, ToolsTokens: 220},
	{Prefix: "grok", InputRatio: 1.1, HiddenTokens: 190},
}

// vendors are the first words of names that say who serves a model, or where.
var vendors = map[string]bool{
	"openai": true, "azure": true, "azure-openai": true, "anthropic": true, "google": true, "vertex": true,
	"bedrock": true, "amazon": true, "mistral": true, "mistralai": true, "meta": true, "groq": true, "cohere": true,
	"deepseek": true, "xai": true, "openrouter": true, "litellm": true, "us": true, "eu": true, "apac": true,
	"jp": true, "au": true, "global": true, "chat": true, "responses": true, "converse": true, "ft": true,
}

// normalName takes off everything that does not tell the model: "openai/",
// "azure/", "us.anthropic.", "openai:chat:", "ft:" and the parts of a
// fine-tune's name after the model. Claude's versions are spelt with dashes.
func normalName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	for {
		i := strings.IndexAny(name, ".:")
		if i < 0 || !vendors[name[:i]] {
			break
		}
		name = name[i+1:]
	}
	name, _, _ = strings.Cut(name, ":")
	if strings.HasPrefix(name, "claude") {
		name = strings.ReplaceAll(name, ".", "-")
	}
	return name
}

// longest returns the entry with the longest prefix of a normal name.
func longest(table []Model, name string) (found Model, ok bool) {
	for _, m := range table {
		if len(m.Prefix) >= len(found.Prefix) && coversName(m.Prefix, name) {
			found, ok = m, true
		}
	}
	return found, ok
}

// coversName reports whether a name begins with the words of prefix.
func coversName(prefix, name string) bool {
	n := len(prefix)
	return strings.HasPrefix(name, prefix) &&
		(len(name) == n || !alphanumeric(name[n]) || !alphanumeric(name[n-1]))
}

func alphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// profile is what a request's model means for its estimate.
type profile struct {
	Model          // all fields filled in, Encoding with the fallback's
	known     bool // the encoding is the model's own
	embeds    bool // by its name an embedding model
	anthropic bool
}

// profile resolves a model's name: the configured models before the built-in
// ones, then the fallback.
func (e *Estimator) profile(name string) profile {
	name = normalName(name)
	m, ok := longest(e.opt.Models, name)
	if !ok {
		m, ok = longest(models, name)
	}
	if !ok {
		m = Model{InputRatio: e.opt.FallbackRatio}
	}
	p := profile{Model: m, known: m.Encoding.valid()}
	if !p.known {
		p.Encoding = e.opt.Fallback
	}
	if p.InputRatio == 0 {
		p.InputRatio = 1
	}
	if p.PrimerTokens == 0 {
		p.PrimerTokens = 3
	}
	p.embeds = m.MaxOutputTokens == NoOutput || strings.Contains(name, "embed")
	p.anthropic = strings.HasPrefix(name, "claude")
	return p
}

// EncodingFor returns the encoding a model is counted with. known is false when
// it is not the model's own but the configured fallback: for other vendors'
// models, names that nobody has heard of, and "". It is never an error.
func (e *Estimator) EncodingFor(model string) (enc Encoding, known bool) {
	p := e.profile(model)
	return p.Encoding, p.known
}
