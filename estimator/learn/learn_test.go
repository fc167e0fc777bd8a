package learn

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quotabroker/wire"
)

var judge = Sort{Kind: "judge", Model: "gpt-5"}

func newTable(t testing.TB, change ...func(*Options)) *Table {
	t.Helper()
	o := Default()
	for _, c := range change {
		c(&o)
	}
	table, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func cost(in, out int64, m wire.Method) wire.Cost {
	return wire.Cost{Requests: 1, InputTokens: in, OutputTokens: out, Tokens: in + out, Method: m}
}

// The output of a request without a limit becomes the quantile of what the same sort
// produced, within a sixteenth, once twenty were settled.
func TestOutputIsLearned(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		q := rapid.IntRange(1, 100).Draw(r, "quantile")
		table := newTable(t, func(o *Options) { o.Quantile = q })
		outputs := rapid.SliceOfN(rapid.Int64Range(0, 100_000), 1, 200).Draw(r, "outputs")
		for _, n := range outputs {
			table.Settled("eval", judge, cost(100, 1024, wire.MethodExact), wire.Usage{InputTokens: 100, OutputTokens: n})
		}
		c := cost(100, 1024, wire.MethodExact)
		learned := table.Apply("eval", judge, &c, false)
		if learned.Samples != int64(len(outputs)) || learned.InputRatio != 1 {
			r.Fatalf("learned %+v of %d", learned, len(outputs))
		}
		slices.Sort(outputs)
		want := max(1, outputs[(len(outputs)*q+99)/100-1])
		if len(outputs) < 20 {
			want = 1024
		}
		if c.OutputTokens < want || c.OutputTokens > want+want/16 || c.Tokens != 100+c.OutputTokens {
			r.Fatalf("p%d is estimated at %+v, want %d", q, c, want)
		}
	})
}

// What has a limit of its own, produces nothing, or is of no sort stays as it is.
func TestWhatIsNotLearned(t *testing.T) {
	table := newTable(t)
	for range 100 {
		for _, s := range []Sort{judge, {}} {
			table.Settled("eval", s, cost(100, 1024, wire.MethodCounted), wire.Usage{InputTokens: 900, OutputTokens: 9})
		}
	}
	for _, row := range []struct {
		name    string
		source  string
		sort    Sort
		limited bool
		out     int64
	}{
		{"a limit", "eval", judge, true, 600},
		{"an embedding", "eval", judge, false, 0},
		{"no sort", "eval", Sort{}, false, 600},
		{"another kind", "eval", Sort{Kind: "x", Model: "gpt-5"}, false, 600},
		{"another model", "eval", Sort{Kind: "judge"}, false, 600},
		{"another source", "api", judge, false, 600},
	} {
		c := cost(100, row.out, wire.MethodFallback)
		table.Apply(row.source, row.sort, &c, row.limited)
		if c != cost(100, row.out, wire.MethodFallback) {
			t.Errorf("%s: %+v", row.name, c)
		}
	}
}

// The factor of a model without a public tokenizer is the median of what was seen,
// whatever a tenth of the settlements claim, and within its bounds.
func TestInputIsLearned(t *testing.T) {
	for _, row := range []struct{ truth, want float64 }{{1.3, 1.3}, {0.8, 0.8}, {0.1, 0.5}, {50, 2}} {
		table := newTable(t)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range 300 {
			est := 100 + rng.Int64N(10_000)
			used := int64(float64(est) * row.truth * (0.97 + 0.06*rng.Float64()))
			if i%10 == 0 {
				used = rng.Int64N(wire.MaxTokens)
			}
			table.Settled("api", judge, cost(est, 10, wire.MethodFallback), wire.Usage{InputTokens: used, OutputTokens: 10})
		}
		c := cost(10_000, 10, wire.MethodFallback)
		learned := table.Apply("api", judge, &c, true)
		if learned.InputRatio < row.want*0.98 || learned.InputRatio > row.want*1.07 || c.InputTokens != int64(10_000*learned.InputRatio+0.5) {
			t.Errorf("a factor of %v is learned as %v, %+v", row.truth, learned.InputRatio, c)
		}
		exact := cost(10_000, 10, wire.MethodExact)
		if table.Apply("api", judge, &exact, true); exact.InputTokens != 10_000 {
			t.Errorf("what was counted exactly became %+v", exact)
		}
	}
}

// A sort that changes is followed.
func TestLatestCountsMost(t *testing.T) {
	table := newTable(t)
	settle := func(n int, out int64) {
		for range n {
			table.Settled("eval", judge, cost(1, 1, wire.MethodExact), wire.Usage{InputTokens: 1, OutputTokens: out})
		}
	}
	settle(10_000, 4000)
	settle(1500, 100)
	c := cost(1, 1024, wire.MethodExact)
	if l := table.Apply("eval", judge, &c, false); c.OutputTokens > 110 || l.Samples > forget {
		t.Errorf("after 1500 of 100 tokens: %+v, %+v", c, l)
	}
}

// However many sorts a source invents, memory is bounded, and what is in use stays.
func TestMemoryIsBounded(t *testing.T) {
	table := newTable(t, func(o *Options) { o.Sorts = 64 })
	used := wire.Usage{InputTokens: 1, OutputTokens: 77}
	for range 20 {
		table.Settled("eval", judge, cost(1, 1, wire.MethodExact), used)
	}
	var before, after runtime.MemStats
	for i := range 20_000 {
		if i == 1000 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		table.Settled("eval", Sort{Kind: fmt.Sprint("made up ", i)}, cost(1, 1, wire.MethodExact), used)
		c := cost(1, 1024, wire.MethodExact)
		if table.Apply("eval", judge, &c, false); c.OutputTokens != 77 {
			t.Fatalf("after %d other sorts the one in use is forgotten: %+v", i, c)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if m := table.sources["eval"]; len(m.slots) != 64 || len(m.index) != 64 {
		t.Errorf("%d sorts, %d in the index", len(m.slots), len(m.index))
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("19 000 sorts left %d bytes behind", grown)
	}
	runtime.KeepAlive(table)
}

func TestOptionsValidate(t *testing.T) {
	for _, o := range []Options{{0, 1, 1}, {101, 1, 1}, {85, 0, 1}, {85, 1, 0}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
