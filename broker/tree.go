package broker

// tree is the order of one tier: a treap over the ticket arena, by (tag, seq),
// whose nodes know the sums of their subtrees. Every operation is O(log n)
// expected; priorities are a hash of seq, so a replay builds the same tree.
type tree struct{ root int32 }

func (t *ticket) before(tag, seq int64) bool { return t.tag < tag || t.tag == tag && t.seq < seq }

// insert puts ticket i in its place.
func (tr *tree) insert(a *arena[ticket], i int32) {
	t := a.at(i)
	t.left, t.right, t.parent = none, none, none
	t.prio = hash32(uint64(t.seq))
	pull(a, i)
	if tr.root == none {
		tr.root = i
		return
	}
	at := tr.root
	for {
		p := a.at(at)
		next := &p.left
		if p.before(t.tag, t.seq) {
			next = &p.right
		}
		if *next == none {
			*next, t.parent = i, at
			break
		}
		at = *next
	}
	for t.parent != none && a.at(t.parent).prio < t.prio {
		tr.rotateUp(a, i)
	}
	tr.refresh(a, t.parent)
}

// remove takes ticket i out.
func (tr *tree) remove(a *arena[ticket], i int32) {
	t := a.at(i)
	for t.left != none && t.right != none {
		child := t.left
		if a.at(t.right).prio > a.at(child).prio {
			child = t.right
		}
		tr.rotateUp(a, child)
	}
	child := t.left
	if child == none {
		child = t.right
	}
	tr.replace(a, i, child)
	tr.refresh(a, t.parent)
	t.left, t.right, t.parent = none, none, none
}

// refresh recomputes the sums of i and of all above it, after i changed.
func (tr *tree) refresh(a *arena[ticket], i int32) {
	for i != none {
		pull(a, i)
		i = a.at(i).parent
	}
}

// replace hangs child where i hung.
func (tr *tree) replace(a *arena[ticket], i, child int32) {
	p := a.at(i).parent
	switch {
	case p == none:
		tr.root = child
	case a.at(p).left == i:
		a.at(p).left = child
	default:
		a.at(p).right = child
	}
	if child != none {
		a.at(child).parent = p
	}
}

// rotateUp makes i the parent of its parent.
func (tr *tree) rotateUp(a *arena[ticket], i int32) {
	t := a.at(i)
	up := t.parent
	p := a.at(up)
	tr.replace(a, up, i)
	if p.left == i {
		p.left = t.right
		if t.right != none {
			a.at(t.right).parent = up
		}
		t.right = up
	} else {
		p.right = t.left
		if t.left != none {
			a.at(t.left).parent = up
		}
		t.left = up
	}
	p.parent = i
	pull(a, up)
	pull(a, i)
}

func pull(a *arena[ticket], i int32) {
	t := a.at(i)
	t.below = sums{key: noRank}
	if t.left != none {
		t.below = a.at(t.left).below
	}
	t.below.addTicket(t)
	if t.right != none {
		t.below.add(&a.at(t.right).below)
	}
}

// total returns the sums of the whole tier.
func (tr *tree) total(a *arena[ticket]) sums {
	if tr.root == none {
		return sums{key: noRank}
	}
	return a.at(tr.root).below
}

// beforePlace adds up what stands before the place (tag, seq).
func (tr *tree) beforePlace(a *arena[ticket], tag, seq int64) sums {
	out := sums{key: noRank}
	for i := tr.root; i != none; {
		t := a.at(i)
		if !t.before(tag, seq) {
			i = t.left
			continue
		}
		if t.left != none {
			out.add(&a.at(t.left).below)
		}
		out.addTicket(t)
		i = t.right
	}
	return out
}

// prefix adds up the longest run from the front whose keys are all below the
// limit, or equal to it where orEqual.
func (tr *tree) prefix(a *arena[ticket], limit rank, orEqual bool) sums {
	out := sums{key: noRank}
	ends := func(key rank) bool { return limit.less(key) || key == limit && !orEqual }
	for i := tr.root; i != none; {
		t := a.at(i)
		if t.left != none {
			l := &a.at(t.left).below
			if ends(l.key) {
				i = t.left
				continue
			}
			out.add(l)
		}
		if !t.late && ends(t.key) {
			break
		}
		out.addTicket(t)
		i = t.right
	}
	return out
}

// first returns the first ticket that is not late.
func (tr *tree) first(a *arena[ticket]) int32 {
	i := tr.root
	if i == none || a.at(i).below.count == 0 {
		return none
	}
	for {
		t := a.at(i)
		switch {
		case t.left != none && a.at(t.left).below.count > 0:
			i = t.left
		case !t.late:
			return i
		default:
			i = t.right
		}
	}
}

// firstHeld returns the first ticket whose asker waits for the answer.
func (tr *tree) firstHeld(a *arena[ticket]) int32 {
	i := tr.root
	if i == none || a.at(i).below.held == 0 {
		return none
	}
	for {
		t := a.at(i)
		switch {
		case t.left != none && a.at(t.left).below.held > 0:
			i = t.left
		case t.hold && !t.late:
			return i
		default:
			i = t.right
		}
	}
}

// hash32 spreads a number over 32 bits (the finaliser of splitmix64).
func hash32(x uint64) uint32 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return uint32((x ^ x>>31) >> 32)
}
