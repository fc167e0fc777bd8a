package estimator

import "unicode/utf8"

// shape is what the pass over a text remembers of the rune before.
type shape uint8

const (
	shapeOther shape = iota
	shapeLower
	shapeUpper
	shapeForeign
	shapeDigit
	shapePunct
	shapeSpace
	shapeNewline
	shapeControl
	numShapes
)

func (s shape) letter() bool { return s == shapeLower || s == shapeUpper }
func (s shape) white() bool  { return s == shapeSpace || s == shapeNewline }

var asciiShapes = func() (shapes [utf8.RuneSelf]shape) {
	for c := range shapes {
		switch {
		case c >= 'a' && c <= 'z':
			shapes[c] = shapeLower
		case c >= 'A' && c <= 'Z':
			shapes[c] = shapeUpper
		case c >= '0' && c <= '9':
			shapes[c] = shapeDigit
		case c == '\n' || c == '\r':
			shapes[c] = shapeNewline
		case c == ' ' || c == '\t' || c == '\v' || c == '\f':
			shapes[c] = shapeSpace
		case c < ' ' || c == 0x7f:
			shapes[c] = shapeControl
		default:
			shapes[c] = shapePunct
		}
	}
	return shapes
}()

// follow is what a character of one shape counts for after one of another.
type follow struct {
	feature feature
	same    uint8 // 1: it carries on the run
	leaves  uint8 // 1: it ends a word
}

var follows = func() (t [numShapes][numShapes]follow) {
	for before := range numShapes {
		for s := range numShapes {
			f := follow{feature: fNone}
			if before == s || before.letter() && s.letter() || before.white() && s.white() {
				f.same = 1
			}
			switch {
			case s.letter() && !before.letter():
				f.feature = fWord
			case s == shapeUpper && before == shapeLower:
				f.feature = fCamel
			case s == shapeUpper:
				f.feature = fCapitals
			case s == shapeDigit && before == shapeSpace:
				f.feature = fSpaceDigit
			case s == shapeNewline && before == shapePunct:
				f.feature = fPunctLine
			case s == shapeNewline && !before.white():
				f.feature = fNewline
			case s == shapeControl:
				f.feature = fControl
			case s == shapeForeign && before != s:
				f.feature = fForeignWord
			}
			if before == shapeLower && s != shapeLower {
				f.leaves = 1
			}
			t[before][s] = f
		}
	}
	return t
}()

// maxRun is the length up to which runs are told apart; longer ones go round in
// the last three lengths, which keeps digits in their triples.
const maxRun = 19

// longer is the length of a run with one character more.
var longer = func() (t [maxRun + 1]uint8) {
	for run := range t {
		t[run] = uint8(run + 1)
	}
	t[maxRun] = maxRun - 2
	return t
}()

// runFeatures is what a character counts for by its place in its run, and by
// whether it repeats the one before.
var runFeatures = func() (t [numShapes][maxRun + 1][2]feature) {
	for s := range numShapes {
		for run := range maxRun + 1 {
			differs, repeats := runFeature(s, run)
			t[s][run] = [2]feature{differs, repeats}
		}
	}
	return t
}()

func runFeature(s shape, run int) (differs, repeats feature) {
	switch {
	case s.letter() && run > 16:
		return fLetterDeep, fLetterDeep
	case s.letter() && run > 6:
		return fLetterLate, fLetterLate
	case s == shapeDigit && run%3 == 1:
		return fDigits, fDigits
	case s == shapePunct && run == 1:
		return fPunct, fPunct
	case s == shapePunct && run > 4:
		return fPunctDeep, fPunctSame
	case s == shapePunct:
		return fPunctMore, fPunctSame
	case s.white() && run == 2:
		return fIndent, fIndent
	case s.white() && run > 2:
		return fSpaceMore, fSpaceSame
	}
	return fNone, fNone
}

// vowels are 1 for the letters that English words hardly end in, words for the
// lengths of runs that are no single letters or pairs.
var (
	vowels = [256]uint8{'a': 1, 'i': 1, 'o': 1, 'u': 1}
	words  = func() (t [maxRun + 1]uint8) {
		for run := 3; run <= maxRun; run++ {
			t[run] = 1
		}
		return t
	}()
)

// add counts the features of text into f. It is nearly free of branches that a
// text could make a processor guess wrong: some 6 ms a MiB of any ASCII.
func (f *features) add(text []byte, classes *runeClasses) {
	var (
		before shape
		last   byte  // the character before, if ASCII
		run    uint8 // the length of the current run
	)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(text[i:])
			i += size - 1
			class := classes.of(r)
			before, run = f.addRune(class, before, run)
			last = 0
			if r == utf8.RuneError && size == 1 {
				more := badRun(text[i+1:]) // symbols, which only their number matters of
				f[class] += int32(more)
				i += more
			}
			continue
		}
		s := asciiShapes[c]
		w := &follows[before][s]
		f[fVowelEnd] += int32(w.leaves & vowels[last] & words[run])
		run = longer[run*w.same]
		same := 0
		if c == last {
			same = 1
		}
		f[w.feature]++
		f[runFeatures[s][run][same]]++
		before, last = s, c
	}
}

// badRun returns how many bytes text begins with that cannot begin a rune.
func badRun(text []byte) (n int) {
	for n < len(text) && (text[n] >= 0x80 && text[n] < 0xC2 || text[n] > 0xF4) {
		n++
	}
	return n
}

// addRune counts a rune outside ASCII. Latin letters carry on a run of letters,
// marks any run.
func (f *features) addRune(class feature, before shape, run uint8) (shape, uint8) {
	f[class]++
	s := shapeOther
	g := group((class - fRune) / groupWidth)
	switch g {
	case gMark:
		return before, run
	case gLatin:
		s = shapeLower
	case gGreek, gSemitic, gIndic, gHangul:
		s = shapeForeign
	default:
	}
	w := &follows[before][s]
	run = longer[run*w.same]
	f[w.feature]++
	if s != shapeForeign {
		f[runFeatures[s][run][0]]++
	} else if run > 16 && g <= gSemitic {
		f[fForeignDeep]++
	}
	return s, run
}
