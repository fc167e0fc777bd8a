package broker

import (
	"slices"
	"testing"
	"time"

	"quotabroker/wire"
)

// TestNight plays what the broker is for, in virtual time: an evaluation of 50
// workers with 4000 fixtures, background work, and interactive calls that come as
// they like: in bursts, not at all, back at once, and for ten minutes almost as many
// as the whole quota carries. Interactive waits for nothing where its share
// suffices, the quota is used, and what a deferral promised comes true.
func TestNight(t *testing.T) {
	for _, tc := range []struct {
		name string
		hold time.Duration
		used float64 // of the quota, per cent
	}{
		{"polling", 0, 92},
		{"held", time.Hour, 93.5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var sum night
			const seeds = 6
			for seed := range seeds {
				n := playNight(t, uint64(seed), tc.hold)
				sum.waits = append(sum.waits, n.waits...)
				sum.tokens, sum.ran = sum.tokens+n.tokens, sum.ran+n.ran
				sum.asks, sum.grants = sum.asks+n.asks, sum.grants+n.grants
				sum.booked, sum.kept, sum.refused = sum.booked+n.booked, sum.kept+n.kept, sum.refused+n.refused
			}
			slices.Sort(sum.waits)
			used := 100 * float64(sum.tokens) / (nightQuota * sum.ran.Minutes())
			t.Logf("%.1f %% used; interactive p99 %s, %d of %d refused; %d asks for %d grants; %d of %d bookings kept",
				used, quantile(sum.waits, 99), sum.refused, len(sum.waits), sum.asks, sum.grants, sum.kept, sum.booked)
			if used < tc.used {
				t.Errorf("%.1f %% of the quota are used, want %.1f %%", used, tc.used)
			}
			if quantile(sum.waits, 99) > 100*time.Millisecond || sum.refused > len(sum.waits)/2000 {
				t.Error("interactive is disturbed")
			}
			if tc.hold > 0 && sum.asks != sum.grants {
				t.Error("a held ask was asked again")
			}
			if tc.hold == 0 && (sum.booked < 2000*seeds || sum.kept*100 < sum.booked*92) {
				t.Error("less than 92 of 100 bookings are kept")
			}
		})
	}
}

const (
	nightQuota  = 600_000
	nightStart  = 5 * time.Minute // of the evaluation
	nightMedian = 2500            // tokens of a fixture
)

// night is what came of it.
type night struct {
	waits        []time.Duration // of interactive, outside its overload
	refused      int             // the same
	tokens       int64           // granted while the evaluation ran
	ran          time.Duration   // how long it did
	asks, grants int             // of the evaluation
	booked, kept int             // granted within 100 ms of the moment that was booked
}

// interactiveLoad is how much of the quota the interactive calls want.
func interactiveLoad(now time.Duration) float64 {
	switch s := now.Seconds(); {
	case s >= 2100 && s < 2700:
		return 0.95
	case s >= 1500 && s < 2100:
		return 0.5
	case s >= 1200 && s < 1500:
		return 0
	case int(s)%90 < 10:
		return 0.9
	default:
		return 0.3
	}
}

func overload(now time.Duration) bool {
	return now > 2090*time.Second && now < 2770*time.Second
}

func playNight(t *testing.T, seed uint64, hold time.Duration) *night {
	cfg := burstPool(nightQuota, true, 240)
	cfg.Classes[0].MaxWait = 5 * time.Second
	l := newLoop(t, seed, cfg)
	n := &night{}
	n.watch(l)
	running := func() bool { return n.grants < 4000 }
	arrive(l, "api", 1200, interactiveLoad, hold)
	arrive(l, "scheduler", 4000, func(time.Duration) float64 { return 0.1 }, hold)
	for range 50 {
		w := &worker{
			l: l, source: "eval", hold: hold, active: running,
			size:    func() int64 { return l.lognormal(nightMedian, 0.85, 1000, 50_000) },
			service: func() time.Duration { return 5*time.Second + time.Duration(l.ExpFloat64()*float64(15*time.Second)) },
		}
		l.in(nightStart+time.Duration(l.Int64N(int64(time.Second))), w.start)
	}
	for running() {
		l.run(l.now + time.Second)
	}
	n.ran = l.now - nightStart
	return n
}

// arrive lets calls of a source come independently of each other, as many as the
// load says, which is 1 at most: candidates for all of the quota, thinned out.
func arrive(l *loop, source string, median float64, load func(time.Duration) float64, hold time.Duration) {
	const mean = 1.377 // of the lognormal law, over its median
	w := &worker{
		l: l, source: source, hold: hold, think: 1000 * time.Hour,
		size:    func() int64 { return l.lognormal(median, 0.8, 100, 30_000) },
		service: func() time.Duration { return time.Duration(l.ExpFloat64() * float64(2*time.Second)) },
	}
	gap := median * mean / nightQuota * float64(time.Minute)
	var next func()
	next = func() {
		if l.Float64() < load(l.now) {
			w.start()
		}
		l.in(time.Duration(l.ExpFloat64()*gap), next)
	}
	l.in(0, next)
}

// watch counts what is decided.
func (n *night) watch(l *loop) {
	due := map[wire.TicketID]time.Duration{} // of bookings
	l.hears = func(a Ask, d wire.Decision) {
		eval := a.Source == "eval"
		if eval {
			n.asks++
		}
		switch d.Verdict {
		case wire.Grant:
			if eval {
				n.grants++
			}
			if l.now > nightStart {
				n.tokens += d.Cost.Tokens
			}
			if a.Source == "api" && !overload(l.now) {
				n.waits = append(n.waits, time.Duration(d.WaitedMS)*time.Millisecond)
			}
			if at, ok := due[a.Ticket]; ok {
				n.booked++
				if l.now <= at+100*time.Millisecond {
					n.kept++
				}
			}
		case wire.Defer:
			if _, again := due[d.Ticket]; d.Booked && !again {
				due[d.Ticket] = l.now + time.Duration(d.RetryAfterMS)*time.Millisecond
			}
		case wire.Refuse:
			if a.Source == "api" && !overload(l.now) {
				n.refused++
			}
		}
	}
}
