package classes_test

import (
	"testing"
	"time"

	"quotabroker/classes"
)

// BenchmarkDecide is the decision alone: may a job go, and if it may, charge it on
// every limit. One limit and three.
func BenchmarkDecide(b *testing.B) {
	limits := []classes.Limit{
		{Metric: classes.Tokens, Amount: 1_000_000_000, Span: time.Minute},
		{Metric: classes.Requests, Amount: 1_000_000_000, Span: time.Minute},
		{Metric: classes.Tokens, Amount: 1_000_000_000_000, Span: 24 * time.Hour},
	}
	for _, bench := range []struct {
		name   string
		limits []classes.Limit
	}{{"limits=1", limits[:1]}, {"limits=3", limits}} {
		b.Run(bench.name, func(b *testing.B) {
			r := classes.NewRule(classes.Settings{
				Classes: classes.DefaultClasses(), Limits: bench.limits, Guard: time.Second, Buckets: 240, HalfLife: 10 * time.Minute,
			})
			ask := classes.Ask{Class: 0, Cost: classes.Vec{classes.Tokens: 1, classes.InputTokens: 1, classes.Requests: 1, classes.Leases: 1}}
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += time.Microsecond
				r.Advance(now)
				if check := r.May(&ask); !check.Go {
					b.Fatal("it may not go")
				}
				r.Charge(0, ask.Cost)
			}
		})
	}
}
