package estimator

import "testing"

func TestEncodingFor(t *testing.T) {
	e := newEstimator(t, nil)
	for _, c := range []struct {
		models []string
		enc    Encoding
		known  bool
	}{
		{[]string{
			"gpt-3.5-turbo", "gpt-3.5-turbo-0125", "gpt-35-turbo", "gpt-35-turbo-16k", "gpt-4", "gpt-4-0613", "gpt-4-32k",
			"gpt-4-turbo", "gpt-4-turbo-2024-04-09", "gpt-4-1106-preview", "text-embedding-3-small", "text-embedding-3-large",
			"text-embedding-ada-002", "davinci-002", "babbage-002", "ft:gpt-3.5-turbo-0125:acme::8x", "azure/gpt-35-turbo",
		}, CL100K, true},
		{[]string{
			"gpt-4o", "GPT-4o", " gpt-4o\n", "gpt-4o-2024-08-06", "gpt-4o-mini", "openai/gpt-4o", "azure/gpt-4o", "openai:gpt-4o",
			"openai:chat:gpt-4o-mini", "openrouter/openai/gpt-4o:extended", "ft:gpt-4o-mini-2024-07-18:acme::x1", "chatgpt-4o-latest",
			"gpt-4.1", "gpt-4.1-nano", "gpt-4.5-preview", "gpt-5", "gpt-5.4-mini", "gpt-5-2025-08-07", "gpt-5.6-sol",
			"o1", "o1-mini", "o1-preview", "o3", "o3-mini", "o3-pro", "o4-mini", "o4-mini-2025-04-16", "codex-mini-latest",
			"gpt-oss-120b", "openai/gpt-oss-20b", "openai.gpt-oss-120b-1:0", "us.openai.gpt-5.5", "gpt-oss:20b",
		}, O200K, true},
		{[]string{
			"", "claude-sonnet-4-5", "anthropic/claude-sonnet-4.5", "us.anthropic.claude-3-haiku-20240307-v1:0", "gemini-2.5-flash",
			"models/gemini-2.0-flash", "mistral-large-latest", "mistral", "deepseek-chat", "llama-3.3-70b-versatile", "my-deployment",
			"gpt-6", "gpt", "o1x", "o39", "gpt-4oo", "////", ":", "..", "ft:", "\x00\xff", "漢字", "openai/", "azure:",
		}, O200K, false},
	} {
		for _, m := range c.models {
			if enc, known := e.EncodingFor(m); enc != c.enc || known != c.known {
				t.Errorf("%q: %s, known %v; want %s, %v", m, enc, known, c.enc, c.known)
			}
		}
	}
}

func TestModelFacts(t *testing.T) {
	e := newEstimator(t, nil)
	for _, c := range []struct {
		model  string
		ratio  float64
		primer int64
		output int64
	}{
		{"gpt-4", 1, 3, 8192},
		{"gpt-4-turbo-preview", 1, 3, 4096},
		{"gpt-5-mini", 1, 2, 128_000},
		{"o1-mini-2024-09-12", 1, 2, 65_536},
		{"claude-3-5-haiku-latest", 1.2, 3, 8192},
		{"claude-3-opus-20240229", 1.2, 3, 4096},
		{"anthropic/claude-haiku-4.5", 1.2, 3, 64_000},
		{"claude-opus-4-6", 1.2, 3, 64_000},
		{"claude-opus-4-8", 1.55, 3, 0},
		{"claude-sonnet-5", 1.55, 3, 0},
		{"text-embedding-3-small", 1, 3, NoOutput},
		{"nobody-knows", 1.1, 3, 0},
	} {
		p := e.profile(c.model)
		if p.InputRatio != c.ratio || p.PrimerTokens != c.primer || p.MaxOutputTokens != c.output {
			t.Errorf("%s: %+v, want %+v", c.model, p.Model, c)
		}
	}
	for _, m := range models {
		if err := m.validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestConfiguredModelsComeFirst(t *testing.T) {
	e := newEstimator(t, func(o *Options) {
		o.Fallback = CL100K
		o.FallbackRatio = 1.5
		o.Models = []Model{
			{Prefix: "prod", Encoding: O200K, MaxOutputTokens: 77},
			{Prefix: "eu-", Encoding: CL100K},
			{Prefix: "claude-haiku", InputRatio: 1.3},
			{Prefix: "gpt-4o", Encoding: O200K, InputRatio: 1.02},
		}
	})
	for _, c := range []struct {
		model string
		enc   Encoding
		known bool
		ratio float64
	}{
		{"Prod-Chat", O200K, true, 1},
		{"eu-chat", CL100K, true, 1},
		{"production", CL100K, false, 1.5},
		{"claude-haiku-4-5", CL100K, false, 1.3},
		{"claude-sonnet-4-5", CL100K, false, 1.2},
		{"gpt-4o-mini", O200K, true, 1.02},
		{"other", CL100K, false, 1.5},
	} {
		if p := e.profile(c.model); p.Encoding != c.enc || p.known != c.known || p.InputRatio != c.ratio {
			t.Errorf("%s: %+v, want %+v", c.model, p, c)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no fallback":      func(o *Options) { o.Fallback = 0 },
		"fallback":         func(o *Options) { o.Fallback = 9 },
		"low ratio":        func(o *Options) { o.FallbackRatio = 0.9 },
		"high ratio":       func(o *Options) { o.FallbackRatio = 11 },
		"no output":        func(o *Options) { o.DefaultOutputTokens = 0 },
		"negative image":   func(o *Options) { o.ImageTokens = -1 },
		"negative audio":   func(o *Options) { o.AudioTokens = -1 },
		"huge file":        func(o *Options) { o.FileTokens = 1 << 40 },
		"few exact bytes":  func(o *Options) { o.ExactBytes = 100 },
		"negative bytes":   func(o *Options) { o.ExactBytes = -1 },
		"no prefix":        func(o *Options) { o.Models = []Model{{}} },
		"spelt prefix":     func(o *Options) { o.Models = []Model{{Prefix: "openai/gpt-4o"}} },
		"model encoding":   func(o *Options) { o.Models = []Model{{Prefix: "x", Encoding: 9}} },
		"model ratio":      func(o *Options) { o.Models = []Model{{Prefix: "x", InputRatio: -1}} },
		"model output":     func(o *Options) { o.Models = []Model{{Prefix: "x", MaxOutputTokens: -2}} },
		"negative framing": func(o *Options) { o.Models = []Model{{Prefix: "x", ToolsTokens: -2}} },
	} {
		opt := Default()
		change(&opt)
		if e, err := New(opt); err == nil || e != nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}
