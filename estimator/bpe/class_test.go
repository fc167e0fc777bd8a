package bpe

import (
	"strings"
	"testing"
	"unicode"
)

// TestClassesOfAllRunes compares the table with what a regular expression asks
// package unicode.
func TestClassesOfAllRunes(t *testing.T) {
	table := classes()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		c := table.of(r)
		for _, x := range []struct {
			of   class
			want bool
		}{
			{upper, unicode.In(r, unicode.Lu, unicode.Lt)},
			{lower, unicode.Is(unicode.Ll, r)},
			{letter, unicode.In(r, unicode.Lm, unicode.Lo)},
			{mark, unicode.Is(unicode.Categories["M"], r)},
			{number, unicode.Is(unicode.Categories["N"], r)},
			{space, unicode.IsSpace(r)},
			{newline, r == '\n' || r == '\r'},
			{letters, unicode.Is(unicode.Categories["L"], r)},
			{letters | mark | number | space | other, true},
		} {
			if got := c&x.of != 0; got != x.want {
				t.Fatalf("%U is %08b, in %08b: %v", r, c, x.of, x.want)
			}
		}
		if r < 0x80 && table.ascii[r] != c {
			t.Fatalf("%U is %08b, in ASCII %08b", r, c, table.ascii[r])
		}
	}
	if n := len(table.pages); n > 256 {
		t.Errorf("%d different pages", n)
	}
}

// TestContractionsAreASCII: the patterns ignore case by way of the small letter,
// and only ASCII has small letters of contractions.
func TestContractionsAreASCII(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if strings.ContainsRune("stmdrevl", unicode.ToLower(r)) {
			t.Errorf("the small letter of %U is %c", r, unicode.ToLower(r))
		}
	}
}
