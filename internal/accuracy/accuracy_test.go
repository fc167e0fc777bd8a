package accuracy

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"quotabroker/estimator"
	"quotabroker/estimator/learn"
)

// pair is a chat of one message whose true count is off from ours by a factor.
func pair(model string, i int, input int64) string {
	return fmt.Sprintf(`{"provider":"p","api":"chat.completions","model":%q,"prompt_tokens":%d,"request":{"model":%q,"messages":[{"role":"user","content":"number %d"}]}}`,
		model, input, model, i)
}

func measure(t *testing.T, lines []string, learned *learn.Table) []Row {
	t.Helper()
	pairs, err := Read(strings.NewReader(strings.Join(lines, "\n") + "\n\n"))
	if err != nil {
		t.Fatal(err)
	}
	est, err := estimator.New(estimator.Default())
	if err != nil {
		t.Fatal(err)
	}
	return Measure(est, pairs, learned)
}

func TestRead(t *testing.T) {
	pairs, err := Read(strings.NewReader(`{"provider":"anthropic","api":"messages","model":"claude","prompt_tokens":3,"request":{"messages":[]},` +
		`"usage":{"cache_creation_input_tokens":40,"cache_read_input_tokens":200},"has_tools":true,"unknown":1}`))
	if err != nil || len(pairs) != 1 || pairs[0].Input != 243 || !pairs[0].Tools || pairs[0].Media || string(pairs[0].Request) != `{"messages":[]}` {
		t.Errorf("%+v, %v", pairs, err)
	}
	for input, want := range map[string]string{
		"":                              "there are no pairs",
		"{}":                            "line 1: request is not there",
		"\n\n{\"request\":[]}":          "line 3: request is not there",
		`{"request":{}}`:                "line 1: prompt_tokens is not there",
		pair("m", 1, 5) + "\nx":         "line 2: invalid character",
		pair("m", 1, -5):                "line 1: prompt_tokens is -5",
		`{"model":5,"prompt_tokens":1}`: "line 1: json: cannot unmarshal number",
	} {
		if _, err := Read(strings.NewReader(input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", input, err)
		}
	}
}

func TestMeasure(t *testing.T) {
	// Our own count of each is 10: seven of framing, three of text.
	lines := []string{
		pair("gpt-4o", 1, 10), pair("gpt-4o", 2, 9), pair("gpt-4o", 3, 20), pair("gpt-4o", 4, 5),
		`{"provider":"p","api":"chat.completions","prompt_tokens":1,"request":{"messages":"no"}}`,
	}
	rows := measure(t, lines, nil)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	r := rows[0]
	if r.Pairs != 4 || r.Refused != 1 || r.Within1 != 0.5 || r.P50 != 1.0/9 || r.P90 != 1 || r.Max != 1 || math.Abs(r.Bias+4.0/44) > 1e-9 {
		t.Errorf("%+v", r)
	}
	var out strings.Builder
	if err := Print(&out, rows); err != nil || !strings.Contains(out.String(), "chat.completions   text      4      50 %  11.1 %  100.0 %  100 %  -9.1 %") ||
		!strings.HasSuffix(out.String(), "1 pairs could not be estimated\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// What one half teaches makes the other right; what is measured is never learned from.
func TestMeasureLearned(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, pair("someone's own model", i, 18))
	}
	before := measure(t, lines, nil)
	o := learn.Default()
	learned, err := learn.New(o)
	if err != nil {
		t.Fatal(err)
	}
	after := measure(t, lines, learned)
	if before[0].Pairs != 40 || before[0].P50 < 0.3 || after[0].Pairs != 20 || after[0].P50 > 0.06 {
		t.Errorf("before %+v, after %+v", before[0], after[0])
	}
}
