package window

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// exactLine is the naive line: a level in exact fractions.
type exactLine struct {
	level *big.Rat
	at    time.Duration
}

func (l *exactLine) drain(now time.Duration, perSpan int64, span time.Duration) {
	if now <= l.at {
		return
	}
	leak := new(big.Rat).SetFrac(
		new(big.Int).Mul(big.NewInt(perSpan), big.NewInt(int64(now-l.at))), big.NewInt(int64(span)))
	l.at = now
	if l.level.Sub(l.level, leak); l.level.Sign() < 0 {
		l.level.SetInt64(0)
	}
}

// shown returns the level as a whole number, as a Line tells it: rounded up.
func (l *exactLine) shown() int64 {
	n := new(big.Int).Add(l.level.Num(), new(big.Int).Sub(l.level.Denom(), big.NewInt(1)))
	return n.Div(n, l.level.Denom()).Int64()
}

// TestLineAgainstFractions holds the line against exact fractions at one span and a
// rate that changes with every drain.
func TestLineAgainstFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.SampledFrom([]time.Duration{7, time.Second, time.Minute, 61 * time.Second, 31 * 24 * time.Hour}).Draw(t, "span")
		most := rapid.SampledFrom([]int64{10, 1_000_000, 1_000_000_000_000}).Draw(t, "most")
		line := &Line{}
		exact := &exactLine{level: new(big.Rat)}
		t.Repeat(map[string]func(*rapid.T){
			"pour": func(t *rapid.T) {
				n := rapid.Int64Range(0, most).Draw(t, "n")
				ceiling := rapid.Int64Range(0, 2*most).Draw(t, "ceiling")
				before := line.Level()
				line.Pour(n, ceiling)
				// A ceiling bounds what pours in; it takes nothing out.
				exact.level.Add(exact.level, new(big.Rat).SetInt64(max(before, min(before+n, ceiling))-before))
			},
			"take": func(t *rapid.T) {
				n := rapid.Int64Range(0, most).Draw(t, "n")
				line.Take(n)
				if exact.level.Sub(exact.level, new(big.Rat).SetInt64(n)); exact.level.Sign() < 0 {
					exact.level.SetInt64(0)
				}
			},
			"drain": func(t *rapid.T) {
				rate := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, most)).Draw(t, "rate")
				dt := rapid.OneOf(rapid.Int64Range(-5, 5), rapid.Int64Range(0, int64(span)), rapid.Int64Range(0, 1<<55)).Draw(t, "dt")
				line.Drain(exact.at+time.Duration(dt), rate, span)
				exact.drain(exact.at+time.Duration(dt), rate, span)
			},
			"leaks": func(t *rapid.T) {
				rate := rapid.Int64Range(1, most).Draw(t, "rate")
				n := rapid.Int64Range(0, line.Level()+5).Draw(t, "n")
				dt := line.Leaks(n, rate, span)
				if dt == forever {
					return // longer than is told
				}
				leaked := func(dt time.Duration) bool {
					l := &exactLine{new(big.Rat).Set(exact.level), exact.at}
					l.level.Add(l.level, new(big.Rat).SetInt64(1<<50)) // so that it is not empty before
					before := l.shown()
					l.drain(l.at+dt, rate, span)
					return before-l.shown() >= n
				}
				if !leaked(dt) || dt > 0 && leaked(dt-1) {
					t.Fatalf("Leaks(%d) at %d per %s = %d ns from %s: not the first moment", n, rate, span, dt, exact.level)
				}
			},
			"": func(t *rapid.T) {
				if line.Level() != exact.shown() || line.Level() < 0 {
					t.Fatalf("at %s: level %d, want %s", exact.at, line.Level(), exact.level)
				}
			},
		})
	})
}

// TestLinePollingDoesNotMatter drains the same line once, every 0.1 ms, and at odd
// moments.
func TestLinePollingDoesNotMatter(t *testing.T) {
	for _, tc := range []struct {
		name string
		rate int64
		span time.Duration
	}{
		{"a token a minute", 1, time.Minute},
		{"7350 tokens a second", 441_000, 61 * time.Second},
		{"a trillion a minute", 1e12, time.Minute},
		{"one a month", 1, 31 * 24 * time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const level = 1 << 50
			var once, polled, odd Line
			for _, l := range []*Line{&once, &polled, &odd} {
				l.Pour(level, level)
			}
			const end = 2 * time.Second
			for now := time.Duration(0); now <= end; now += 100 * time.Microsecond {
				polled.Drain(now, tc.rate, tc.span)
			}
			for now := time.Duration(0); now <= end; now += 131_071 * time.Nanosecond {
				odd.Drain(now, tc.rate, tc.span)
			}
			odd.Drain(end, tc.rate, tc.span)
			once.Drain(end, tc.rate, tc.span)
			if polled != once || odd != once {
				t.Errorf("once %+v, every 0.1 ms %+v, at odd moments %+v", once, polled, odd)
			}
			want := level - new(big.Int).Div(new(big.Int).Mul(big.NewInt(tc.rate), big.NewInt(int64(end))), big.NewInt(int64(tc.span))).Int64()
			if once.Level() != want {
				t.Errorf("level %d after 2 s, want %d", once.Level(), want)
			}
		})
	}
}

func TestLineLiteral(t *testing.T) {
	t.Run("the clock goes back", func(t *testing.T) {
		var l Line
		l.Pour(1000, 1000)
		l.Drain(10*time.Second, 600, time.Minute)
		if l.Level() != 900 {
			t.Fatalf("level %d after 10 s, want 900", l.Level())
		}
		l.Drain(5*time.Second, 600, time.Minute)
		l.Drain(10*time.Second, 600, time.Minute)
		if l.Level() != 900 {
			t.Errorf("level %d after going back, want 900", l.Level())
		}
		l.Drain(11*time.Second, 600, time.Minute)
		if l.Level() != 890 {
			t.Errorf("level %d a second on, want 890", l.Level())
		}
	})
	t.Run("400 days idle at 1e9 a minute", func(t *testing.T) {
		var l Line
		l.Pour(1e9, 1e9)
		l.Drain(400*24*time.Hour, 1e9, time.Minute)
		if l.Level() != 0 {
			t.Errorf("level %d", l.Level())
		}
		l.Pour(1e9, 1e9)
		if got := l.Leaks(1e9, 1e9, time.Minute); got != time.Minute {
			t.Errorf("Leaks %s, want a minute: idle time is no credit", got)
		}
	})
	t.Run("a rate of 0 holds", func(t *testing.T) {
		var l Line
		l.Pour(10, 10)
		l.Drain(time.Hour, 0, time.Minute)
		if l.Level() != 10 || l.Leaks(1, 0, time.Minute) != time.Minute {
			t.Errorf("level %d, Leaks %s", l.Level(), l.Leaks(1, 0, time.Minute))
		}
		l.Drain(time.Hour+time.Second, 60, time.Minute)
		if l.Level() != 9 {
			t.Errorf("level %d: the time without a rate counted", l.Level())
		}
	})
	t.Run("the longest wait does not overflow", func(t *testing.T) {
		var l Line
		if got := l.Leaks(1<<62, 1, 31*24*time.Hour); got != forever {
			t.Errorf("Leaks %s, want %s", got, time.Duration(forever))
		}
		l.Pour(1e12, 1e12)
		l.Drain(1<<62, 1e12, time.Nanosecond)
		if l.Level() != 0 {
			t.Errorf("level %d", l.Level())
		}
	})
	t.Run("scaled with the quota", func(t *testing.T) {
		var l Line
		l.Pour(900, 1000)
		l.Scale(1, 3)
		if l.Level() != 300 {
			t.Errorf("level %d, want 300", l.Level())
		}
		l.Scale(1e12, 1)
		l.Scale(5, 0)
		l.Scale(7, 7)
		if l.Level() != 300e12 {
			t.Errorf("level %d, want 3e14", l.Level())
		}
	})
}
