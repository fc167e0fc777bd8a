package demodata_test

import (
	"strings"
	"testing"

	"quotabroker/internal/demodata"
)

func TestPrompts(t *testing.T) {
	for _, tt := range []struct {
		name         string
		read         func() ([]demodata.Prompt, error)
		count        int
		input        int64 // sums
		output       int64
		firstID      string
		firstContain string
	}{
		{"HumanEval", demodata.HumanEval, 164, 21538, 8849, "HumanEval/0", "has_close_elements"},
		{"GSM8K", demodata.GSM8K, 600, 34523, 60495, "gsm8k-test-0", "Janet’s ducks"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prompts, err := tt.read()
			if err != nil {
				t.Fatal(err)
			}
			var input, output int64
			ids := map[string]bool{}
			for _, p := range prompts {
				input += p.InputTokens
				output += p.ReferenceOutputTokens
				ids[p.ID] = true
			}
			if len(prompts) != tt.count || len(ids) != tt.count || input != tt.input || output != tt.output {
				t.Errorf("%d prompts, %d ids, %d input and %d output tokens; want %d, %d, %d, %d",
					len(prompts), len(ids), input, output, tt.count, tt.count, tt.input, tt.output)
			}
			if p := prompts[0]; p.ID != tt.firstID || !strings.Contains(p.Text, tt.firstContain) {
				t.Errorf("the first is %s: %q", p.ID, p.Text)
			}
		})
	}
}

func TestArrivals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		read   func() ([]demodata.Arrival, error)
		count  int
		lastMS int64
		tokens int64
	}{
		{"AzureConversation", demodata.AzureConversation, 19366, 3501721, 26450535},
		{"AzureCode", demodata.AzureCode, 8819, 3435948, 18305870},
		{"CodingAgents", demodata.CodingAgents, 631, 3004021, 23588923},
	} {
		t.Run(tt.name, func(t *testing.T) {
			arrivals, err := tt.read()
			if err != nil {
				t.Fatal(err)
			}
			var tokens int64
			for _, a := range arrivals {
				tokens += a.InputTokens + a.OutputTokens
			}
			last := arrivals[len(arrivals)-1].ArrivalMS
			if len(arrivals) != tt.count || last != tt.lastMS || tokens != tt.tokens {
				t.Errorf("%d arrivals in %d ms, %d tokens; want %d, %d, %d", len(arrivals), last, tokens, tt.count, tt.lastMS, tt.tokens)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	prompts := func(s string) error { _, err := demodata.ParsePrompts("p.jsonl", strings.NewReader(s)); return err }
	arrivals := func(s string) error { _, err := demodata.ParseArrivals("t.csv", strings.NewReader(s)); return err }
	const good = `{"id":"a","text":"b","input_tokens":1,"reference_output_tokens":1}` + "\n"
	const head = "arrival_ms,input_tokens,output_tokens,extra\n"
	for _, tt := range []struct {
		name  string
		parse func(string) error
		text  string
		want  string // "": no error
	}{
		{"prompts", prompts, good + good, ""},
		{"no prompts", prompts, "", ""},
		{"unknown field", prompts, good + `{"id":"a","texts":"b"}`, `demodata: p.jsonl:2: json: unknown field "texts"`},
		{"not JSON", prompts, "id", "demodata: p.jsonl:1: invalid character 'i' looking for beginning of value"},
		{"no text", prompts, `{"id":"a"}`, "demodata: p.jsonl:1: id and text must not be empty"},
		{"no count", prompts, `{"id":"a","text":"b"}`, "demodata: p.jsonl:1: a has input_tokens 0 and reference_output_tokens 0; both must be at least 1"},

		{"arrivals", arrivals, head + "0,1,2,x\n0,3,4,\n", ""},
		{"header only", arrivals, head, ""},
		{"nothing", arrivals, "", "demodata: t.csv: no header: EOF"},
		{"other header", arrivals, "a,b\n", `demodata: t.csv:1: the header is ["a" "b"]; it must begin with ["arrival_ms" "input_tokens" "output_tokens"]`},
		{"not a number", arrivals, head + "0,1,2,x\n1,1.5,2,x\n", `demodata: t.csv:3: input_tokens is "1.5"; it must be a whole number, 0 or more`},
		{"negative", arrivals, head + "-1,1,2,x\n", `demodata: t.csv:2: arrival_ms is "-1"; it must be a whole number, 0 or more`},
		{"out of order", arrivals, head + "5,1,2,x\n4,1,2,x\n", "demodata: t.csv:3: arrival_ms is 4, before the 5 above it"},
		{"short row", arrivals, head + "5,1\n", "demodata: t.csv: record on line 2: wrong number of fields"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := tt.parse(tt.text); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("error %q, want %q", got, tt.want)
			}
		})
	}
}
