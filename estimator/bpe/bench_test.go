package bpe

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kindsOfText returns some 16 KiB each of what requests are made of, by name.
func kindsOfText(tb testing.TB) []struct{ name, text string } {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "estimator", "texts.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	texts := map[string]*strings.Builder{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		var rec struct{ Kind, Lang, Text string }
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			tb.Fatal(err)
		}
		for _, name := range []string{rec.Kind, rec.Lang} {
			if texts[name] == nil {
				texts[name] = new(strings.Builder)
			}
			if texts[name].Len() < 16<<10 {
				texts[name].WriteString(rec.Text)
			}
		}
	}
	kinds := []struct{ name, text string }{}
	for _, k := range []struct{ name, of string }{
		{"prose", "chat-writing"}, {"code", "code"}, {"Chinese", "zh-Hant"}, {"Russian", "ru"}, {"JSON", "json"}, {"CSV", "csv-numeric"},
	} {
		if texts[k.of] == nil {
			tb.Fatalf("no text of %s", k.of)
		}
		kinds = append(kinds, struct{ name, text string }{k.name, texts[k.of].String()})
	}
	japanese, err := os.ReadFile(filepath.Join("testdata", "japanese.txt"))
	if err != nil {
		tb.Fatal(err)
	}
	return append(kinds, struct{ name, text string }{"Japanese", string(japanese)},
		struct{ name, text string }{"one letter", strings.Repeat("a", 2048)})
}

// BenchmarkRatio counts each kind of text and reports how many times as quick as
// tiktoken-go that is, measured just before.
func BenchmarkRatio(b *testing.B) {
	for _, k := range kindsOfText(b) {
		for _, e := range encodings() {
			b.Run(strings.ReplaceAll(k.name, " ", "_")+"/"+e.name, func(b *testing.B) {
				text := []byte(k.text)
				e.vocabulary.Count(text)
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				start, turns := time.Now(), 0
				for time.Since(start) < 100*time.Millisecond {
					e.reference.EncodeOrdinary(k.text)
					turns++
				}
				theirs := time.Since(start) / time.Duration(turns)
				for b.Loop() {
					e.vocabulary.Count(text)
				}
				ours := b.Elapsed() / time.Duration(b.N)
				b.ReportMetric(float64(theirs)/float64(ours), "x")
			})
		}
	}
}

// BenchmarkLoad loads a vocabulary.
func BenchmarkLoad(b *testing.B) {
	classes()
	b.Run("cl100k_base", func(b *testing.B) {
		for b.Loop() {
			load("cl100k_base.tiktoken", splitCL100K)
		}
	})
	b.Run("o200k_base", func(b *testing.B) {
		for b.Loop() {
			load("o200k_base.tiktoken", splitO200K)
		}
	})
}
