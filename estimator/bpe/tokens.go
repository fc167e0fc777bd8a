package bpe

import (
	"encoding/binary"
	"math/bits"
)

// rank is a token's place in its vocabulary.
type rank = uint32

// none is the rank of what is no token. It is above all others.
const none rank = 1<<rankBits - 1

const rankBits = 18 // o200k_base has 199 998 tokens

// tokenSet finds tokens by their bytes: open addressing with linear probing, at
// most half full. A slot is the rank plus one and above it bits of the hash, 0 if
// empty. Slots of four bytes keep the table where the processor's cache reaches;
// what they lead to is in the order of ranks, so that frequent tokens are
// neighbours there.
//
// The set never changes once it is loaded, so the longest run of its occupied
// slots is given, and no text can make a look-up slow.
type tokenSet struct {
	slots []uint32
	shift uint8
	bytes []byte   // of all tokens
	ends  []uint32 // ends[r+1] is where token r ends in bytes
	limit int      // bytes of the longest
}

func newTokenSet(tokens, size int) tokenSet {
	log := bits.Len(uint(2*tokens - 1))
	return tokenSet{
		slots: make([]uint32, 1<<log), shift: uint8(64 - log),
		bytes: make([]byte, 0, size), ends: append(make([]uint32, 0, tokens+1), 0),
	}
}

// add takes in the token of the next rank.
func (s *tokenSet) add(token []byte) {
	from := len(s.bytes)
	s.bytes = append(s.bytes, token...)
	hash := hashOf(s.bytes, from, len(s.bytes))
	i := int(hash >> (s.shift & 63))
	for s.slots[i] != 0 {
		i = (i + 1) & (len(s.slots) - 1)
	}
	s.slots[i] = uint32(hash)&^none | uint32(len(s.ends))
	s.ends = append(s.ends, uint32(len(s.bytes)))
	s.limit = max(s.limit, len(token))
}

// find returns the rank of text[from:to], of one byte or more, or none.
func (s *tokenSet) find(text []byte, from, to int) rank {
	if to-from > s.limit {
		return none
	}
	hash := hashOf(text, from, to)
	for i := int(hash >> (s.shift & 63)); ; i = (i + 1) & (len(s.slots) - 1) {
		slot := s.slots[i]
		if slot == 0 {
			return none
		}
		if (slot^uint32(hash))&^none == 0 {
			r := slot & none
			if token := s.bytes[s.ends[r-1]:s.ends[r]]; string(token) == string(text[from:to]) {
				return r - 1
			}
		}
	}
}

const (
	mixA = 0x9e3779b97f4a7c15
	mixB = 0xd1b54a32d192ed03
	mixC = 0xff51afd7ed558ccd
)

// hashOf hashes text[from:to]. What is behind it in text may be read but does
// not matter.
func hashOf(text []byte, from, to int) uint64 {
	h := uint64(to - from)
	for ; to-from > 8; from += 8 {
		h = fold(h^mixC, binary.LittleEndian.Uint64(text[from:]))
	}
	return fold(h^mixC, word(text, from, to)) * mixC
}

func fold(h, w uint64) uint64 {
	hi, lo := bits.Mul64(h^mixA, w^mixB)
	return hi ^ lo
}

// word returns text[from:to], of one to eight bytes, as a number.
func word(text []byte, from, to int) (w uint64) {
	if from+8 <= len(text) {
		return binary.LittleEndian.Uint64(text[from:]) & (1<<(8*(to-from)) - 1) // for eight bytes 1<<64 is 0
	}
	for i, c := range text[from:to] {
		w |= uint64(c) << (8 * i)
	}
	return w
}
