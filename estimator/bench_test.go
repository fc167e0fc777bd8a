package estimator

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// BenchmarkCount counts 16 KiB in full, by kind of text.
func BenchmarkCount(b *testing.B) {
	est := newEstimator(b, nil)
	Warm()
	kinds := map[string]*strings.Builder{}
	for _, x := range loadTexts(b) {
		kind := x.Kind
		if kind == "prose-legal" {
			kind = x.Lang
		}
		if kinds[kind] == nil {
			kinds[kind] = new(strings.Builder)
		}
		kinds[kind].WriteString(x.Text)
	}
	for _, kind := range []string{"chat-writing", "markdown", "code", "json", "csv-numeric", "ru", "zh-Hant", "th"} {
		text := kinds[kind].String()
		text = text[:runeStart([]byte(text), min(16<<10, len(text)))]
		for e := CL100K; e < numEncodings; e++ {
			b.Run(kind+"/"+e.String(), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					est.Count(e, text)
				}
			})
		}
	}
}

// BenchmarkMegabyte answers for 1 MiB of what a tokenizer takes longest for, and
// of prose: the bound is 50 ms.
func BenchmarkMegabyte(b *testing.B) {
	est := newEstimator(b, nil)
	Warm()
	texts := hostile(1 << 20)
	texts["prose"] = strings.Repeat("The quick brown fox jumps over the lazy dog, and nobody minds. ", 1<<20/63)
	for name, text := range texts {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				est.Count(O200K, text)
			}
		})
	}
}

// BenchmarkLetters is how time grows from 256 KiB to 1 MiB of one letter.
func BenchmarkLetters(b *testing.B) {
	est := newEstimator(b, nil)
	Warm()
	for name, n := range map[string]int{"256KiB": 256 << 10, "1MiB": 1 << 20} {
		text := strings.Repeat("a", n)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				est.Count(CL100K, text)
			}
		})
	}
}

// many repeats an element up to 1 MiB, without the last comma.
func many(element string) string {
	return strings.TrimSuffix(strings.Repeat(element, 1<<20/len(element)), ",")
}

// BenchmarkEstimate answers for whole bodies.
func BenchmarkEstimate(b *testing.B) {
	est := newEstimator(b, nil)
	Warm()
	text, _ := json.Marshal(strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 30))
	picture := base64.StdEncoding.EncodeToString(make([]byte, 1_875_000))
	for name, body := range map[string]string{
		"parts_1MB":     `{"messages":[{"content":[` + many(`{},`) + `]}]}`,
		"unknown_1MB":   `{"messages":[{"content":[` + many(`{"":0},`) + `]}]}`,
		"texts_1MB":     `{"messages":[{"content":[` + many(`{"text":"a"},`) + `]}]}`,
		"strings_1MB":   `{"input":[` + many(`"a",`) + `]}`,
		"tools_1MB":     `{"messages":[],"tools":[` + many(`{},`) + `]}`,
		"members_1MB":   `{"messages":[],` + many(`"":0,`) + `}`,
		"names_1MB":     `{"messages":[],` + many(`"n":1,`) + `}`,
		"message_1MB":   `{"messages":[{` + many(`"":0,`) + `}]}`,
		"unread_1MB":    `{"messages":[],"x":[` + many(`0,`) + `]}`,
		"unread2_1MB":   `{"messages":[],"x":[` + many(`[],`) + `]}`,
		"unread3_1MB":   `{"messages":[],"x":[` + many(`{"":0},`) + `]}`,
		"items_1MB":     `{"instructions":"","input":[` + many(`{},`) + `]}`,
		"calls_1MB":     `{"messages":[{"tool_calls":[` + many(`{},`) + `]}]}`,
		"nested_1MB":    `{"messages":[{"content":[` + many(`{"type":"tool_result","content":[]},`) + `]}]}`,
		"escapes_1MB":   `{"messages":[],"tools":["` + strings.Repeat(`\\n`, 1<<20/4) + `"]}`,
		"chat_300B":     `{"model":"gpt-4o","messages":[{"role":"user","content":"` + strings.Repeat("Tell me about the sea. ", 10) + `"}]}`,
		"chat_2turns":   `{"model":"gpt-4o","messages":[{"role":"system","content":` + string(text) + `},{"role":"user","content":` + string(text) + `}]}`,
		"picture_2.5MB": `{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + picture + `"}}]}]}`,
		"messages_1MB":  `{"model":"gpt-4o","messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"a b"},`, 1<<20/32), ",") + `]}`,
		"tokens_1MB":    `{"model":"text-embedding-3-small","input":[` + strings.TrimSuffix(strings.Repeat(`1,`, 1<<19), ",") + `]}`,
		"braces_1MB":    `{"model":"gpt-4o","messages":[` + strings.TrimSuffix(strings.Repeat(`{},`, 1<<20/3), ",") + `]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := est.Estimate(Input{Body: json.RawMessage(body)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
