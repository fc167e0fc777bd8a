package classes

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"quotabroker/wire"
)

func TestMulDivAndRatiosAgainstBig(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	number := func(least int64) int64 {
		return max(least, rnd.Int64()>>rnd.IntN(63))
	}
	overflowed := 0
	for range 200_000 {
		a, b, c, d := number(0), number(0), number(1), number(1)
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want.Div(want, big.NewInt(c))
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
			overflowed++
		}
		if got := mulDiv(a, b, c); got != want.Int64() {
			t.Fatalf("mulDiv(%d, %d, %d) = %d, want %s", a, b, c, got, want)
		}
		less := new(big.Int).Mul(big.NewInt(a), big.NewInt(d)).Cmp(new(big.Int).Mul(big.NewInt(b), big.NewInt(c))) < 0
		if got := lessRatio(a, c, b, d); got != less {
			t.Fatalf("lessRatio(%d/%d, %d/%d) = %v", a, c, b, d, got)
		}
	}
	if overflowed == 0 {
		t.Error("nothing overflowed")
	}
}

func TestPortion(t *testing.T) {
	for _, tc := range []struct {
		p    Portion
		n    int64
		want int64
		text string
	}{
		{7 * Percent, 100_000, 7_000, "7%"},
		{Percent / 5, 441_000, 882, "0.2%"},
		{Whole, MaxAmount, MaxAmount, "100%"},
		{Whole - 1, MaxAmount, 999_999_000_000, "99.9999%"},
		{1, 999_999, 0, "0.0001%"},
		{0, 5, 0, "0%"},
		{Whole, 0, 0, "100%"},
	} {
		if got := tc.p.Of(tc.n); got != tc.want {
			t.Errorf("%s of %d = %d, want %d", tc.p, tc.n, got, tc.want)
		}
		if got := tc.p.String(); got != tc.text {
			t.Errorf("%d reads %q, want %q", int64(tc.p), got, tc.text)
		}
	}
}

func TestMetricNames(t *testing.T) {
	for m := range Metric(NumMetrics) {
		got, ok := ParseMetric(m.String())
		if want := m != Leases; ok != want || ok && got != m {
			t.Errorf("ParseMetric(%q) = %v, %v", m, got, ok)
		}
	}
	for _, tc := range []struct {
		l    Limit
		want string
	}{
		{Limit{Tokens, 1, time.Minute}, "tokens/60s"},
		{Limit{Requests, 1, 1500 * time.Millisecond}, "requests/1.5s"},
		{Limit{OutputTokens, 1, 24 * time.Hour}, "output_tokens/86400s"},
		{Limit{Metric: Leases, Amount: 3}, "leases"},
	} {
		if got := tc.l.String(); got != tc.want {
			t.Errorf("%+v reads %q, want %q", tc.l, got, tc.want)
		}
	}
}

func TestVec(t *testing.T) {
	v := VecOf(wire.Cost{Requests: 1, InputTokens: 20, OutputTokens: 300, Tokens: 320})
	if want := (Vec{Tokens: 320, InputTokens: 20, OutputTokens: 300, Requests: 1, Leases: 1}); v != want {
		t.Errorf("VecOf = %v, want %v", v, want)
	}
	if got := v.Add(v).Sub(v); got != v {
		t.Errorf("v + v - v = %v", got)
	}
}
