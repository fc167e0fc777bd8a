package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"quotabroker/classes"
)

// The parsers below return, as their error, the second half of a sentence: what
// would be right. Each formatter writes what its parser reads back.

var (
	decimal  = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	quantity = regexp.MustCompile(`^([0-9]+)(?:\.([0-9]+))?([A-Za-z]*)$`)
)

// parseDuration reads a number with a unit: 500ms, 1.5s, 2m, 24h, 1h30m.
func parseDuration(text string) (time.Duration, error) {
	if decimal.MatchString(text) {
		return 0, fmt.Errorf("a duration needs a unit, like %ss", clip(text))
	}
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, errDuration
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errDuration
	}
	return d, nil
}

var errDuration = errors.New("a duration is a number and a unit, like 500ms, 1.5s, 2m or 24h")

// formatDuration writes a duration without the parts that are zero: 2m, not 2m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// parsePortion reads a percentage: 70%, 0.2%. It is exact to a ten-thousandth of
// a per cent and refuses what is finer.
func parsePortion(text string) (classes.Portion, error) {
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, noPercent(text)
	}
	if !decimal.MatchString(number) {
		return 0, errors.New("a percentage is a number with its sign, like 70% or 0.2%")
	}
	whole, fraction, _ := strings.Cut(number, ".")
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > 4 {
		return 0, errors.New("a percentage has at most four decimals")
	}
	if len(whole) > 9 {
		return 0, errors.New("a percentage is at most 100%")
	}
	ppm, err := strconv.ParseInt(whole+fraction+"0000"[len(fraction):], 10, 64)
	return classes.Portion(ppm), err
}

// parseQuantile reads a percentage for which whole per cents are fine enough.
func parseQuantile(text string) (classes.Portion, error) {
	p, err := parsePortion(text)
	if err == nil && (p < classes.Percent || p > classes.Whole || p%classes.Percent != 0) {
		err = errors.New("it must be a whole percentage from 1% to 100%")
	}
	return p, err
}

// noPercent says what a number without its sign should have been.
func noPercent(text string) error {
	if !decimal.MatchString(text) {
		return errors.New("a percentage is a number with its sign, like 70% or 0.2%")
	}
	p, err := parsePortion(text + "%")
	if err == nil && p <= classes.Percent && strings.Contains(text, ".") {
		return fmt.Errorf("a percentage needs its sign: %s if a fraction was meant, else %s", p*100, p)
	}
	return fmt.Errorf("a percentage needs its sign, like %s%%", clip(text))
}

// bounds are the two ends of a reserve.
type bounds struct{ low, high classes.Portion }

// parseBounds reads a range that learns, 1%..10%, or a fixed value, 5%.
func parseBounds(text string) (bounds, error) {
	left, right, isRange := strings.Cut(text, "..")
	low, err := parsePortion(left)
	if !isRange {
		return bounds{low, low}, err
	}
	high, err2 := parsePortion(right)
	if err != nil || err2 != nil {
		return bounds{}, errors.New("a reserve is a percentage, like 5%, or a range of two, like 1%..10%")
	}
	return bounds{low, high}, nil
}

func formatBounds(b bounds) string {
	if b.low == b.high {
		return b.low.String()
	}
	return b.low.String() + ".." + b.high.String()
}

// ParseAmount reads a whole number, in thousands or millions where a k or an M
// follows: 5000, 450k, 1.5M. Its error is the second half of a sentence.
func ParseAmount(text string) (int64, error) {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil {
		return 0, errors.New("an amount is a whole number, like 5000, 450k or 1.5M")
	}
	whole, fraction, unit := parts[1], strings.TrimRight(parts[2], "0"), parts[3]
	zeros, ok := map[string]int{"": 0, "k": 3, "M": 6}[unit]
	switch {
	case !ok:
		return 0, fmt.Errorf("%s is not a unit of amounts; write k for thousands and M for millions", clip(unit))
	case len(fraction) > zeros:
		return 0, errors.New("an amount must be whole, like 5000, 450k or 1.5M")
	case len(whole) > 13:
		return 0, fmt.Errorf("an amount may be at most %s", formatAmount(classes.MaxAmount))
	}
	n, err := strconv.ParseInt(whole+fraction+"000000"[:zeros-len(fraction)], 10, 64)
	if err == nil && n > classes.MaxAmount {
		err = fmt.Errorf("an amount may be at most %s", formatAmount(classes.MaxAmount))
	}
	return n, err
}

func formatAmount(n int64) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	case n >= 1_000_000 && n%100_000 == 0:
		return fmt.Sprintf("%d.%dM", n/1_000_000, n%1_000_000/100_000)
	case n >= 1000 && n%1000 == 0:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

// ParseLimit reads a limit as it stands in a file, an amount of a metric per
// span: "450k tokens/1m". The error is the second half of a sentence, "what is
// wrong; what would be right".
func ParseLimit(text string) (classes.Limit, error) {
	what, span, hasSpan := strings.Cut(text, "/")
	amount, metric, hasMetric := strings.Cut(strings.TrimSpace(what), " ")
	metric = strings.TrimSpace(metric)
	n, err := ParseAmount(amount)
	switch {
	case err != nil:
		return classes.Limit{}, fmt.Errorf("%w; a limit reads 450k tokens/1m", err)
	case !hasMetric:
		return classes.Limit{}, fmt.Errorf("a limit says what it counts, like %s tokens/1m; it can be %s", amount, orList(metricNames()))
	}
	m, ok := classes.ParseMetric(metric)
	if !ok {
		return classes.Limit{}, fmt.Errorf("%s is not a metric; %s", quote(metric), oneOf(metric, metricNames()))
	}
	if !hasSpan {
		return classes.Limit{}, fmt.Errorf("a limit has a span, like %s %s/1m", amount, metric)
	}
	d, err := parseDuration(strings.TrimSpace(span))
	if err != nil {
		return classes.Limit{}, fmt.Errorf("a limit ends in a span with a number and a unit, like %s %s/1m", amount, metric)
	}
	return classes.Limit{Metric: m, Amount: n, Span: d}, nil
}

func formatLimit(l classes.Limit) string {
	return formatAmount(l.Amount) + " " + l.Metric.String() + "/" + formatDuration(l.Span)
}

func metricNames() []string {
	var out []string
	for m := range classes.Leases {
		out = append(out, m.String())
	}
	return out
}

// oneOf says which words were possible instead of a wrong one.
func oneOf(word string, words []string) string {
	if near := nearest(word, words); near != "" {
		return "did you mean " + near + "?"
	}
	return "it can be " + orList(words)
}

// orList joins words the way a sentence does: "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// clip shortens a number or a word that stands in a message.
func clip(text string) string {
	const most = 20
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
