package bpe

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// hostile returns texts of n bytes or a few more, the same at every call, that
// tokenizers take long for.
func hostile(n int) map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	build := func(next func() string) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(next())
		}
		return b.String()
	}
	from := func(alphabet string) string {
		runes := []rune(alphabet)
		return build(func() string { return string(runes[r.IntN(len(runes))]) })
	}
	span := func(first, last rune) string {
		return build(func() string { return string(first + rune(r.IntN(int(last-first)+1))) })
	}
	small, capitals := "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return map[string]string{
		"a letter":       strings.Repeat("a", n),
		"blanks":         strings.Repeat(" ", n),
		"newlines":       strings.Repeat("\n", n),
		"spaces":         from(" \t\n\r\v\f\u00a0"),
		"random letters": from(small),
		"mixed letters":  from(small + capitals),
		"base64":         base64.StdEncoding.EncodeToString(raw)[:n],
		"hex":            hex.EncodeToString(raw)[:n],
		"punctuation":    from("!@#$%^&*()_+-=[]{};':,./<>?|~`"),
		"emoji":          span(0x1F300, 0x1F5FF),
		"marks":          span(0x300, 0x36F),
		"letter, mark":   build(func() string { return string([]rune{'a' + rune(r.IntN(26)), 0x300 + rune(r.IntN(0x70))}) }),
		"random bytes":   string(raw),
		"bad bytes":      strings.Repeat("\xff", n),
		"Han":            span(0x4E00, 0x9FFF),
		"Hangul":         span(0xAC00, 0xD7A3),
		"Cyrillic":       span(0x410, 0x44F),
		"any rune":       build(func() string { return string(rune(r.IntN(0x110000))) }),
		"camel":          strings.Repeat("aB", n/2),
		"mark, capitals": build(func() string { return "\u0301" + strings.Repeat("A", r.IntN(9)) }),
		"contractions":   strings.Repeat("it's ", n/5),
		"JSON":           build(func() string { return `{"a":` + string(rune('0'+r.IntN(10))) + `,"b":[]},` }),
	}
}

// BenchmarkHostile counts 1 MiB of each hostile text whole, and reports how long
// a unit of work takes.
func BenchmarkHostile(b *testing.B) {
	texts := hostile(1 << 20)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			text := []byte(texts[name])
			b.SetBytes(int64(len(text)))
			work := 0
			for b.Loop() {
				_, _, work = O200K().CountWithin(text, 1<<62)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(work), "ns/work")
		})
	}
}
