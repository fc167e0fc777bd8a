package bpe

const (
	blockLog  = 3
	blockSize = 1 << blockLog
)

// lowest keeps the lowest of many pairs: a tree of blocks of eight, each with its
// lowest in a block above, up to a single one. A block is a cache line and its
// lowest is found without a branch, so a change costs little more than a line
// for each level, of which a million pairs have seven.
type lowest struct {
	levels [][]pair // the pairs, then the lowest of their blocks, and so on
	memory []pair   // of all levels
	steps  int      // blocks gone through since reset
}

// blocks returns how many blocks n pairs fill.
func blocks(n int) int { return (n + blockSize - 1) >> blockLog }

// levelsOf returns how many levels n pairs have, and their size.
func levelsOf(n int) (levels, size int) {
	for {
		n = blocks(n)
		levels, size = levels+1, size+n<<blockLog
		if n == 1 {
			return levels, size
		}
	}
}

// reset makes room for n pairs, at least one. The caller writes all of them,
// then calls build.
func (l *lowest) reset(n int) []pair {
	levels, size := levelsOf(n)
	if cap(l.memory) < size {
		l.memory = make([]pair, size)
	}
	rest := l.memory[:size]
	l.levels, l.steps = l.levels[:0], 0
	for b := blocks(n); levels > 0; levels-- {
		l.levels = append(l.levels, rest[:b<<blockLog])
		rest = rest[b<<blockLog:]
		b = blocks(b)
	}
	clearFrom(l.levels[0], n)
	return l.levels[0][:n]
}

// build fills the levels above the pairs.
func (l *lowest) build() {
	for k, level := range l.levels[1:] {
		below := l.levels[k]
		n := len(below) >> blockLog
		for i := range n {
			level[i] = lowestOf(below, i)
		}
		clearFrom(level, n)
	}
}

func clearFrom(level []pair, n int) {
	for i := range level[n:] {
		level[n+i] = noPair
	}
}

// first returns the lowest pair.
func (l *lowest) first() pair {
	l.steps++
	return lowestOf(l.levels[len(l.levels)-1], 0)
}

// pairs returns the pairs themselves. After a change of some, lift is to be called
// for one in each block that has any.
func (l *lowest) pairs() []pair { return l.levels[0] }

// lift takes a change of the block of a place into the levels above.
func (l *lowest) lift(at int32) {
	for k := range len(l.levels) - 1 {
		l.steps++
		at >>= blockLog
		low := lowestOf(l.levels[k], int(at))
		if l.levels[k+1][at] == low {
			return
		}
		l.levels[k+1][at] = low
	}
}

// lowestOf returns the lowest pair of a block.
func lowestOf(level []pair, i int) pair {
	b := (*[blockSize]pair)(level[i<<blockLog:])
	return min(min(min(b[0], b[1]), min(b[2], b[3])), min(min(b[4], b[5]), min(b[6], b[7])))
}
