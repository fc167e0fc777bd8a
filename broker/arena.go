package broker

// none is the index of nothing in an arena.
const none int32 = -1

const arenaChunk = 1024

// arena holds values of one kind under small indices that are reused. Pointers
// into it stay valid until the index is freed. A value that is freed is zeroed.
type arena[T any] struct {
	chunks []*[arenaChunk]T
	free   []int32
	next   int32  // first index never used
	reused uint64 // how often an index was used again
}

func (a *arena[T]) at(i int32) *T { return &a.chunks[i/arenaChunk][i%arenaChunk] }

// add returns an index, its zeroed value, and a generation: no two values that
// ever had the same index have the same one.
func (a *arena[T]) add() (i int32, generation uint64, v *T) {
	if n := len(a.free); n > 0 {
		i = a.free[n-1]
		a.free = a.free[:n-1]
		a.reused++
		return i, a.reused, a.at(i)
	}
	if int(a.next) == len(a.chunks)*arenaChunk {
		a.chunks = append(a.chunks, new([arenaChunk]T))
	}
	i = a.next
	a.next++
	return i, 0, a.at(i)
}

func (a *arena[T]) drop(i int32) {
	var zero T
	*a.at(i) = zero
	a.free = append(a.free, i)
}

// live returns how many values there are.
func (a *arena[T]) live() int { return int(a.next) - len(a.free) }
