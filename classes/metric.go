package classes

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"quotabroker/wire"
)

// Metric is something a provider may limit.
type Metric uint8

// The metrics. Leases is the number of leases in flight: the concurrency cap is
// a limit like any other, except that it has no window.
const (
	Tokens Metric = iota
	InputTokens
	OutputTokens
	Requests
	Leases
	NumMetrics int = iota
)

var metricNames = [NumMetrics]string{"tokens", "input_tokens", "output_tokens", "requests", "leases"}

// String returns the metric's name in configuration and on the wire.
func (m Metric) String() string { return metricNames[m] }

// ParseMetric finds a metric that may be limited in configuration by its name.
// Leases is not one: the concurrency cap has a key of its own.
func ParseMetric(name string) (Metric, bool) {
	for m, n := range metricNames[:Leases] {
		if n == name {
			return Metric(m), true
		}
	}
	return 0, false
}

// Vec is an amount of each metric: what a job costs, or a sum of such costs.
type Vec [NumMetrics]int64

// VecOf returns what a job of the given cost takes of each metric: its cost, and
// one lease.
func VecOf(c wire.Cost) Vec {
	return Vec{Tokens: c.Tokens, InputTokens: c.InputTokens, OutputTokens: c.OutputTokens, Requests: c.Requests, Leases: 1}
}

// Add returns v + w.
func (v Vec) Add(w Vec) Vec {
	for i := range v {
		v[i] += w[i]
	}
	return v
}

// Sub returns v - w.
func (v Vec) Sub(w Vec) Vec {
	for i := range v {
		v[i] -= w[i]
	}
	return v
}

// MaxAmount is the largest amount a limit may have; sums and products of amounts
// then stay within 64 bits where the rule needs them to.
const MaxAmount = 1_000_000_000_000

// Limit is one limit of an account: an amount of a metric per span.
type Limit struct {
	Metric Metric
	Amount int64         // 0 lets nothing through
	Span   time.Duration // 0 for Leases only
}

// String returns the limit's name on the wire: "tokens/60s", "leases".
func (l Limit) String() string {
	if l.Metric == Leases {
		return "leases"
	}
	s := fmt.Sprintf("%.3f", l.Span.Seconds())
	return l.Metric.String() + "/" + strings.TrimRight(strings.TrimRight(s, "0"), ".") + "s"
}

// Portion is a part of a whole in parts per million: 7% is 70 000.
type Portion int64

// Whole is all of something; Percent is a hundredth of it.
const (
	Percent Portion = 10_000
	Whole   Portion = 100 * Percent
)

// Of returns the portion of n (0 to MaxAmount), rounded down.
func (p Portion) Of(n int64) int64 { return mulDiv(n, int64(p), int64(Whole)) }

// String returns the portion in per cent: "7%", "0.2%".
func (p Portion) String() string {
	sign := ""
	if p < 0 {
		sign, p = "-", -p
	}
	s := fmt.Sprintf("%s%d.%04d", sign, p/Percent, p%Percent)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + "%"
}

// mulDiv returns a*b/c rounded down without overflow in between, for a, b >= 0
// and c > 0, and the largest int64 where the result does not fit one.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi == 0 && lo < 1<<63 {
		return int64(lo) / c
	}
	if hi >= uint64(c) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, 1<<63-1))
}

// lessRatio reports whether a/b < c/d, for a, c >= 0 and b, d > 0.
func lessRatio(a, b, c, d int64) bool {
	h1, l1 := bits.Mul64(uint64(a), uint64(d))
	h2, l2 := bits.Mul64(uint64(c), uint64(b))
	return h1 < h2 || h1 == h2 && l1 < l2
}
