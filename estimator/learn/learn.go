// Package learn learns from settlements what estimates miss: how much output jobs of
// a sort really produce, and by what factor the input of a model without a public
// tokenizer is miscounted.
//
// # Invariants
//
//   - What one source settles changes the estimates of that source only: nobody can
//     make the work of others look cheap, or dear.
//   - Memory is bounded: a source has at most [Options.Sorts] sorts, and of more the
//     one that was not met for longest is forgotten.
//   - What was settled lately counts most; the weight of a settlement halves with
//     about every 256 that follow of its sort.
//   - A request that sets a limit on its output reserves that limit, since there are
//     providers that charge it when they admit the request. Where it sets none, the
//     estimate is at least 1. A factor lies between 1/2 and 2, however wrong a
//     settlement.
//
// A [Table] is not safe for concurrent use: the caller holds the lock.
package learn

import (
	"fmt"

	"quotabroker/window"
	"quotabroker/wire"
)

// Options say how a [Table] learns. [Default] has the documented values.
type Options struct {
	// Quantile is the part of past outputs, in per cent, that an estimate covers:
	// what the others took above it is debt. 1 to 100. Default: 85.
	Quantile int

	// Least is how many settlements of a sort there must be before it is believed.
	// At least 1. Default: 20.
	Least int

	// Sorts is how many sorts (kind and model) of one source are kept. At least 1.
	// Default: 256, about 1 MiB.
	Sorts int
}

// Default returns the documented defaults.
func Default() Options { return Options{Quantile: 85, Least: 20, Sorts: 256} }

// Validate returns the first option that cannot be honoured, nil if there is none.
func (o Options) Validate() error {
	switch {
	case o.Quantile < 1 || o.Quantile > 100:
		return fmt.Errorf("learn: quantile is %d %%; it must be from 1 to 100", o.Quantile)
	case o.Least < 1:
		return fmt.Errorf("learn: least is %d settlements; it must be at least 1", o.Least)
	case o.Sorts < 1:
		return fmt.Errorf("learn: sorts is %d; it must be at least 1", o.Sorts)
	}
	return nil
}

// Sort is what is alike enough to learn from each other. Without a kind and a model
// it is none, and nothing is learned.
type Sort struct {
	Kind  string // as the producer calls it, "judge"
	Model string
}

// Table is what was learned.
type Table struct {
	opt     Options
	sources map[string]*memory
}

// New returns a table that has learned nothing, or what is wrong with the options.
func New(opt Options) (*Table, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	return &Table{opt: opt, sources: map[string]*memory{}}, nil
}

// forget is how many settlements of a sort are kept before their weight is halved.
const forget = 512

// ratioOne is the fixed point of a factor.
const ratioOne = 1 << 16

// What a factor may be.
const (
	leastRatio = 0.5
	mostRatio  = 2
)

// lessons is what one sort has taught.
type lessons struct {
	output window.Spread // tokens
	ratio  window.Spread // input used for what was estimated, in 1/ratioOne
}

// Settled learns from a job of a source that was answered and settled with usage. The
// estimate is as the estimator made it, before Apply. The sources a table is told of
// must be few: they are those of the configuration.
func (t *Table) Settled(source string, s Sort, estimated wire.Cost, used wire.Usage) {
	if s == (Sort{}) {
		return
	}
	m := t.sources[source]
	if m == nil {
		m = newMemory(t.opt.Sorts)
		t.sources[source] = m
	}
	l := m.add(s)
	if l.output.Add(used.OutputTokens); l.output.Total() >= forget {
		l.output.Halve()
	}
	if estimated.Method != wire.MethodFallback || estimated.InputTokens <= 0 || used.InputTokens <= 0 {
		return
	}
	if l.ratio.Add(ratio(used.InputTokens, estimated.InputTokens)); l.ratio.Total() >= forget {
		l.ratio.Halve()
	}
}

// ratio returns used/estimated, as far as it is believed.
func ratio(used, estimated int64) int64 {
	r := float64(used) / float64(estimated)
	return int64(min(max(r, leastRatio), mostRatio) * ratioOne)
}

// Apply corrects an estimate by what was learned, and says what that was: the output
// of a request that sets no limit, and the input of a model whose own tokenizer is not
// known.
func (t *Table) Apply(source string, s Sort, c *wire.Cost, limited bool) wire.Learned {
	out := wire.Learned{InputRatio: 1}
	l := t.look(source, s)
	if l == nil {
		return out
	}
	out.Samples = int64(l.output.Total())
	out.OutputP85 = window.Quantile(85, &l.output)
	if out.Samples >= int64(t.opt.Least) && !limited && c.OutputTokens > 0 {
		c.OutputTokens = max(1, window.Quantile(t.opt.Quantile, &l.output))
	}
	if c.Method == wire.MethodFallback && l.ratio.Total() >= uint64(t.opt.Least) {
		out.InputRatio = float64(window.Quantile(50, &l.ratio)) / ratioOne
		c.InputTokens = min(int64(float64(c.InputTokens)*out.InputRatio+0.5), wire.MaxTokens)
	}
	c.Tokens = max(1, min(c.InputTokens+c.OutputTokens, wire.MaxTokens))
	return out
}

func (t *Table) look(source string, s Sort) *lessons {
	if m := t.sources[source]; m != nil && s != (Sort{}) {
		return m.get(s)
	}
	return nil
}
