package demo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"quotabroker/internal/mockprovider"
)

// tally counts what happened to one class. It is safe for concurrent use.
type tally struct {
	asked, answered, refused, failed, throttled, tokens atomic.Int64

	mu struct {
		sync.Mutex
		waits *hdrhistogram.Histogram // ms of the night, until the call that was answered was sent
	}
}

func (t *tally) waited(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.waits == nil {
		t.mu.waits = hdrhistogram.New(1, int64(nightEnds/time.Millisecond)*2, 3)
	}
	_ = t.mu.waits.RecordValue(max(d.Milliseconds(), 0)) // out of range: longer than the night, which it cannot be
}

func (t *tally) quantile(q float64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.waits == nil {
		return 0
	}
	return time.Duration(t.mu.waits.ValueAtQuantile(q)) * time.Millisecond
}

// Result is what one playing of the night came to. Durations are the night's.
type Result struct {
	Broker      bool          `json:"broker"`
	Classes     []ClassResult `json:"classes"`
	EvalMS      int64         `json:"eval_makespan_ms"`
	EvalDone    bool          `json:"eval_done"` // false: the night ended before
	LimitTPM    int64         `json:"limit_tpm"`
	PeakTokens  int64         `json:"provider_peak_tokens"` // in any rolling minute, as the provider charged them
	Throttled   int64         `json:"provider_429"`
	LagMS       int64         `json:"lag_ms"`      // how late this machine was with the arrivals, p99
	Utilisation float64       `json:"utilisation"` // tokens used of those the account had, while the evaluation ran
}

// ClassResult is one class of it.
type ClassResult struct {
	Class     string `json:"class"`
	Asked     int64  `json:"asked"`
	Answered  int64  `json:"answered"`
	Refused   int64  `json:"refused"` // by the broker
	Failed    int64  `json:"failed"`  // given up after the provider's refusals, or broken
	Throttled int64  `json:"provider_429"`
	Tokens    int64  `json:"tokens"`
	WaitP50MS int64  `json:"wait_p50_ms"`
	WaitP99MS int64  `json:"wait_p99_ms"`
}

func (p *play) result() Result {
	stats := p.provider.Stats()
	r := Result{
		LimitTPM: p.o.TPM, PeakTokens: stats.Peak.Tokens, Throttled: stats.RefusedTokens + stats.RefusedRequests + stats.TooLarge,
		EvalMS:   (p.o.night(p.evalDone) - evalBegins).Milliseconds(),
		EvalDone: p.evalLeft.Load() == 0,
		LagMS:    p.lag.quantile(99).Milliseconds(),
	}
	for k := range p.tally {
		t := &p.tally[k]
		r.Classes = append(r.Classes, ClassResult{
			Class: kindNames[k], Asked: t.asked.Load(), Answered: t.answered.Load(), Refused: t.refused.Load(),
			Failed: t.failed.Load(), Throttled: t.throttled.Load(), Tokens: t.tokens.Load(),
			WaitP50MS: t.quantile(50).Milliseconds(), WaitP99MS: t.quantile(99).Milliseconds(),
		})
	}
	if minutes := float64(r.EvalMS) / 60_000; minutes > 0 {
		r.Utilisation = float64(p.after-p.before) / (float64(p.o.TPM) * minutes)
	}
	return r
}

// report says how far the night is, until ctx ends.
func (p *play) report(ctx context.Context) {
	w := p.o.Progress
	if w == nil {
		return
	}
	every := 3 * time.Second
	if p.o.Rewrite {
		every = 200 * time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			line := p.line()
			if p.o.Rewrite {
				_, _ = fmt.Fprint(w, rewritten(line))
			} else {
				_, _ = fmt.Fprintln(w, line)
			}
		case <-ctx.Done():
			if p.o.Rewrite {
				_, _ = fmt.Fprint(w, "\r\033[K")
			}
			return
		}
	}
}

// rewritten is a line that takes the place of the last one. The terminal is told
// not to wrap meanwhile, and so cuts it to its width itself: a line that wrapped
// would leave its first half behind at every update.
func rewritten(line string) string { return "\r\033[K\033[?7l" + line + "\033[?7h" }

// line is short enough for 80 columns on any night that the defaults play.
func (p *play) line() string {
	at := nightBegins + p.o.night(time.Since(p.begin))
	s := fmt.Sprintf("  %02d:%02d:%02d", int(at.Hours()), int(at.Minutes())%60, int(at.Seconds())%60)
	var lost int64
	for k := range p.tally {
		t := &p.tally[k]
		s += fmt.Sprintf("  %s %d", kindNames[k], t.answered.Load())
		lost += t.failed.Load() + t.refused.Load()
	}
	return s + fmt.Sprintf("  lost %d  429s %d", lost, throttledSoFar(p.provider))
}

func throttledSoFar(s *mockprovider.Server) int64 {
	st := s.Stats()
	return st.RefusedTokens + st.RefusedRequests + st.TooLarge
}
