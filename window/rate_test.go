package window

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestDecayAgainstExp holds the factor of one step, and of many, against math.Exp
// within the error that NewDecay states.
func TestDecayAgainstExp(t *testing.T) {
	const one = int64(1) << 46
	for _, step := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 250 * time.Millisecond, 254_166_667, time.Second, time.Minute, 6 * time.Minute} {
		for _, tau := range []time.Duration{time.Second, 15 * time.Second, time.Minute, 866 * time.Second, 24 * time.Hour} {
			d := NewDecay(step, tau)
			x := float64(step) / float64(tau)
			if x >= 32 {
				if got := d.Apply(one, 1); got != 0 {
					t.Errorf("%s of %s: %d is left, want nothing", step, tau, got)
				}
				continue
			}
			for _, steps := range []int64{0, 1, 2, 3, 10, 1000, 1_000_003} {
				got := float64(d.Apply(one, steps)) / float64(one)
				want := math.Exp(-x * float64(steps))
				bound := want*float64(steps)*math.Exp(x)*(x*x/(1<<21)+1./(1<<41)) + 1./(1<<45)
				if math.Abs(got-want) > bound || got > 1 {
					t.Errorf("%s of %s, %d steps: %g, want %g ± %g", step, tau, steps, got, want, bound)
				}
			}
		}
	}
}

func TestHalfLife(t *testing.T) {
	for _, halfLife := range []time.Duration{time.Second, 10 * time.Minute, 24 * time.Hour} {
		step := halfLife / 400
		d := NewHalfLife(step, halfLife)
		for halvings := range int64(20) {
			got, want := d.Apply(1<<40, 400*halvings), int64(1)<<(40-halvings)
			if diff := got - want; diff > 0 || -diff > 1+want>>16 {
				t.Errorf("half-life %s: %d after %d of them, want %d", halfLife, got, halvings, want)
			}
		}
	}
}

func TestDecayLiteral(t *testing.T) {
	d := NewDecay(250*time.Millisecond, 15*time.Second)
	for _, tc := range []struct{ n, steps, want int64 }{
		{0, 1, 0}, {1, 1, 0}, {1 << 40, 0, 1 << 40}, {1 << 40, -3, 1 << 40}, {math.MaxInt64, 1 << 40, 0},
	} {
		if got := d.Apply(tc.n, tc.steps); got != tc.want {
			t.Errorf("Apply(%d, %d) = %d, want %d", tc.n, tc.steps, got, tc.want)
		}
	}
	if got := NewDecay(time.Second, 0).Apply(1000, 1); got != 0 {
		t.Errorf("no memory keeps %d", got)
	}
}

// TestRateAgainstExp charges at random and compares with the sum of the charges,
// each decayed by math.Exp to the bucket.
func TestRateAgainstExp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const step, tau = 250 * time.Millisecond, 15 * time.Second
		d := NewDecay(step, tau)
		var r Rate
		var exact float64
		most := rapid.SampledFrom([]int64{10, 100_000, 1_000_000_000}).Draw(t, "most")
		var charged, decays float64
		for range 200 {
			n := rapid.Int64Range(0, most).Draw(t, "n")
			r.Add(n)
			exact += float64(n)
			charged += float64(n)
			steps := rapid.Int64Range(0, 20).Draw(t, "steps")
			r.Decay(d, steps)
			decays += float64(steps) + 1
			exact *= math.Exp(-float64(step) / float64(tau) * float64(steps))
			dt := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "dt"))
			got, want := float64(r.Over(dt, tau)), exact*float64(dt)/float64(tau)
			if math.Abs(got-want) > 1+want*1e-5+decays/(1<<rateScale)*float64(dt)/float64(tau) || got < 0 {
				t.Fatalf("%g tokens expected in %s, want %g", got, dt, want)
			}
		}
	})
	t.Run("the largest does not overflow", func(t *testing.T) {
		var r Rate
		for range 60 {
			r.Add(1e12)
		}
		if got := r.Over(time.Minute, 15*time.Second); got != 240e12 {
			t.Errorf("%d tokens expected, want 2.4e14", got)
		}
		if got := r.Over(1<<62, time.Nanosecond); got <= 0 {
			t.Errorf("%d tokens expected", got)
		}
	})
}
