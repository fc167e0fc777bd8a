package estimator

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A stretch is text between two neighbouring places where both patterns begin a
// new piece whatever stands around them, and where no lookahead crosses. So for
// every cut at such a place
//
//	count(text) = count(text[:cut]) + count(text[cut:])
//
// and no piece is longer than the stretch it lies in.

const (
	// chunkBytes is the longest unbroken text given to the reference
	// tokenizer: a longer stretch is cut into chunks of at most this.
	chunkBytes = 512

	// Work foretells what the reference tokenizer costs, in units of some
	// 0.1 µs: for a piece pieceWork, for a byte byteWork, for an unbroken stretch
	// of s bytes s²/stretchWork since its merge is quadratic, for a call callWork.
	pieceWork   = 16
	byteWork    = 3
	stretchWork = 64
	callWork    = 32
	proseWork   = 7 // a byte of English prose: 4.5 bytes a piece
)

type runeKind uint8

const (
	kindOther runeKind = iota
	kindLetter
	kindNumber
	kindMark
	kindApostrophe
	kindSpace
	kindNewline
)

func kindOf(r rune) runeKind {
	switch {
	case r < utf8.RuneSelf:
		return asciiKinds[r]
	case unicode.IsLetter(r):
		return kindLetter
	case unicode.IsMark(r):
		return kindMark
	case unicode.IsNumber(r):
		return kindNumber
	case unicode.IsSpace(r):
		return kindSpace
	}
	return kindOther
}

var asciiKinds = func() (kinds [utf8.RuneSelf]runeKind) {
	for r := range rune(utf8.RuneSelf) {
		switch {
		case unicode.IsLetter(r):
			kinds[r] = kindLetter
		case unicode.IsDigit(r):
			kinds[r] = kindNumber
		case r == '\'':
			kinds[r] = kindApostrophe
		case r == '\r' || r == '\n':
			kinds[r] = kindNewline
		case unicode.IsSpace(r):
			kinds[r] = kindSpace
		}
	}
	return kinds
}()

// boundary reports whether a new piece always begins between runes of these
// kinds. It may miss a place, it never names a wrong one:
//   - Numbers stand alone, so they are cut off on both sides; white space before
//     them looks ahead, so not from that.
//   - No piece continues over white space, except that newlines belong to the
//     punctuation before them; marks are punctuation in cl100k.
//   - A letter run ends at what is no letter; o200k takes marks and contractions
//     (apostrophes) into it.
func boundary(before, after runeKind) bool {
	switch {
	case before >= kindSpace:
		return false
	case after == kindSpace:
		return true
	case before == kindNumber:
		return after != kindNumber
	case after == kindNumber:
		return true
	case before == kindLetter:
		return after == kindOther || after == kindNewline
	}
	return false
}

// stretch returns the length of the first stretch of text, 0 for no text, and
// roughly how many pieces it has: numbers go by threes, newlines and
// contractions are on their own, and so is for its length a byte that is no
// UTF-8.
func stretch(text []byte) (n, pieces int) {
	if len(text) == 0 {
		return 0, 0
	}
	r, n := utf8.DecodeRune(text)
	before := kindOf(r)
	thirds := 3
	for n < len(text) {
		r, size := rune(text[n]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[n:])
		}
		after := kindOf(r)
		if boundary(before, after) {
			break
		}
		switch {
		case r == utf8.RuneError && size == 1:
			thirds += 3
		case after == kindNumber && before == kindNumber:
			thirds++
		case after == kindNumber, after == kindApostrophe, before == kindNewline && after != kindSpace:
			thirds += 3
		}
		before = after
		n += size
	}
	return n, (thirds + 2) / 3
}

// weight is the work of a stretch.
func weight(bytes, pieces int) int {
	work := pieces*pieceWork + bytes*byteWork
	for ; bytes > chunkBytes; bytes -= chunkBytes {
		work += chunkBytes * chunkBytes / stretchWork
	}
	return work + bytes*bytes/stretchWork
}

// prefix returns the longest beginning of text that ends at a boundary and is
// within both limits, and its work. A long stretch, or the first one, is cut
// where it is not within them.
func prefix(text []byte, maxBytes, maxWork int) (n, work int) {
	for n < len(text) && n < maxBytes {
		size, pieces := stretch(text[n:min(n+maxBytes+1, len(text))])
		more := weight(size, pieces)
		if n+size <= maxBytes && work+more <= maxWork {
			n, work = n+size, work+more
			continue
		}
		if n == 0 || size > alignBytes {
			size = cut(text[n:], min(maxBytes-n, chunkBytes))
			n, work = n+size, work+weight(size, 1)
		}
		break
	}
	return n, work
}

// cut returns the length of the longest beginning of text that has at most
// limit bytes and ends between two runes; it is at least one rune.
func cut(text []byte, limit int) int {
	n := min(limit, len(text))
	for n > 0 && n < len(text) && n > limit-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	if n == 0 {
		_, n = utf8.DecodeRune(text)
	}
	return n
}

// countAll counts all of text. exact is false if a stretch had to be cut. As in
// tiktoken, each byte that is no UTF-8 counts as U+FFFD.
func (v *vocabulary) countAll(text []byte) (tokens int64, exact bool) {
	if !utf8.Valid(text) {
		text = bytes.Map(func(r rune) rune { return r }, text)
	}
	exact = true
	plain := 0 // text[:plain] has no long stretch
	for plain < len(text) {
		n, _ := stretch(text[plain:])
		if n <= chunkBytes {
			plain += n
			continue
		}
		tokens += v.encode(text[:plain])
		long := text[plain : plain+n]
		text, plain = text[plain+n:], 0
		exact = false
		for len(long) > 0 {
			c := cut(long, chunkBytes)
			tokens += v.encode(long[:c])
			long = long[c:]
		}
	}
	return tokens + v.encode(text), exact
}
