package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"quotabroker/internal/mockprovider"
)

// play is one playing of the night.
type play struct {
	o        *Options
	script   *script
	provider *mockprovider.Server
	http     *http.Client
	begin    time.Time
	gate     gate
	tally    [kinds]tally
	lag      tally // how late this machine made the arrivals
	evalLeft atomic.Int64
	before   int64         // tokens used when the evaluation began
	after    int64         // and when it was done
	evalDone time.Duration // since begin
}

// gate is what a producer goes through before it calls the provider.
type gate interface {
	// call makes the call, however often it has to; it reports when the provider
	// took it, or why it did not.
	call(ctx context.Context, p *play, j *job) (sent time.Time, u usage, err error)
}

// usage is what the provider says a call took.
type usage struct {
	InputTokens  int64 `json:"prompt_tokens"`
	OutputTokens int64 `json:"completion_tokens"`
}

var errRefused = errors.New("the broker refused it")

// run plays the night and returns what happened.
func (p *play) run(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.real(nightEnds))
	defer cancel()
	p.begin = time.Now()
	var wg sync.WaitGroup
	liveCtx, stopLive := context.WithCancel(ctx)
	for _, trace := range [][]job{p.script.live, p.script.work} {
		wg.Go(func() { p.replay(liveCtx, ctx, &wg, trace) })
	}
	wg.Go(func() { p.report(liveCtx) })
	p.evaluate(ctx)
	p.evalDone, p.after = time.Since(p.begin), p.used()
	stopLive()
	wg.Wait()
	if err := ctx.Err(); errors.Is(err, context.Canceled) { // whatever its cause; a deadline is the night's end
		return Result{}, err
	}
	return p.result(), nil
}

// replay makes the calls of a trace when they arrive, until arrivals ends.
func (p *play) replay(arrivals, ctx context.Context, wg *sync.WaitGroup, trace []job) {
	for i := range trace {
		j := &trace[i]
		due := p.begin.Add(p.o.real(j.at))
		if !p.sleepUntil(arrivals, due) {
			return
		}
		p.lag.waited(p.o.night(time.Since(due)))
		wg.Go(func() { p.one(ctx, j) })
	}
}

// evaluate runs the fixtures on their workers, and returns when all are done.
func (p *play) evaluate(ctx context.Context) {
	if !p.sleepUntil(ctx, p.begin.Add(p.o.real(evalBegins))) {
		return
	}
	p.before = p.used()
	jobs := make(chan *job)
	var workers sync.WaitGroup
	for range p.o.Workers {
		workers.Go(func() {
			for j := range jobs {
				p.one(ctx, j)
				p.evalLeft.Add(-1)
			}
		})
	}
	for i := range p.script.eval {
		select {
		case jobs <- &p.script.eval[i]:
		case <-ctx.Done():
		}
	}
	close(jobs)
	workers.Wait()
}

// used returns the tokens that the provider has answered with so far.
func (p *play) used() int64 {
	st := p.provider.Stats()
	return st.InputTokens + st.OutputTokens
}

// one makes one call and notes how it went.
func (p *play) one(ctx context.Context, j *job) {
	wanted := time.Now()
	t := &p.tally[j.kind]
	t.asked.Add(1)
	if j.kind != live {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.o.real(evalPatience))
		defer cancel()
	}
	sent, u, err := p.gate.call(ctx, p, j)
	switch {
	case err == nil:
		t.answered.Add(1)
		t.tokens.Add(u.InputTokens + u.OutputTokens)
		t.waited(p.o.night(sent.Sub(wanted)))
	case ctx.Err() != nil && p.evalLeft.Load() == 0:
		t.asked.Add(-1) // the night ended before it was decided
	case errors.Is(err, errRefused):
		t.refused.Add(1)
	default:
		t.failed.Add(1)
	}
}

func (p *play) sleepUntil(ctx context.Context, at time.Time) bool { return sleep(ctx, time.Until(at)) }

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// throttled is a 429, with the wait that it names.
type throttled struct{ wait time.Duration }

func (t *throttled) Error() string { return "429 from the provider" }

// post sends the call once.
func (p *play) post(ctx context.Context, j *job) (usage, error) {
	b := j.body
	if b == nil {
		b = fillerBody(j.inputTokens, j.outputLimit)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.provider.URL()+"/v1/chat/completions", bytes.NewReader(b))
	if err != nil {
		return usage{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(mockprovider.OutputTokensName, strconv.FormatInt(j.outputTokens, 10))
	resp, err := p.http.Do(req)
	if err != nil {
		return usage{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return usage{}, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		var answer struct{ Usage usage }
		if err := json.Unmarshal(data, &answer); err != nil {
			return usage{}, err
		}
		return answer.Usage, nil
	case http.StatusTooManyRequests:
		p.tally[j.kind].throttled.Add(1)
		ms, _ := strconv.ParseFloat(resp.Header.Get("retry-after-ms"), 64)
		return usage{}, &throttled{wait: time.Duration(ms * float64(time.Millisecond))}
	}
	return usage{}, fmt.Errorf("the provider answered %s: %.200s", resp.Status, data)
}
