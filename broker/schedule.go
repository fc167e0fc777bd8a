package broker

import "time"

// schedule is a heap of what falls due when, by arena index. Every index is in it
// once at most. Equal times come in the order of their indices, so that a replay
// takes them in the same order.
type schedule struct {
	heap []dueAt
	pos  []int32 // by index: place in heap + 1, 0 for absent
}

type dueAt struct {
	at  time.Duration
	ref int32
}

func (d dueAt) before(o dueAt) bool { return d.at < o.at || d.at == o.at && d.ref < o.ref }

// set makes ref due at the given time, in place of any earlier word.
func (s *schedule) set(ref int32, at time.Duration) {
	for int(ref) >= len(s.pos) {
		s.pos = append(s.pos, 0)
	}
	if p := s.pos[ref]; p > 0 {
		s.heap[p-1].at = at
		s.down(s.up(int(p - 1)))
		return
	}
	s.heap = append(s.heap, dueAt{at, ref})
	s.pos[ref] = int32(len(s.heap))
	s.up(len(s.heap) - 1)
}

// drop takes ref out; it need not be in.
func (s *schedule) drop(ref int32) {
	if int(ref) >= len(s.pos) || s.pos[ref] == 0 {
		return
	}
	i := int(s.pos[ref] - 1)
	last := len(s.heap) - 1
	s.pos[ref] = 0
	if i != last {
		s.heap[i] = s.heap[last]
		s.pos[s.heap[i].ref] = int32(i + 1)
	}
	s.heap = s.heap[:last]
	if i != last {
		s.down(s.up(i))
	}
}

// first returns what falls due first.
func (s *schedule) first() (ref int32, at time.Duration, ok bool) {
	if len(s.heap) == 0 {
		return none, 0, false
	}
	return s.heap[0].ref, s.heap[0].at, true
}

func (s *schedule) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if !s.heap[i].before(s.heap[parent]) {
			break
		}
		s.swap(i, parent)
		i = parent
	}
	return i
}

func (s *schedule) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if r := child + 1; r < len(s.heap) && s.heap[r].before(s.heap[child]) {
			child = r
		}
		if !s.heap[child].before(s.heap[i]) {
			return
		}
		s.swap(i, child)
		i = child
	}
}

func (s *schedule) swap(i, j int) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.pos[s.heap[i].ref] = int32(i + 1)
	s.pos[s.heap[j].ref] = int32(j + 1)
}

// fifo is a queue of what falls due in the order it is put in. It shrinks as it
// empties.
type fifo struct {
	items []dueAt
	head  int
}

func (f *fifo) push(d dueAt) { f.items = append(f.items, d) }

func (f *fifo) first() (d dueAt, ok bool) {
	if f.head == len(f.items) {
		return dueAt{}, false
	}
	return f.items[f.head], true
}

func (f *fifo) pop() {
	f.head++
	if f.head >= 1024 && 2*f.head >= len(f.items) { // half of it is past
		n := copy(f.items, f.items[f.head:])
		f.items, f.head = f.items[:n], 0
	}
}
