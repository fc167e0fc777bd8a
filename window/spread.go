package window

import "math/bits"

// Spread counts amounts so that their quantiles are told to a sixteenth, in fixed
// memory: each power of two has sixteen cells. The zero Spread is empty. Amounts are
// whole and 0 or more; those above [MostSpread] count as that.
type Spread struct {
	counts [spreadCells]uint32
	total  uint64
	most   int64
}

const (
	spreadBits  = 4
	perPower    = 1 << spreadBits
	spreadCells = perPower * 28

	// MostSpread is the largest amount that a Spread tells from larger ones.
	MostSpread = 1<<31 - 1
)

// Add counts one amount.
func (s *Spread) Add(n int64) {
	n = min(max(n, 0), MostSpread)
	s.counts[spreadCell(n)]++
	s.total++
	s.most = max(s.most, n)
}

// Total returns how many amounts are counted.
func (s *Spread) Total() uint64 { return s.total }

// Halve halves what is counted, so that what is added from now on weighs twice as
// much. A cell with one amount keeps none.
func (s *Spread) Halve() {
	s.total = 0
	for i := range s.counts {
		s.counts[i] /= 2
		s.total += uint64(s.counts[i])
	}
}

// Quantile returns an amount that q per cent of all that several Spreads count do not
// exceed: a sixteenth above the least such amount, at most. It is 0 where nothing is
// counted.
func Quantile(q int, over ...*Spread) int64 {
	var total, seen uint64
	var most int64
	for _, s := range over {
		total += s.total
		most = max(most, s.most)
	}
	if total == 0 {
		return 0
	}
	for cell := range spreadCells {
		for _, s := range over {
			seen += uint64(s.counts[cell])
		}
		if seen > 0 && seen*100 >= total*uint64(q) {
			return min(spreadEnd(cell), most)
		}
	}
	return most
}

// spreadCell returns the cell of an amount: itself while it is small, then the bits
// after the leading one.
func spreadCell(n int64) int {
	if n < perPower {
		return int(n)
	}
	e := bits.Len64(uint64(n)) - spreadBits - 1
	return perPower*e + int(n>>e)
}

// spreadEnd returns the largest amount of a cell.
func spreadEnd(cell int) int64 {
	if cell < 2*perPower {
		return int64(cell)
	}
	e := cell/perPower - 1
	return int64(cell%perPower+perPower+1)<<e - 1
}
