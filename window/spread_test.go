package window

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Every amount lies in its cell, and the cells follow each other without a gap.
func TestSpreadCells(t *testing.T) {
	next := int64(0)
	for cell := range spreadCells {
		for _, n := range []int64{next, spreadEnd(cell)} {
			if got := spreadCell(n); got != cell {
				t.Fatalf("%d is in cell %d, want %d", n, got, cell)
			}
		}
		next = spreadEnd(cell) + 1
	}
	if next != MostSpread+1 {
		t.Errorf("the cells end at %d", next)
	}
}

// A quantile is never below that of the sorted amounts, and a sixteenth above it at
// most, over however many spreads they are.
func TestSpreadQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s [2]Spread
		amounts := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, MostSpread)), 1, 50).Draw(t, "amounts")
		for i, n := range amounts {
			s[i%2].Add(n)
		}
		slices.Sort(amounts)
		for _, q := range []int{0, 50, 85, 99, 100} {
			want := amounts[max(0, (len(amounts)*q+99)/100-1)]
			if got := Quantile(q, &s[0], &s[1]); got < want || got > want+want/16 {
				t.Fatalf("p%d is %d, want %d", q, got, want)
			}
		}
	})
}

func TestSpreadForgets(t *testing.T) {
	var s Spread
	if Quantile(85, &s) != 0 || s.Total() != 0 {
		t.Error("nothing has a quantile")
	}
	for range 100 {
		s.Add(1000)
	}
	for range 7 {
		s.Halve()
		for range 20 {
			s.Add(10)
		}
	}
	if got := Quantile(85, &s); got != 10 || s.Total() > 40 {
		t.Errorf("p85 is %d of %d", got, s.Total())
	}
	s.Add(-5)
	s.Add(1 << 40)
	if Quantile(0, &s) != 0 || Quantile(100, &s) != MostSpread {
		t.Error("amounts out of range are not what is nearest")
	}
}
