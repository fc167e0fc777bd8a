package estimator

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostileBytes is the size of the texts whose true counts are in hostile.json.
const hostileBytes = 65_536

// trueCounts returns name → encoding → tokens of hostile(hostileBytes). They were made
// with tiktoken-go; bpe, which rewrites them, is held to it by tests of its own.
func trueCounts(tb testing.TB) (truth map[string]map[string]int64) {
	tb.Helper()
	file := filepath.Join("..", "testdata", "estimator", "hostile.json")
	if *update {
		truth = map[string]map[string]int64{}
		for name := range hostile(1) {
			truth[name] = map[string]int64{}
		}
		for e := CL100K; e < numEncodings; e++ {
			for name, text := range hostile(hostileBytes) {
				truth[name][e.String()] = int64(vocabularies[e]().bpe.Count([]byte(text)))
			}
		}
		data, err := json.MarshalIndent(truth, "", "  ")
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
			tb.Fatal(err)
		}
		return truth
	}
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(data, &truth); err != nil {
		tb.Fatal(err)
	}
	return truth
}

// hostile returns texts of n bytes (or a few more) that cheat an estimate, or
// that a tokenizer takes very long for. They are the same at every call.
func hostile(n int) map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	from := func(alphabet string) string {
		runes := []rune(alphabet)
		return build(n, func(b *strings.Builder) { b.WriteRune(runes[r.IntN(len(runes))]) })
	}
	span := func(first, last rune) string {
		return build(n, func(b *strings.Builder) { b.WriteRune(first + rune(r.IntN(int(last-first)+1))) })
	}
	words := strings.Fields("the quick brown fox jumps over lazy dog quota broker token window lease grant defer refuse class share floor")
	lower, upper := "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return map[string]string{
		"letter a":        strings.Repeat("a", n),
		"blanks":          strings.Repeat(" ", n),
		"equals":          strings.Repeat("=", n),
		"newlines":        strings.Repeat("\n", n),
		"space and tab":   strings.Repeat(" \t", n/2),
		"random spaces":   from(" \t\n\r\v\f"),
		"random letters":  from(lower),
		"mixed letters":   from(lower + upper),
		"glued words":     build(n, func(b *strings.Builder) { b.WriteString(words[r.IntN(len(words))]) }),
		"punctuation":     from("!@#$%^&*()_+-=[]{};':,./<>?|~`"),
		"printable":       from(lower + upper + "0123456789 !@#$%^&*()_+-=[]{};':,./<>?|~`"),
		"base64":          base64.StdEncoding.EncodeToString(raw)[:n],
		"hex":             hex.EncodeToString(raw)[:n],
		"digits":          from("0123456789"),
		"digit and space": build(n, func(b *strings.Builder) { b.WriteByte(byte('0' + r.IntN(10))); b.WriteByte(' ') }),
		"emoji":           span(0x1F300, 0x1F5FF),
		"one emoji":       build(n, func(b *strings.Builder) { b.WriteRune(0x1F600) }),
		"marks":           span(0x300, 0x36F),
		"zalgo":           build(n, func(b *strings.Builder) { b.WriteRune(rune('a' + r.IntN(26))); b.WriteRune(0x300 + rune(r.IntN(0x70))) }),
		"zero width":      build(n, func(b *strings.Builder) { b.WriteRune(0x200B) }),
		"invalid":         string(raw),
		"bad bytes":       strings.Repeat("\xff", n),
		"half runes":      strings.Repeat("\x80", n),
		"control":         strings.Repeat("\x7f", n),
		"special tokens":  build(n, func(b *strings.Builder) { b.WriteString("<|endoftext|>") }),
		"Han":             span(0x4E00, 0x9FFF),
		"Hangul":          span(0xAC00, 0xD7A3),
		"Cyrillic":        span(0x410, 0x44F),
		"Arabic":          span(0x620, 0x64A),
		"Ethiopic":        span(0x1200, 0x1248),
		"rare plane":      span(0x20000, 0x2A6DF),
		"many scripts":    build(n, func(b *strings.Builder) { b.WriteRune(rune(r.IntN(0xD000))) }),
		"camel":           strings.Repeat("aB", n/2),
		"contractions":    strings.Repeat("it's ", n/5),
	}
}

func build(n int, add func(*strings.Builder)) string {
	var b strings.Builder
	b.Grow(n + utf8.UTFMax)
	for b.Len() < n {
		add(&b)
	}
	return b.String()
}
