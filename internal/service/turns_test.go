package service

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/wire"
)

// script runs jobs one by one in the order in which turns gives them out.
type script struct {
	turns *turns
	mu    sync.Mutex
	log   []string
}

func (s *script) note(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, word)
}

func (s *script) add(lane, name string, weight int64) {
	s.turns.add(lane, job{weight: weight, run: func() { s.note(name) }, drop: func() { s.note("-" + name) }})
}

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: newTurns(1, 10)}
		hold := make(chan struct{})
		s.turns.add("x", job{weight: 1, run: func() { <-hold }, drop: func() {}})
		synctest.Wait() // the only worker is busy
		for i := range 6 {
			s.add("a", fmt.Sprint("a", i), 2) // one too many: a5 goes
		}
		s.add("b", "b0", 3) // a holds the most: a4, a3 go
		s.add("b", "b1", 1)
		s.add("b", "b2", 4) // so does b: b2 goes itself
		s.add("c", "c0", 1) // a2
		close(hold)
		synctest.Wait()
		s.turns.close()
		want := "-a5 -a4 -a3 -b2 -a2 a0 b0 c0 a1 b1"
		if got := strings.Join(s.log, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if len(s.turns.mu.lanes) != 0 || s.turns.mu.weight != 0 {
			t.Errorf("something is left: %+v", s.turns.mu.lanes)
		}
		s.add("a", "late", 1)
		if last := s.log[len(s.log)-1]; last != "-late" {
			t.Errorf("a job of a closed pool: %s", last)
		}
	})
}

func TestTurnsCloseDropsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: newTurns(1, 10)}
		s.turns.add("x", job{run: func() { time.Sleep(time.Second); s.note("ran") }, drop: func() {}})
		synctest.Wait()
		s.add("a", "a0", 1)
		s.turns.close()
		if !slices.Equal(s.log, []string{"-a0", "ran"}) {
			t.Errorf("got %v", s.log)
		}
	})
}

// One source's flood of bodies that take long to count delays another source's by
// a turn, and those that are counted already not at all.
func TestFlood(t *testing.T) {
	const each = 50 * time.Millisecond
	slow := func(o *Options) {
		o.Estimate = func(j Job, r *wire.AcquireRequest) (wire.EstimateReply, *wire.Error) {
			if len(r.Request) > 0 {
				time.Sleep(each)
			}
			return quarter(j, r)
		}
	}
	bubble(t, oneClass(1_000_000_000), func(t *testing.T, r *rig) {
		r.svc.workers.mu.Lock()
		r.svc.workers.most = 5_000_000
		r.svc.workers.mu.Unlock()
		flood := r.connect()
		inbox := flood.NewInbox()
		var answers atomic.Int64
		if _, err := flood.Subscribe(inbox, func(*nats.Msg) { answers.Add(1) }); err != nil {
			t.Fatal(err)
		}
		body := []byte(`{"model":"m","request":{"input":"` + strings.Repeat("x", 100_000) + `"}}`)
		const n = 200
		for range n { // 20 MB, of which a quarter may wait
			if err := flood.PublishRequest("quota.v1.acquire.eval.default", inbox, body); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Millisecond)
		start := time.Now()
		for range 10 {
			if d := r.acquire("api", `{"input_tokens":1}`); d.Verdict != wire.Grant || time.Since(start) != 0 {
				t.Errorf("counted: %+v after %s", d, time.Since(start))
			}
		}
		if d := r.acquire("api", `{"model":"m","request":{}}`); d.Verdict != wire.Grant || time.Since(start) > 3*each {
			t.Errorf("not counted: %+v after %s", d, time.Since(start))
		}
		time.Sleep(time.Minute)
		dropped := r.svc.Counts().Errors[ErrorKey{wire.VerbAcquire, wire.CodeUnavailable}]
		if answers.Load() != n || dropped < n/2 || dropped > n {
			t.Errorf("%d of %d were answered, %d of them that there is no room", answers.Load(), n, dropped)
		}
	}, slow)
}
