package estimator

import (
	"unicode/utf8"

	"quotabroker/estimator/bpe"
)

// feature is what the regression counts in a text. The first ones are about
// ASCII; a rune outside it counts under its group and the number of tokens it
// takes when it stands alone in the vocabulary.
type feature uint8

const (
	fWord        feature = iota // runs of Latin letters
	fLetterLate                 // letters 7 to 16 of a run
	fLetterDeep                 // letters from the 17th of a run
	fCamel                      // capital after a small letter
	fCapitals                   // capital after a capital
	fDigits                     // groups of three digits
	fSpaceDigit                 // digit runs after white space, which they do not take in
	fPunct                      // runs of ASCII punctuation
	fPunctMore                  // further punctuation that differs from the character before
	fPunctDeep                  // the same from the fifth character of a run
	fPunctSame                  // further punctuation that repeats it
	fNewline                    // white space that begins with a newline, not after punctuation
	fPunctLine                  // the same after punctuation, which takes it in
	fIndent                     // white space runs of two and more
	fSpaceMore                  // white space after white space that differs from it
	fSpaceSame                  // white space that repeats the one before, from the third of a run
	fControl                    // control characters
	fVowelEnd                   // words of three letters and more that end in a, i, o or u: not English
	fForeignWord                // runs of letters of Cyrillic, Greek, Semitic and 3-byte scripts
	fForeignDeep                // letters from the 17th of such a run of 2-byte letters
	fRune                       // first of the groups below
)

// group collects scripts that the vocabularies treat alike. A group has four
// features: runes of 1, 2, 3 and 4 tokens.
type group uint8

const (
	gLatin   group = iota // Latin letters with diacritics
	gGreek                // Greek, Cyrillic
	gSemitic              // Armenian, Hebrew, Arabic and other 2-byte scripts
	gIndic                // 3-byte alphabets and syllabaries: Indic, Thai, Ethiopic, …
	gHangul
	gKana
	gHan
	gSymbol // punctuation, symbols, full-width forms
	gMark   // combining diacritics
	gEmoji  // U+1F000 to U+1FAFF
	gRare   // all other planes; 3 or 4 tokens a rune
	numGroups
)

const (
	groupWidth  = 4
	numFeatures = int(fRune) + int(numGroups)*groupWidth
	fNone       = feature(numFeatures) // counted, but weighs nothing
)

type features [numFeatures + 1]int32

// classedRunes is the end of the table of runes; the planes above hold rare
// ideographs, of which hardly any is in a vocabulary.
const classedRunes = 0x1FB00

// runeClasses gives each rune its feature, for one vocabulary.
type runeClasses [classedRunes]feature

func (c *runeClasses) of(r rune) feature {
	if r < classedRunes {
		return c[r]
	}
	return fRune + feature(gRare)*groupWidth + groupWidth - 1
}

// classify builds the table from a vocabulary.
func classify(v *bpe.Vocabulary) *runeClasses {
	c := new(runeClasses)
	var buf [utf8.UTFMax]byte
	for r := rune(utf8.RuneSelf); r < classedRunes; r++ {
		n := utf8.EncodeRune(buf[:], r)
		c[r] = fRune + feature(groupOf(r))*groupWidth + feature(v.Count(buf[:n])) - 1
	}
	return c
}

func groupOf(r rune) group {
	switch {
	case r < 0xC0, r == 0xD7, r == 0xF7:
		return gSymbol
	case r < 0x2B0, r >= 0x1E00 && r < 0x1F00:
		return gLatin
	case r < 0x300:
		return gSymbol
	case r < 0x370:
		return gMark
	case r < 0x530, r >= 0x1F00 && r < 0x2000:
		return gGreek
	case r < 0x900:
		return gSemitic
	case r >= 0x1100 && r < 0x1200, r >= 0x3130 && r < 0x3190, r >= 0xA960 && r < 0xA980, r >= 0xAC00 && r < 0xD800:
		return gHangul
	case r < 0x1E00, r >= 0xA4D0 && r < 0xAC00:
		return gIndic
	case r < 0x2E80, r >= 0x3000 && r < 0x3040:
		return gSymbol
	case r >= 0x3040 && r < 0x3100, r >= 0x31F0 && r < 0x3200:
		return gKana
	case r < 0xA4D0, r >= 0xF900 && r < 0xFB00:
		return gHan
	case r >= 0xFB1D && r < 0xFE00, r >= 0xFE70 && r < 0xFF00:
		return gSemitic
	case r >= 0xFB00 && r < 0x10000:
		return gSymbol
	case r >= 0x1F000 && r < 0x1FB00:
		return gEmoji
	}
	return gRare
}
