package mockprovider

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// step is one call of a meter at a literal time, and what must come of it.
type step struct {
	at     time.Duration
	admit  int64 // tokens asked for
	settle *int  // the step whose charge is settled, instead of an admission
	to     int64 // what it settles to

	metric    Metric // of the refusal; "": admitted
	used      int64
	wait      time.Duration
	tooLarge  bool
	change    int64 // by settling
	remaining int64 // tokens, afterwards
	full      time.Duration
	rolling   int64 // tokens that stand charged in the last minute
	peak      int64
}

func of(step int) *int { return &step }

func TestMeter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits Limits
		steps  []step
	}{
		{"a bucket is full at first and refills evenly", Limits{TokensPerMinute: 60_000}, []step{
			{at: 0, admit: 60_000, remaining: 0, full: time.Minute, rolling: 60_000, peak: 60_000},
			{at: 0, admit: 1, metric: Tokens, used: 60_000, wait: 1 * ms, full: time.Minute, rolling: 60_000, peak: 60_000},
			{at: 999 * ms, admit: 1000, metric: Tokens, used: 59_001, wait: 1 * ms, remaining: 999, full: 59_001 * ms, rolling: 60_000, peak: 60_000},
			{at: 1000 * ms, admit: 1000, full: time.Minute, rolling: 61_000, peak: 61_000},
			{at: 61 * time.Second, admit: 1, remaining: 59_999, full: 1 * ms, rolling: 1, peak: 61_000},
			{at: 600 * time.Second, admit: 0, remaining: 60_000, peak: 61_000},
		}},
		{"up to twice the limit passes in a minute", Limits{TokensPerMinute: 600}, []step{
			{at: 0, admit: 600, full: time.Minute, rolling: 600, peak: 600},
			{at: 59_900 * ms, admit: 599, full: time.Minute, rolling: 1199, peak: 1199},
			{at: 60_000 * ms, admit: 1, full: time.Minute, rolling: 600, peak: 1199},
		}},
		{"too large is refused for good, even by an idle account", Limits{TokensPerMinute: 1000}, []step{
			{at: 0, admit: 1001, metric: Tokens, tooLarge: true, remaining: 1000},
			{at: 0, admit: 1000, full: time.Minute, rolling: 1000, peak: 1000},
		}},
		{"requests are a limit of their own", Limits{RequestsPerMinute: 3}, []step{
			{at: 0, admit: 5, rolling: 5, peak: 5},
			{at: 0, admit: 5, rolling: 10, peak: 10},
			{at: 0, admit: 5, rolling: 15, peak: 15},
			{at: 0, admit: 5, metric: Requests, used: 3, wait: 20 * time.Second, rolling: 15, peak: 15},
			{at: 20 * time.Second, admit: 5, rolling: 20, peak: 20},
		}},
		{"the longer wait is named", Limits{TokensPerMinute: 600, RequestsPerMinute: 1}, []step{
			{at: 0, admit: 100, remaining: 500, full: 10 * time.Second, rolling: 100, peak: 100},
			{at: 0, admit: 600, metric: Requests, used: 1, wait: time.Minute, remaining: 500, full: 10 * time.Second, rolling: 100, peak: 100},
		}},
		{"nothing is charged to one limit when the other refuses", Limits{TokensPerMinute: 600, RequestsPerMinute: 2}, []step{
			{at: 0, admit: 600, full: time.Minute, rolling: 600, peak: 600},
			{at: 0, admit: 60, metric: Tokens, used: 600, wait: 6 * time.Second, full: time.Minute, rolling: 600, peak: 600},
			{at: 6 * time.Second, admit: 60, full: time.Minute, rolling: 660, peak: 660},
			{at: 6 * time.Second, admit: 60, metric: Requests, used: 2, wait: 30 * time.Second, full: time.Minute, rolling: 660, peak: 660},
		}},
		{"settling gives back, and the peak stands", Limits{TokensPerMinute: 600}, []step{
			{at: 0, admit: 600, full: time.Minute, rolling: 600, peak: 600},
			{at: 1000 * ms, settle: of(0), to: 100, change: -500, remaining: 510, full: 9 * time.Second, rolling: 100, peak: 600},
			{at: 1000 * ms, admit: 510, full: time.Minute, rolling: 610, peak: 610},
		}},
		{"settling above the charge makes a debt", Limits{TokensPerMinute: 600}, []step{
			{at: 0, admit: 500, remaining: 100, full: 50 * time.Second, rolling: 500, peak: 500},
			{at: 0, settle: of(0), to: 700, change: 200, full: 70 * time.Second, rolling: 700, peak: 700},
			{at: 0, admit: 1, metric: Tokens, used: 700, wait: 10_100 * ms, full: 70 * time.Second, rolling: 700, peak: 700},
			{at: 10_100 * ms, admit: 1, full: time.Minute, rolling: 701, peak: 701},
		}},
		{"after a minute there is nothing left to give back", Limits{TokensPerMinute: 600}, []step{
			{at: 0, admit: 600, full: time.Minute, rolling: 600, peak: 600},
			{at: 59_999 * ms, admit: 590, remaining: 9, full: 59_001 * ms, rolling: 1190, peak: 1190},
			{at: 60_000 * ms, settle: of(0), to: 100, remaining: 10, full: 59 * time.Second, rolling: 590, peak: 1190},
		}},
		{"time does not go back", Limits{TokensPerMinute: 600}, []step{
			{at: time.Minute, admit: 600, full: time.Minute, rolling: 600, peak: 600},
			{at: 0, admit: 1, metric: Tokens, used: 600, wait: 100 * ms, full: time.Minute, rolling: 600, peak: 600},
			{at: 60_100 * ms, admit: 1, full: time.Minute, rolling: 601, peak: 601},
		}},
		{"without limits all is admitted and still added up", Limits{}, []step{
			{at: 0, admit: maxAmount, rolling: maxAmount, peak: maxAmount},
			{at: 0, admit: maxAmount + 1, rolling: 2 * maxAmount, peak: 2 * maxAmount},
			{at: 0, admit: -5, rolling: 2 * maxAmount, peak: 2 * maxAmount},
		}},
		{"the largest limit does not overflow", Limits{TokensPerMinute: maxLimitPerMinute, RequestsPerMinute: maxLimitPerMinute}, []step{
			{at: 0, admit: maxAmount, remaining: 9_000_000_000, full: 6 * time.Second, rolling: maxAmount, peak: maxAmount},
			{at: 1e6 * time.Hour, admit: maxAmount, remaining: 9_000_000_000, full: 6 * time.Second, rolling: maxAmount, peak: maxAmount},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { runSteps(t, tt.limits, tt.steps) })
	}
}

func runSteps(t *testing.T, limits Limits, steps []step) {
	m := NewMeter(limits)
	charges := make([]Charge, len(steps))
	for i, want := range steps {
		got := step{at: want.at, admit: want.admit, settle: want.settle, to: want.to}
		if want.settle != nil {
			got.change = m.Settle(want.at, charges[*want.settle], want.to)
		} else {
			var r *Refusal
			if charges[i], r = m.Admit(want.at, want.admit); r != nil {
				got.metric, got.wait, got.tooLarge = r.Metric, r.Wait, r.TooLarge()
				got.used = r.Used
			}
		}
		tokens, _ := m.Levels(want.at)
		got.remaining, got.full = tokens.Remaining, tokens.Full
		var peak Peak
		got.rolling, _, peak = m.Rolling(want.at)
		got.peak = peak.Tokens
		if got != want {
			t.Errorf("step %d\n got %+v\nwant %+v", i, got, want)
		}
	}
}

func TestCountRefused(t *testing.T) {
	m := NewMeter(Limits{TokensPerMinute: 600, RequestsPerMinute: 6})
	m.Admit(0, 600)
	for range 10 {
		m.CountRefused(0)
	}
	if _, requests := m.Levels(0); requests.Remaining != 0 || requests.Full != time.Minute {
		t.Errorf("requests after ten refusals: %+v; they must use up what there is and no more", requests)
	}
}

func TestSetLimits(t *testing.T) {
	m := NewMeter(Limits{TokensPerMinute: 1000})
	m.Admit(0, 900)
	m.SetLimits(0, Limits{TokensPerMinute: 600})
	if tokens, _ := m.Levels(0); tokens != (Level{600, 0, 90 * time.Second}) {
		t.Errorf("after the cut: %+v", tokens)
	}
	if _, r := m.Admit(29_999*ms, 1); r == nil || r.Used != 601 || r.Wait != 200*ms {
		t.Errorf("before the debt is refilled: %+v", r)
	}
	if _, r := m.Admit(30_100*ms, 1); r != nil {
		t.Errorf("after it: %+v", r)
	}
	m.SetLimits(30_100*ms, Limits{})
	if _, r := m.Admit(30_100*ms, 5000); r != nil {
		t.Errorf("without a limit: %+v", r)
	}
}

func TestLimitsValidate(t *testing.T) {
	for _, l := range []Limits{{TokensPerMinute: -1}, {RequestsPerMinute: maxLimitPerMinute + 1}} {
		if l.Validate() == nil {
			t.Errorf("%+v is taken as valid", l)
		}
	}
}
