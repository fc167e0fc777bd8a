package bpe

// scratch is the memory a count works in. It grows to what the longest piece
// needs and is used again.
type scratch struct {
	symbols []symbol
	pairs   lowest
	valid   []byte // a piece with U+FFFD for its bad bytes
}

// symbol is a token that a piece has become so far, at the place of its first
// byte.
type symbol struct {
	id         rank
	prev, next int32 // places
}

// pair is what the symbol at a place makes with the next one: the rank, then the
// place, so that the lowest is the one to merge first.
type pair uint64

const (
	placeBits = 32
	noPair    = pair(none) << placeBits
)

func pairAt(r rank, place int32) pair { return pair(r)<<placeBits | pair(place) }

// merge returns how many tokens text[:n] becomes, a piece of two bytes or more,
// and the work that was.
func (v *Vocabulary) merge(s *scratch, text []byte, n int) (tokens, work int) {
	if cap(s.symbols) < n {
		s.symbols = make([]symbol, n)
	}
	symbols := s.symbols[:n]
	pairs := s.pairs.reset(n)
	for i, b := range text[:n-1] {
		symbols[i] = symbol{v.bytes[b], int32(i - 1), int32(i + 1)}
		pairs[i] = pairAt(v.twos[b][text[i+1]], int32(i))
	}
	symbols[n-1] = symbol{v.bytes[text[n-1]], int32(n - 2), int32(n)}
	pairs[n-1] = noPair
	s.pairs.build()
	tokens = n
	for {
		low := s.pairs.first()
		if low >= noPair {
			return tokens, n*spreadWork + (n-tokens)*joinWork + s.pairs.steps*stepWork
		}
		v.join(s, symbols, text, low)
		tokens--
	}
}

// join merges a pair: its left symbol becomes the token, the right one is gone.
func (v *Vocabulary) join(s *scratch, symbols []symbol, text []byte, low pair) {
	at, id := int32(low), rank(low>>placeBits)
	left := &symbols[at]
	gone, before := left.next, left.prev
	after := symbols[gone].next
	left.id, left.next = id, after

	pairs := s.pairs.pairs()
	pairs[gone], pairs[at] = noPair, noPair
	if int(after) < len(symbols) {
		right := &symbols[after]
		right.prev = at
		pairs[at] = pairAt(v.made(id, right.id, text, at, right.next), at)
	}
	if before >= 0 {
		pairs[before] = pairAt(v.made(symbols[before].id, id, text, before, after), before)
		if before>>blockLog != at>>blockLog {
			s.pairs.lift(before)
		}
	}
	s.pairs.lift(at)
	if gone>>blockLog != at>>blockLog {
		s.pairs.lift(gone)
	}
}
