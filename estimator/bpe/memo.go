package bpe

import "sync/atomic"

// memo remembers which tokens pairs of tokens make, or that they make none. It
// only saves time: what is asked for often is answered from half a megabyte. Any
// number of goroutines may use one; an entry is one word, so it is whole or not
// there.
type memo [1 << memoBits]atomic.Uint64

const memoBits = 16

// made returns the token that left and right make, which are text[from:to].
func (v *Vocabulary) made(left, right rank, text []byte, from, to int32) rank {
	key := uint64(left)<<rankBits + uint64(right) + 1
	slot := &v.memo[key*mixA>>(64-memoBits)]
	if e := slot.Load(); e>>rankBits == key {
		return rank(e) & none
	}
	r := v.tokens.find(text, int(from), int(to))
	slot.Store(key<<rankBits | uint64(r))
	return r
}
