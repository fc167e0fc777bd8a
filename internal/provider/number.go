package provider

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"quotabroker/wire"
)

// amount reads a limit or what remains of it: a whole number, with thousands
// commas or a fraction (which is cut off, so that a limit is never overstated).
// Absent are: negative values, as -1 means unknown at Azure (openai-dotnet#838);
// what is over [wire.MaxLimitAmount], as the Hugging Face router reports an
// unlimited remainder by a figure just short of 2^63; and what is no number.
func amount(text string) wire.OptInt {
	n, ok := number(text)
	if !ok || n > wire.MaxLimitAmount {
		return wire.OptInt{}
	}
	return wire.Int(int64(n))
}

// number reads a finite number of at least 0.
func number(text string) (float64, bool) {
	digits, ok := ungroup(strings.TrimSpace(text))
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n >= 0) || math.IsInf(n, 0) { // NaN is not ≥ 0
		return 0, false
	}
	return n, true
}

// ungroup takes out thousands commas, "30,000" as a Go client of OpenAI was seen
// to receive it. Two numbers in one value are not one large number.
func ungroup(text string) (string, bool) {
	first, rest, grouped := strings.Cut(text, ",")
	if !grouped {
		return text, true
	}
	whole, fraction, _ := strings.Cut(rest, ".")
	groups := strings.Split(whole, ",")
	for _, g := range groups {
		if len(g) != 3 {
			return "", false
		}
	}
	return first + strings.Join(groups, "") + "." + fraction, true
}

// clock is the time that the absolute times in h are to be compared with: the
// provider's own, if it says it. Its clock is not ours.
func clock(now time.Time, h http.Header) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now
}

// span is n units in whole milliseconds, rounded up: a wait that is cut short ends
// in another refusal. It is at most [wire.MaxDurationMS].
func span(n float64, unit time.Duration) wire.OptInt {
	if n >= float64(wire.MaxDurationMS*time.Millisecond)/float64(unit) {
		return wire.Int(wire.MaxDurationMS)
	}
	// Rounded to the nanosecond first, so that 0.634 s is 634 ms and not 635.
	return milliseconds(time.Duration(math.Round(n * float64(unit))))
}

// milliseconds is d in whole milliseconds, rounded up, from 0 to
// [wire.MaxDurationMS].
func milliseconds(d time.Duration) wire.OptInt {
	d = min(max(d, 0), wire.MaxDurationMS*time.Millisecond)
	return wire.Int((d + time.Millisecond - 1).Milliseconds())
}

// until reads when a limit is free again, in milliseconds from now; 0 if that is
// past. The forms, in the order in which they are told apart: a Go duration
// ("6m0s", OpenAI and Groq doc), an RFC 3339 time (Anthropic doc), and a bare
// number, which from 1e12 on is a time in epoch milliseconds (OpenRouter), from
// 1e9 on in epoch seconds, and below that a number of seconds.
func until(now time.Time, text string) wire.OptInt {
	text = strings.TrimSpace(text)
	if n, ok := number(text); ok {
		return untilNumber(now, n)
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return milliseconds(d)
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return milliseconds(t.Sub(now))
	}
	return wire.OptInt{}
}

func untilNumber(now time.Time, n float64) wire.OptInt {
	const farthest = 1e15 // in epoch milliseconds the year 33658; no time at all
	switch {
	case n >= farthest:
		return wire.OptInt{}
	case n >= 1e12:
		return milliseconds(time.UnixMilli(int64(n)).Sub(now))
	case n >= 1e9:
		return milliseconds(time.UnixMilli(int64(n * 1000)).Sub(now))
	}
	return span(n, time.Second)
}

// later is the longer of two waits, either of which may be absent.
func later(a, b wire.OptInt) wire.OptInt {
	if !a.Set || b.Set && b.Value > a.Value {
		return b
	}
	return a
}
