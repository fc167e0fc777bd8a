package accuracy

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"quotabroker/estimator"
	"quotabroker/estimator/learn"
	"quotabroker/wire"
)

// Row is how estimates of one kind of request erred.
type Row struct {
	Provider string  `json:"provider"`
	API      string  `json:"api"`
	Shape    string  `json:"shape"`    // text, tools or media
	Pairs    int     `json:"pairs"`    // measured
	Refused  int     `json:"refused"`  // that the estimator could not read
	Within1  float64 `json:"within_1"` // part that is off by one token at most
	P50      float64 `json:"p50"`      // of |estimate - counted| / counted
	P90      float64 `json:"p90"`
	Max      float64 `json:"max"`
	Bias     float64 `json:"bias"` // sum of the estimates over the sum of the counts, less 1

	errs           []float64
	within         int
	sum, estimated int64
}

// kind is what a row is of.
type kind struct{ provider, api, shape string }

func (p *Pair) kind() kind {
	switch {
	case p.Media:
		return kind{p.Provider, p.API, "media"}
	case p.Tools:
		return kind{p.Provider, p.API, "tools"}
	}
	return kind{p.Provider, p.API, "text"}
}

// Measure estimates every pair and returns a row for each provider, API and shape, in
// this order. With learned, every other pair of a model, from the first on, is learned
// from as a settlement is, and only the others are measured.
func Measure(est *estimator.Estimator, pairs []Pair, learned *learn.Table) []Row {
	rows := map[kind]*Row{}
	met := map[string]int{}
	measured := make([]int, 0, len(pairs))
	for i := range pairs {
		p := &pairs[i]
		teaches := learned != nil && met[p.Model]%2 == 0
		met[p.Model]++
		if !teaches {
			measured = append(measured, i)
			continue
		}
		if e, err := est.Estimate(estimator.Input{Model: p.Model, Body: p.Request}); err == nil {
			learned.Settled("", learn.Sort{Model: p.Model}, e.Cost, wire.Usage{InputTokens: p.Input})
		}
	}
	for _, i := range measured {
		p := &pairs[i]
		k := p.kind()
		r := rows[k]
		if r == nil {
			r = &Row{Provider: k.provider, API: k.api, Shape: k.shape}
			rows[k] = r
		}
		r.add(est, p, learned)
	}
	return finish(rows)
}

func (r *Row) add(est *estimator.Estimator, p *Pair, learned *learn.Table) {
	e, err := est.Estimate(estimator.Input{Model: p.Model, Body: p.Request})
	if err != nil {
		r.Refused++
		return
	}
	if learned != nil {
		learned.Apply("", learn.Sort{Model: p.Model}, &e.Cost, true)
	}
	off := e.Cost.InputTokens - p.Input
	r.Pairs++
	r.sum, r.estimated = r.sum+p.Input, r.estimated+e.Cost.InputTokens
	r.errs = append(r.errs, math.Abs(float64(off))/float64(max(p.Input, 1)))
	if -1 <= off && off <= 1 {
		r.within++
	}
}

func finish(rows map[kind]*Row) []Row {
	var out []Row
	for _, r := range rows {
		slices.Sort(r.errs)
		if n := len(r.errs); n > 0 {
			r.Within1 = float64(r.within) / float64(n)
			r.P50, r.P90, r.Max = r.errs[(n-1)/2], r.errs[(n*9-1)/10], r.errs[n-1]
			r.Bias = float64(r.estimated)/float64(max(r.sum, 1)) - 1
		}
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.API, b.API), cmp.Compare(b.Shape, a.Shape))
	})
	return out
}

// Print writes rows as a table.
func Print(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "provider\tapi\tshape\tpairs\twithin 1\tp50\tp90\tmax\tbias\t")
	refused := 0
	for i := range rows {
		r := &rows[i]
		refused += r.Refused
		if r.Pairs == 0 {
			continue
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.0f %%\t%.1f %%\t%.1f %%\t%.0f %%\t%+.1f %%\t\n", r.Provider, r.API, r.Shape, r.Pairs,
			100*r.Within1, 100*r.P50, 100*r.P90, 100*r.Max, 100*r.Bias)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if refused > 0 {
		_, err := fmt.Fprintf(w, "%d pairs could not be estimated\n", refused)
		return err
	}
	return nil
}
