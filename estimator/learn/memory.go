package learn

// memory keeps the sorts of one source. Of too many, the first that was not met
// since the hand last passed is forgotten (the clock, or second chance, algorithm).
type memory struct {
	index map[Sort]int
	slots []slot
	most  int
	hand  int
}

type slot struct {
	sort    Sort
	met     bool
	lessons *lessons
}

func newMemory(most int) *memory { return &memory{index: map[Sort]int{}, most: most} }

// get returns what a sort has taught, nil if it is not known.
func (m *memory) get(s Sort) *lessons {
	i, ok := m.index[s]
	if !ok {
		return nil
	}
	m.slots[i].met = true
	return m.slots[i].lessons
}

// add returns where a sort's lessons go.
func (m *memory) add(s Sort) *lessons {
	if l := m.get(s); l != nil {
		return l
	}
	if len(m.slots) < m.most {
		m.index[s] = len(m.slots)
		m.slots = append(m.slots, slot{sort: s, lessons: &lessons{}})
		return m.slots[len(m.slots)-1].lessons
	}
	for m.slots[m.hand].met {
		m.slots[m.hand].met = false
		m.hand = (m.hand + 1) % m.most
	}
	old := &m.slots[m.hand]
	delete(m.index, old.sort)
	*old.lessons = lessons{}
	old.sort = s
	m.index[s] = m.hand
	m.hand = (m.hand + 1) % m.most
	return old.lessons
}
