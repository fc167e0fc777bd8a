package broker

import (
	"math/bits"
	"time"
)

// waitSketch counts waits so that their quantiles are told to an eighth: each power of
// two of milliseconds has eight cells.
type waitSketch struct {
	counts [waitCells]uint32
	most   int64 // ms
}

const (
	waitCells   = 8 * 21    // up to 2^23 ms, more than two hours; the last cell has all above
	longestCell = 1<<23 - 1 // ms
)

func (s *waitSketch) add(d time.Duration) {
	ms := int64((d + time.Millisecond - 1) / time.Millisecond)
	s.counts[cellOf(ms)]++
	s.most = max(s.most, ms)
}

// cellOf returns the cell of a wait: itself below 8 ms, then the three bits
// after the leading one.
func cellOf(ms int64) int {
	ms = min(ms, longestCell)
	if ms < 8 {
		return int(ms)
	}
	e := bits.Len64(uint64(ms)) - 4
	return 8*e + int(ms>>e)
}

// cellEnd returns the longest wait of a cell, in ms.
func cellEnd(cell int) int64 {
	if cell < 16 {
		return int64(cell)
	}
	e := cell/8 - 1
	return int64(cell%8+9)<<e - 1
}

// quantileMS returns the q-quantile over s and o, q in per cent, an eighth too high
// at most; 0 where nothing was counted.
func (s *waitSketch) quantileMS(o *waitSketch, q uint64) int64 {
	var total, seen uint64
	for i := range s.counts {
		total += uint64(s.counts[i]) + uint64(o.counts[i])
	}
	if total == 0 {
		return 0
	}
	for i := range s.counts {
		if seen += uint64(s.counts[i]) + uint64(o.counts[i]); seen*100 >= total*q && i < waitCells-1 {
			return min(cellEnd(i), max(s.most, o.most))
		}
	}
	return max(s.most, o.most)
}
