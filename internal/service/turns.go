package service

import "sync"

// turns runs jobs on a few goroutines, taking turns between the lanes they come
// from: a source that sends ten thousand large bodies delays another source's one
// by a job for each goroutine, not by ten thousand.
//
// What waits is bounded in weight. When there is no room, the lane that holds the
// most gives way: its newest job is dropped, be it the one that just came.
type turns struct {
	most  int64
	ended sync.WaitGroup

	mu struct {
		sync.Mutex
		work   sync.Cond
		lanes  map[string]*lane
		ring   []*lane // the lanes that have jobs
		next   int     // whose turn it is
		weight int64
		closed bool
	}
}

// lane is what waits of one source, oldest first.
type lane struct {
	name   string
	jobs   []job
	weight int64
}

// job is run, or dropped; exactly one of the two is called.
type job struct {
	weight int64
	run    func()
	drop   func()
}

func newTurns(workers int, most int64) *turns {
	t := &turns{most: most}
	t.mu.work.L = &t.mu
	t.mu.lanes = map[string]*lane{}
	for range workers {
		t.ended.Go(t.worker)
	}
	return t
}

// add queues a job of the named lane. It may drop it, or others, before it
// returns.
func (t *turns) add(name string, j job) {
	for _, d := range t.queue(name, j) {
		d.drop()
	}
}

// queue puts the job into its lane and returns what has to give way.
func (t *turns) queue(name string, j job) (dropped []job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return []job{j}
	}
	l := t.mu.lanes[name]
	if l == nil {
		l = &lane{name: name}
		t.mu.lanes[name] = l
		t.mu.ring = append(t.mu.ring, l)
	}
	l.jobs = append(l.jobs, j)
	l.weight += j.weight
	t.mu.weight += j.weight
	for t.mu.weight > t.most {
		dropped = append(dropped, t.newestOf(t.heaviest()))
	}
	t.mu.work.Signal()
	return dropped
}

func (t *turns) heaviest() *lane {
	most := t.mu.ring[0]
	for _, l := range t.mu.ring {
		if l.weight > most.weight {
			most = l
		}
	}
	return most
}

func (t *turns) newestOf(l *lane) job {
	last := len(l.jobs) - 1
	j := l.jobs[last]
	l.jobs[last] = job{}
	l.jobs = l.jobs[:last]
	t.took(l, j)
	return j
}

func (t *turns) oldestOf(l *lane) job {
	j := l.jobs[0]
	l.jobs[0] = job{}
	l.jobs = l.jobs[1:]
	t.took(l, j)
	return j
}

// took accounts for a job that left its lane. An empty lane is forgotten, so that
// names leave nothing behind.
func (t *turns) took(l *lane, j job) {
	l.weight -= j.weight
	t.mu.weight -= j.weight
	if len(l.jobs) > 0 {
		return
	}
	delete(t.mu.lanes, l.name)
	for i, other := range t.mu.ring {
		if other == l {
			t.mu.ring = append(t.mu.ring[:i], t.mu.ring[i+1:]...)
			if i < t.mu.next {
				t.mu.next--
			}
			return
		}
	}
}

func (t *turns) worker() {
	for {
		j, ok := t.wait()
		if !ok {
			return
		}
		j.run()
	}
}

// wait returns the oldest job of the lane whose turn it is; ok is false at the end.
func (t *turns) wait() (j job, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.mu.ring) == 0 {
		if t.mu.closed {
			return job{}, false
		}
		t.mu.work.Wait()
	}
	i := t.mu.next % len(t.mu.ring)
	l := t.mu.ring[i]
	t.mu.next = i + 1
	return t.oldestOf(l), true
}

// close drops what waits and returns when what runs has ended.
func (t *turns) close() {
	t.mu.Lock()
	t.mu.closed = true
	var dropped []job
	for len(t.mu.ring) > 0 {
		dropped = append(dropped, t.oldestOf(t.mu.ring[0]))
	}
	t.mu.work.Broadcast()
	t.mu.Unlock()
	for _, d := range dropped {
		d.drop()
	}
	t.ended.Wait()
}
