package estimator

import (
	"fmt"

	"quotabroker/wire"
)

// Options say how an [Estimator] counts. [Default] has the documented values.
type Options struct {
	// Seed decides where long texts are sampled. It should be random and kept
	// from producers, so that none can write a text that looks cheap there; the
	// same seed gives the same estimates, so a replay needs it. Default: zero,
	// which is fit for tests only.
	Seed [32]byte

	// Fallback counts models that have no public vocabulary or an unknown name.
	// Default: O200K.
	Fallback Encoding

	// FallbackRatio multiplies what Fallback counts for a model that no table
	// knows, so that the estimate errs high. At least 1. Default: 1.1.
	FallbackRatio float64

	// Models come before the built-in table: deployment names, corrected ratios.
	// Default: none.
	Models []Model

	// DefaultOutputTokens is reserved for a request that sets no output limit,
	// or less where the model can produce less. At least 1. Default: 1024.
	DefaultOutputTokens int64

	// ImageTokens, AudioTokens and FileTokens are charged for each image, audio
	// clip and file, inline or by reference; what is in them is never counted as
	// text. 0 or more. Default: 1600 (the most one image costs with Claude;
	// OpenAI's 1024x1024 is 765), 1000 (100 s at 10 tokens a second), 4000.
	ImageTokens int64
	AudioTokens int64
	FileTokens  int64

	// ExactBytes bounds the time of one estimate: a request is counted in full
	// if that is no more work than so many bytes of English prose, and sampled
	// beyond. Code weighs up to twice as much, languages that are not English
	// four to eight times, random letters eight; an unbroken run is begun only
	// if there is room for twenty times its bytes. From 16 384 on; 0: never run
	// a tokenizer, use the regression alone. Default: 524 288 (5 to 15 ms).
	ExactBytes int
}

// Default returns the documented defaults.
func Default() Options {
	return Options{
		Fallback:            O200K,
		FallbackRatio:       1.1,
		DefaultOutputTokens: 1024,
		ImageTokens:         1600,
		AudioTokens:         1000,
		FileTokens:          4000,
		ExactBytes:          512 << 10,
	}
}

// minExactBytes is where sampling costs as much as counting.
const minExactBytes = 16 << 10

// Validate returns the first option that cannot be honoured, nil if there is none.
func (o Options) Validate() error {
	switch {
	case !o.Fallback.valid():
		return fmt.Errorf("estimator: fallback encoding is %d; it must be cl100k_base or o200k_base", o.Fallback)
	case !(o.FallbackRatio >= 1 && o.FallbackRatio <= maxRatio):
		return fmt.Errorf("estimator: fallback ratio is %v; it must be from 1 to %v", o.FallbackRatio, maxRatio)
	case o.DefaultOutputTokens < 1 || o.DefaultOutputTokens > wire.MaxTokens:
		return fmt.Errorf("estimator: default output is %d tokens; it must be from 1 to %d", o.DefaultOutputTokens, wire.MaxTokens)
	case o.ExactBytes != 0 && o.ExactBytes < minExactBytes:
		return fmt.Errorf("estimator: exact bytes is %d; it must be 0 or at least %d", o.ExactBytes, minExactBytes)
	}
	for name, tokens := range map[string]int64{"image": o.ImageTokens, "audio": o.AudioTokens, "file": o.FileTokens} {
		if tokens < 0 || tokens > wire.MaxTokens {
			return fmt.Errorf("estimator: an %s costs %d tokens; it must be from 0 to %d", name, tokens, wire.MaxTokens)
		}
	}
	for _, m := range o.Models {
		if err := m.validate(); err != nil {
			return err
		}
	}
	return nil
}

// maxRatio is beyond any tokenizer's: one token a byte against one for four.
const maxRatio = 10

func (m Model) validate() error {
	switch {
	case m.Prefix == "" || m.Prefix != normalName(m.Prefix):
		return fmt.Errorf("estimator: model prefix is %q; it must be the beginning of a normal name, like gpt-4o", m.Prefix)
	case m.Encoding >= numEncodings:
		return fmt.Errorf("estimator: model %s: encoding is %d; it must be cl100k_base, o200k_base or none", m.Prefix, m.Encoding)
	case m.InputRatio != 0 && !(m.InputRatio >= 1/maxRatio && m.InputRatio <= maxRatio):
		return fmt.Errorf("estimator: model %s: input ratio is %v; it must be from %v to %v", m.Prefix, m.InputRatio, 1/maxRatio, maxRatio)
	case m.MaxOutputTokens < NoOutput || m.MaxOutputTokens > wire.MaxTokens:
		return fmt.Errorf("estimator: model %s: maximal output is %d tokens; it must be NoOutput or from 0 to %d", m.Prefix, m.MaxOutputTokens, wire.MaxTokens)
	}
	for _, tokens := range []int64{m.PrimerTokens, m.HiddenTokens, m.ToolsTokens} {
		if tokens < 0 || tokens > wire.MaxTokens {
			return fmt.Errorf("estimator: model %s: framing is %d tokens; it must be from 0 to %d", m.Prefix, tokens, wire.MaxTokens)
		}
	}
	return nil
}
