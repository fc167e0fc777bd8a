package mockprovider

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotabroker/internal/testlines"
)

const recordings = "../../testdata/headers/"

// TestRecordedRefusals makes the meter refuse what a recorded body says was refused,
// and expects that body, byte for byte of its sentence.
func TestRecordedRefusals(t *testing.T) {
	type recorded struct {
		Body *struct {
			Error struct{ Message, Type, Code string }
		}
		Source string
		Parsed struct {
			Limit, Used, Requested int64
			TryAgainMS             int64 `json:"try_again_ms"`
		}
	}
	compared := 0
	for _, r := range testlines.Read[recorded](t, recordings+"errors_429.jsonl") {
		if r.Body == nil {
			continue
		}
		compared++
		s := newTestServer(t, Options{Organization: "org-REDACTED"})
		m := NewMeter(Limits{TokensPerMinute: r.Parsed.Limit})
		m.Admit(0, r.Parsed.Used)
		_, refusal := m.Admit(0, r.Parsed.Requested)
		if refusal == nil {
			t.Fatalf("%s: admitted", r.Source)
		}
		message := r.Body.Error.Message
		_, rest, _ := strings.Cut(message, " for ")
		model, _, _ := strings.Cut(rest, " in organization ")
		w := httptest.NewRecorder()
		s.setRetryHeaders(w.Header(), refusal)
		s.rateError(model, refusal).write(w)

		var got struct {
			Error struct {
				Message, Type, Code string
				Param               any
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		e := got.Error
		if w.Code != 429 || e.Message != message || e.Type != r.Body.Error.Type || e.Code != r.Body.Error.Code || e.Param != nil {
			t.Errorf("%s\n got %d %+v\nwant %s", r.Source, w.Code, e, message)
		}
		wantMS := ""
		if r.Parsed.TryAgainMS > 0 {
			wantMS = strconv.FormatInt(r.Parsed.TryAgainMS, 10)
		}
		if got := w.Header().Get("Retry-After-Ms"); got != wantMS {
			t.Errorf("%s: retry-after-ms %q, want %q", r.Source, got, wantMS)
		}
	}
	if compared != 5 {
		t.Errorf("compared %d bodies, want 5", compared)
	}
}

// TestRecordedFractions are refusals whose wait is not a whole millisecond, quoted in
// the issues vercel/ai#2637, qx-labs/agents-deep-research#1 and ragas#624.
func TestRecordedFractions(t *testing.T) {
	s := newTestServer(t, Options{})
	for _, tt := range []struct {
		limit, used, requested int64
		sentence, ms, seconds  string
	}{
		{200_000, 199_821, 2295, "Please try again in 634ms.", "635", "1"},
		{200_000, 193_762, 7653, "Please try again in 424ms.", "425", "1"},
		{60_000, 59_857, 770, "Please try again in 627ms.", "627", "1"},
		{10_000, 8554, 3082, "Please try again in 9.816s.", "9816", "10"},
		{150_000_000, 150_000_000, 1, "Please try again in 1ms.", "1", "1"},
		{1, 1, 1, "Please try again in 1m0s.", "60000", "60"},
	} {
		r := &Refusal{
			Metric: Tokens, LimitPerMinute: tt.limit, Used: tt.used, Requested: tt.requested,
			Wait: refillTime(tt.used+tt.requested-tt.limit, tt.limit),
		}
		w := httptest.NewRecorder()
		s.setRetryHeaders(w.Header(), r)
		message := s.rateError("gpt-4", r).message
		ms, seconds := w.Header().Get("Retry-After-Ms"), w.Header().Get("Retry-After")
		if !strings.Contains(message, tt.sentence) || ms != tt.ms || seconds != tt.seconds {
			t.Errorf("%+v: %q, %s ms, %s s", tt, message, ms, seconds)
		}
	}
}

// TestRecordedResets: a recorded reset is the time until the bucket is full, cut to
// the millisecond. Remaining is rounded down, so that what is used lies within one
// of limit − remaining. Limits per day are told by their resets and left out.
func TestRecordedResets(t *testing.T) {
	type recorded struct {
		Path, Model string
		Headers     map[string]string
	}
	compared := 0
	for _, r := range testlines.Read[recorded](t, recordings+"openai.jsonl") {
		for _, metric := range []Metric{Tokens, Requests} {
			limit, err := strconv.ParseInt(r.Headers["x-ratelimit-limit-"+string(metric)], 10, 64)
			if err != nil {
				continue
			}
			remaining, err := strconv.ParseInt(r.Headers["x-ratelimit-remaining-"+string(metric)], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			reset, err := time.ParseDuration(r.Headers["x-ratelimit-reset-"+string(metric)])
			if err != nil {
				t.Fatal(err)
			}
			if reset > 2*time.Second {
				continue
			}
			compared++
			most := refillTime(limit-remaining, limit).Truncate(time.Millisecond)
			least := refillTime(max(limit-remaining-1, 0), limit).Truncate(time.Millisecond)
			if reset < least || reset > most {
				t.Errorf("%s %s: %s %d of %d: reset %v, by the formula %v to %v", r.Path, r.Model, metric, remaining, limit, reset, least, most)
			}
			if formatDuration(reset) != r.Headers["x-ratelimit-reset-"+string(metric)] {
				t.Errorf("%v is written %q, not %q", reset, formatDuration(reset), r.Headers["x-ratelimit-reset-"+string(metric)])
			}
		}
	}
	if compared < 60 {
		t.Errorf("compared %d resets only", compared)
	}
}

// TestRecordedCharges compares the profiles with what was really charged, and holds
// the numbers that the table of profiles states.
func TestRecordedCharges(t *testing.T) {
	data, err := os.ReadFile(recordings + "admission_openai.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	apis := map[string]API{"chat.completions": Chat, "embeddings": Embeddings, "responses": Responses}
	type tally struct{ exact, within1, all int }
	got := map[string]tally{}
	for _, row := range rows[1:] {
		api, date := apis[row[0]], row[2]
		n := func(i int) int64 { v, _ := strconv.ParseInt(row[i], 10, 64); return v }
		name := "openai"
		switch {
		case api == Chat && date < "2025-01-01":
			name = "openai-sum"
		case api == Chat && date < "2025-07-01":
			continue
		}
		p, err := ProfileNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		charged := p.Admission(Ask{API: api, TextChars: n(5), Messages: n(6), MaxOutputTokens: n(7), InputTokens: n(8), ModelMaxTokens: 16384})
		c := got[name+" "+string(api)]
		c.all++
		switch diff := charged - n(4); {
		case diff == 0:
			c.exact++
		case -1 <= diff && diff <= 1:
			c.within1++
		}
		got[name+" "+string(api)] = c
	}
	for name, want := range map[string]tally{
		"openai chat":       {46, 11, 61},
		"openai-sum chat":   {38, 11, 57},
		"openai embeddings": {38, 26, 69},
	} {
		if got[name] != want {
			t.Errorf("%s: exact, within 1, all %v; want %v", name, got[name], want)
		}
	}
	if r := got["openai responses"]; r.exact+r.within1 < 13 {
		t.Errorf("responses: %+v", r)
	}
}
