package bpe

import (
	"math"
	"unicode/utf8"
)

// Work foretells the time of a count, in units of about a nanosecond. It follows
// from the text alone.
const (
	pieceWork  = 40  // a piece
	byteWork   = 3   // a byte of it
	missWork   = 60  // a piece that is no token
	spreadWork = 15  // a byte of such a piece
	joinWork   = 100 // a merge
	stepWork   = 15  // a block of pairs gone through for it
)

// Count returns the number of tokens of a text of at most half a gigabyte.
func (v *Vocabulary) Count(text []byte) int {
	tokens, _, _ := v.CountWithin(text, math.MaxInt)
	return tokens
}

// CountWithin counts a text piece by piece from its beginning for as long as the
// work stays within a limit. It returns the tokens of text[:read] and the work
// they were; read is len(text) if all is counted. A unit of work is about a
// nanosecond.
//
// A piece that might be more work than is left, whatever is in it, is not begun.
// The first piece always is if it has fewer than limit/1200 bytes.
func (v *Vocabulary) CountWithin(text []byte, limit int) (tokens, read, work int) {
	s := memory.Get().(*scratch)
	defer memory.Put(s)
	valid := utf8.Valid(text)
	for read < len(text) {
		to := v.split(v.classes, text, read)
		piece, n := text[read:], to-read
		if n > v.tokens.limit && work+mostWork(n) > limit {
			break // before its bytes are looked at again
		}
		if !valid {
			piece = s.validated(piece[:n])
			n = len(piece)
		}
		least := pieceWork + n*byteWork
		if work+least > limit {
			break
		}
		count := 1
		if v.tokens.find(piece, 0, n) == none {
			if work+least+mostWork(n) > limit {
				break
			}
			var more int
			count, more = v.merge(s, piece, n)
			work += missWork + more
		}
		tokens, read, work = tokens+count, to, work+least
	}
	return tokens, read, work
}

// mostWork is the most that merging a piece of n bytes can be: a merge looks for
// the lowest pair and changes three, each in all levels but the highest.
func mostWork(n int) int {
	levels, _ := levelsOf(n)
	return missWork + n*(spreadWork+joinWork+stepWork*(1+3*(levels-1)))
}

// validated returns a piece with U+FFFD for each byte that is no UTF-8. It is
// valid until the next call.
func (s *scratch) validated(piece []byte) []byte {
	if utf8.Valid(piece) {
		return piece
	}
	s.valid = s.valid[:0]
	for len(piece) > 0 {
		r, n := utf8.DecodeRune(piece)
		s.valid = utf8.AppendRune(s.valid, r)
		piece = piece[n:]
	}
	return s.valid
}
