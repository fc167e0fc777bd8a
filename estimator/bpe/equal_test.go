package bpe

import (
	"flag"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var corpus = flag.String("corpus", "", "a folder whose files are compared as well, line by line")

// TestCorpus compares every third line of the texts, prompts and recorded requests
// of the test data; with -corpus all of them, and of the folder.
func TestCorpus(t *testing.T) {
	folders := []string{"estimator", "prompts"}
	for i, f := range folders {
		folders[i] = filepath.Join("..", "..", "testdata", f)
	}
	if *corpus != "" {
		folders = append(folders, *corpus)
	}
	lines := 0
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for line := range strings.SplitAfterSeq(string(data), "\n") {
				if lines++; *corpus != "" || lines%3 == 0 && looksAt(lines/3) {
					check(t, line)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d lines", lines)
}

// TestScripts compares texts of every script and category of Unicode, alone and
// with what the patterns tell apart between its runes.
func TestScripts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tables := maps.Clone(unicode.Scripts)
	maps.Copy(tables, unicode.Categories)
	for i, name := range slices.Sorted(maps.Keys(tables)) {
		runes := runesOf(tables[name], 200)
		if len(runes) == 0 || !looksAt(i) {
			continue
		}
		for _, glue := range [][]string{{""}, {"", "", " "}, {"", "a", "A", "1", " ", "\n", ".", "'s", "/", "\u0301"}} {
			var b strings.Builder
			for range 120 {
				b.WriteRune(runes[r.IntN(len(runes))])
				b.WriteString(glue[r.IntN(len(glue))])
			}
			check(t, b.String())
		}
	}
}

// runesOf returns some n runes spread over a table.
func runesOf(table *unicode.RangeTable, n int) (runes []rune) {
	var all []rune
	for _, x := range table.R16 {
		for r := rune(x.Lo); r <= rune(x.Hi); r += rune(x.Stride) {
			all = append(all, r)
		}
	}
	for _, x := range table.R32 {
		for r := rune(x.Lo); r <= rune(x.Hi); r += rune(x.Stride) {
			all = append(all, r)
		}
	}
	for i := 0; i < len(all); i += len(all)/n + 1 {
		runes = append(runes, all[i])
	}
	return runes
}

// fragments are what the patterns trip over, and what tokens are long of.
var fragments = []string{
	"a", "b", "Z", "ab", "the", " the", "The", "THE", "é", "ß", "ñ", "Ж", "жд", "Σ", "ς", "ǅ", "ǈ", "ʰ", "ʼ", "ª", "漢", "字", "かな", "カ", "한국", "क", "क्षि", "ไทย", "א", "ש", "ع", "ﷺ", "ſ", "K", "İ", "ı",
	"\u0301", "\u0300\u0301", "\u20dd", "\u0903", "\u200d", "\u200b", "\ufeff", "\ufe0f", "\U0001F600", "👨‍👩‍👧", "🇩🇪", "\U00020000", "\U000E0001", "\U0010FFFF",
	"0", "12", "123", "1234567", "٣", "Ⅷ", "½", "²", "〇",
	" ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", " \n", "\n ", "\v", "\f", "\u0085", "\u00a0", "\u2028", "\u3000", "\u1680", "\u180e", "                ",
	".", ",", "!", "?!", "...", "-", "--", "----------------", "_", "/", "//", "/\n", "\n/", "(", ")", "{}", "[]", "\"", "«", "。", "、", "€", "™", "=", "====", "<|endoftext|>", "\x00", "\x7f", "\x1b[0m",
	"'", "''", "’", "'s", "'S", "'t", "'re", "'RE", "'Ve", "'m", "'ll", "'LL", "'lL", "'d", "'D", "'x", "'ſ", "'le", "'rf", "'v", "'l",
	"\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80", "\xf0\x9f\x98", "\x80", "\xc0\x80", "\xf5",
	"http://", "https://www.", "function", "return", "import ", "camelCase", "HTTPServer", "snake_case", "0x1F", "aGVsbG8=", "\\u00e9", "\\n", "&nbsp;",
}

// TestRandomFragments compares random mixtures of the fragments.
func TestRandomFragments(t *testing.T) {
	const texts = 100_000
	r := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	for i := range texts {
		b.Reset()
		for range 1 + r.IntN(8) {
			b.WriteString(fragments[r.IntN(len(fragments))])
		}
		if looksAt(i) && looksAt(i/8) {
			check(t, b.String())
		}
	}
}

// TestRandomBytes compares bytes, and runes, of any kind.
func TestRandomBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 2500 {
		text := make([]byte, r.IntN(60))
		for j := range text {
			text[j] = byte(r.Uint32())
		}
		var b strings.Builder
		limit := []int{0x80, 0x250, 0x3000, 0x10000, 0x110000}[i%5]
		for range r.IntN(30) {
			b.WriteRune(rune(r.IntN(limit)))
		}
		if looksAt(i) {
			check(t, string(text))
			check(t, b.String())
		}
	}
}

// TestLongPieces compares pieces that are merged by the queue.
func TestLongPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	alphabets := []string{"a", "ab", "aA", "abcdefghijklmnopqrstuvwxyz", "etaoin", " ", " \t", "\n", "=", "=-_*#", "漢字中文的是", "かなカナ", "\u0301\u0300", "😀", "\xff", "กขคงไ", "한국어"}
	for i, alphabet := range alphabets {
		runes := []rune(alphabet)
		if alphabet == "\xff" {
			runes = []rune{utf8Bad}
		}
		for _, n := range []int{7, 8, 9, 63, 64, 65, 500, 513, 1500} {
			var b strings.Builder
			for range n {
				b.WriteRune(runes[r.IntN(len(runes))])
			}
			if looksAt(i) {
				check(t, b.String())
			}
		}
	}
	check(t, strings.Repeat("\xff", 300))
	check(t, "")
}

const utf8Bad = 0xFFFD

// TestLongTexts compares hostile texts with a reference that is quick enough for
// them, and that one with tiktoken-go.
func TestLongTexts(t *testing.T) {
	short, long := hostile(400), hostile(30_000)
	for i, name := range slices.Sorted(maps.Keys(long)) {
		if !looksAt(i) {
			continue
		}
		for _, e := range encodings() {
			text := string([]rune(short[name]))
			if got, want := e.countLong(text), len(e.reference.EncodeOrdinary(text)); got != want {
				t.Errorf("%s %s: the reference counts %d, want %d", e.name, name, got, want)
			}
			want := e.countLong(string([]rune(long[name])))
			if got := e.vocabulary.Count([]byte(long[name])); got != want {
				t.Errorf("%s %s: %d tokens, want %d", e.name, name, got, want)
			}
		}
	}
}

// FuzzCount compares any bytes.
func FuzzCount(f *testing.F) {
	for _, s := range fragments {
		f.Add([]byte(s))
	}
	f.Add([]byte("I'LL don't\r\n\r\n  x /\n/ 12345 ÀÉa\u0301B\u0301'S"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) <= 2000 {
			check(t, string(text))
		}
	})
}
