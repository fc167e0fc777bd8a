package broker

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every wait lies in its cell, and the cells follow each other without a gap.
func TestSketchOfWaitsCells(t *testing.T) {
	next := int64(0)
	for cell := range waitCells {
		if got := cellOf(next); got != cell {
			t.Fatalf("%d ms are in cell %d, want %d", next, got, cell)
		}
		next = cellEnd(cell) + 1
		if got := cellOf(next - 1); got != cell {
			t.Fatalf("%d ms are in cell %d, want %d", next-1, got, cell)
		}
	}
	if next != longestCell+1 {
		t.Errorf("the cells end at %d ms", next)
	}
}

// A quantile is never below that of the sorted waits, and an eighth and a
// millisecond above it at most.
func TestSketchOfWaitsQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s [2]waitSketch
		waits := rapid.SliceOfN(rapid.Int64Range(0, int64(3*time.Hour)), 1, 50).Draw(t, "waits")
		for i, w := range waits {
			s[i%2].add(time.Duration(w))
		}
		slices.Sort(waits)
		for _, q := range []int{50, 95, 99, 100} {
			want := (waits[(len(waits)*q+99)/100-1] + 1e6 - 1) / 1e6
			got := s[0].quantileMS(&s[1], uint64(q))
			if want <= longestCell && (got < want || got > want+want/8+1) {
				t.Fatalf("p%d is %d ms, want %d", q, got, want)
			}
		}
	})
	var none waitSketch
	if none.quantileMS(&none, 50) != 0 {
		t.Error("nothing has a quantile")
	}
}
