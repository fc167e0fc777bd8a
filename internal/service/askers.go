package service

// asker is somebody who waits for the answer to an acquire.
type asker struct {
	reply string
	about about
}

// about is what is remembered of a job besides its cost.
type about struct {
	source, class, model, kind string
	inputRatio                 float64 // that the estimate was corrected by
}

// askers keeps those who wait, from an ask until its answer. The number it hands
// out is the place and the place's generation, so that no answer reaches one who
// came later.
type askers struct {
	slots []askerSlot
	free  []uint32
}

type askerSlot struct {
	asker
	generation uint32
	waits      bool
}

func (a *askers) add(w asker) (to uint64) {
	var i uint32
	if n := len(a.free); n > 0 {
		i, a.free = a.free[n-1], a.free[:n-1]
	} else {
		i = uint32(len(a.slots))
		a.slots = append(a.slots, askerSlot{})
	}
	s := &a.slots[i]
	s.asker, s.waits = w, true
	s.generation++
	return uint64(s.generation)<<32 | uint64(i)
}

// take returns who waits under a number; ok is false when nobody does.
func (a *askers) take(to uint64) (w asker, ok bool) {
	i, generation := uint32(to), uint32(to>>32)
	if int(i) >= len(a.slots) || a.slots[i].generation != generation || !a.slots[i].waits {
		return asker{}, false
	}
	s := &a.slots[i]
	w = s.asker
	s.asker, s.waits = asker{}, false
	a.free = append(a.free, i)
	return w, true
}
