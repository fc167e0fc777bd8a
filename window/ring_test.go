package window

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// charges is the naive meter: an exact list, from which everything is counted
// anew at every question.
type charges struct {
	window, bucket time.Duration
	now            time.Duration
	list           []charge
}

type charge struct {
	at  time.Duration
	row int
	n   int64
}

// bucketOf returns the number of the bucket of a moment.
func (c *charges) bucketOf(at time.Duration) int64 { return int64(at / c.bucket) }

// leaves returns when a charge leaves the meter: when no moment of its bucket lies
// inside the window any more.
func (c *charges) leaves(at time.Duration) time.Duration {
	return time.Duration(c.bucketOf(at)+1)*c.bucket + c.window
}

func (c *charges) used(row int) (sum int64) {
	for _, x := range c.list {
		if x.row == row && c.now < c.leaves(x.at) {
			sum += x.n
		}
	}
	return sum
}

// within returns what was charged in the half-open window (now-W, now].
func (c *charges) within() (sum int64) {
	for _, x := range c.list {
		if x.at > c.now-c.window {
			sum += x.n
		}
	}
	return sum
}

// refund takes up to n from the charges of row in one bucket.
func (c *charges) refund(row int, at time.Duration, n int64) (back int64) {
	for i := range c.list {
		x := &c.list[i]
		if x.row != row || c.bucketOf(x.at) != c.bucketOf(at) || c.now >= c.leaves(x.at) {
			continue
		}
		part := min(n, x.n)
		x.n -= part
		n -= part
		back += part
	}
	return back
}

func TestRingAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 4).Draw(t, "rows")
		buckets := rapid.SampledFrom([]int{1, 2, 6, 7, 60}).Draw(t, "buckets")
		span := rapid.SampledFrom([]time.Duration{7, 1000, time.Second, time.Minute, 61 * time.Second, 24 * time.Hour}).Draw(t, "span")
		r := NewRing(span, buckets, rows)
		if r.Window() < span || r.Window()-span >= time.Duration(buckets) || r.Buckets() != buckets ||
			r.Window() != r.BucketWidth()*time.Duration(buckets) {
			t.Fatalf("NewRing(%s, %d): window %s, buckets of %s", span, buckets, r.Window(), r.BucketWidth())
		}
		naive := &charges{window: r.Window(), bucket: r.BucketWidth()}
		row := rapid.IntRange(0, rows-1)
		amount := rapid.Int64Range(0, 1_000_000_000_000)
		t.Repeat(map[string]func(*rapid.T){
			"advance": func(t *rapid.T) {
				step := rapid.OneOf(
					rapid.Int64Range(0, int64(r.BucketWidth())),
					rapid.Int64Range(0, int64(r.Window())),
					rapid.Int64Range(-int64(r.Window()), 3*int64(r.Window())),
				).Draw(t, "step")
				before := naive.bucketOf(naive.now)
				naive.now = max(naive.now, naive.now+time.Duration(step))
				passed := r.Advance(max(0, naive.now+min(0, time.Duration(step))))
				if want := naive.bucketOf(naive.now) - before; passed != want {
					t.Fatalf("Advance passed %d boundaries, want %d", passed, want)
				}
			},
			"charge": func(t *rapid.T) {
				c := charge{naive.now, row.Draw(t, "row"), amount.Draw(t, "n")}
				naive.list = append(naive.list, c)
				r.Charge(c.row, c.n)
			},
			"charge in the past": func(t *rapid.T) {
				at := max(0, naive.now-time.Duration(rapid.Int64Range(0, 2*int64(r.Window())).Draw(t, "ago")))
				c := charge{at, row.Draw(t, "row"), amount.Draw(t, "n")}
				naive.list = append(naive.list, c)
				r.ChargeAt(c.row, c.at, c.n)
			},
			"refund": func(t *rapid.T) {
				if len(naive.list) == 0 {
					return // there is nothing to give back
				}
				c := naive.list[rapid.IntRange(0, len(naive.list)-1).Draw(t, "which")]
				n := amount.Draw(t, "n")
				got, want := r.Refund(c.row, c.at, n), naive.refund(c.row, c.at, n)
				if got != want || got > n {
					t.Fatalf("Refund(%d) of %+v = %d, want %d", n, c, got, want)
				}
			},
			"": func(t *rapid.T) { compareRing(t, r, naive, rows) },
		})
	})
}

// compareRing holds every question that a ring answers against the list.
func compareRing(t *rapid.T, r *Ring, naive *charges, rows int) {
	var total int64
	for row := range rows {
		got, want := r.Used()[row], naive.used(row)
		if got != want || got < 0 {
			t.Fatalf("at %s: row %d uses %d, want %d", naive.now, row, got, want)
		}
		total += got
	}
	if r.Total() != total {
		t.Fatalf("at %s: total %d, want the sum %d", naive.now, r.Total(), total)
	}
	if w := naive.within(); w > total {
		t.Fatalf("at %s: %d were charged within the window, the ring holds %d", naive.now, w, total)
	}
	left := total
	for j := 1; j <= r.Buckets()+1; j++ {
		at := r.Boundary(j)
		if at <= naive.now || j > 1 && at != r.Boundary(j-1)+r.BucketWidth() {
			t.Fatalf("at %s: boundary %d is at %s", naive.now, j, at)
		}
		for _, n := range r.Leaving(j) {
			left -= n
		}
		var want int64
		for _, c := range naive.list {
			if naive.now < naive.leaves(c.at) && at < naive.leaves(c.at) {
				want += c.n
			}
		}
		if left != want {
			t.Fatalf("at %s: %d are left at boundary %d, want %d", naive.now, left, j, want)
		}
	}
	if left != 0 {
		t.Fatalf("at %s: %d never leave", naive.now, left)
	}
	var held int64
	last := time.Duration(0)
	r.Held(func(end time.Duration, amounts []int64) {
		if end <= last || end > naive.now+r.BucketWidth() || end+r.Window() <= naive.now {
			t.Fatalf("at %s: Held names a bucket that ends at %s after %s", naive.now, end, last)
		}
		last = end
		for row, n := range amounts {
			held += n
			var want int64
			for _, c := range naive.list {
				if c.row == row && naive.bucketOf(c.at) == naive.bucketOf(end-1) {
					want += c.n
				}
			}
			if n != want {
				t.Fatalf("at %s: Held says %d of row %d until %s, want %d", naive.now, n, row, end, want)
			}
		}
	})
	if held != total {
		t.Fatalf("at %s: Held says %d, want %d", naive.now, held, total)
	}
	freeAtExact(t, r, naive, total)
}

// freeAtExact asks for the first moment at which n is free and looks for it in the
// list, for amounts at and around what each boundary gives.
func freeAtExact(t *rapid.T, r *Ring, naive *charges, total int64) {
	quota := rapid.Int64Range(0, total+1000).Draw(t, "quota")
	for _, n := range []int64{0, 1, quota / 2, quota - 1, quota, quota + 1} {
		if n < 0 {
			continue
		}
		at, ok := r.FreeAt(naive.now, quota, n)
		if ok != (n <= quota) {
			t.Fatalf("FreeAt(%d of %d) says %v", n, quota, ok)
		}
		if !ok {
			continue
		}
		if used := naive.usedAt(at); quota-used < n {
			t.Fatalf("FreeAt(%d of %d) = %s, but %d are in use then", n, quota, at, used)
		}
		if at == naive.now {
			continue
		}
		if used := naive.usedAt(at - 1); quota-used >= n {
			t.Fatalf("FreeAt(%d of %d) = %s, but a moment earlier only %d are in use", n, quota, at, used)
		}
	}
}

// usedAt returns what the meter will hold at a later time if nothing is charged.
func (c *charges) usedAt(at time.Duration) (sum int64) {
	for _, x := range c.list {
		if c.now < c.leaves(x.at) && at < c.leaves(x.at) {
			sum += x.n
		}
	}
	return sum
}

// TestRingLiteral walks one meter of 60 s in 6 buckets of 10 s through named moments.
func TestRingLiteral(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name  string
		steps []ringStep
	}{
		{"a charge stays its window and at most a bucket more", []ringStep{
			{at: 1 * s, charge: 100, total: 100},
			{at: 61*s - 1, total: 100},
			{at: 61 * s, total: 100},
			{at: 70*s - 1, total: 100},
			{at: 70 * s, total: 0, passed: 1},
		}},
		{"a charge at a boundary stays the longest", []ringStep{
			{at: 10 * s, charge: 7, total: 7, passed: 1},
			{at: 80*s - 1, total: 7, passed: 6},
			{at: 80 * s, total: 0, passed: 1},
		}},
		{"the clock goes back", []ringStep{
			{at: 65 * s, charge: 5, total: 5, passed: 6},
			{at: 1 * s, total: 5},
			{at: 0, charge: 6, total: 11},
			{at: 65 * s, total: 11},
			{at: 130*s - 1, total: 11, passed: 6},
			{at: 130 * s, total: 0, passed: 1},
		}},
		{"a gap of one window and a bucket empties it", []ringStep{
			{at: 3 * s, charge: 9, total: 9},
			{at: 70 * s, charge: 1, total: 1, passed: 7},
		}},
		{"400 days idle", []ringStep{
			{at: 3 * s, charge: 1_000_000_000, total: 1_000_000_000},
			{at: 400 * 24 * time.Hour, charge: 1_000_000_000, total: 1_000_000_000, passed: 3_456_000},
			{at: 400*24*time.Hour + 70*s - 1, total: 1_000_000_000, passed: 6},
			{at: 400*24*time.Hour + 70*s, total: 0, passed: 1},
		}},
		{"a trillion at a time", []ringStep{
			{at: 1 * s, charge: 1e12, total: 1e12},
			{at: 11 * s, charge: 1e12, total: 2e12, passed: 1},
			{at: 71 * s, total: 1e12, passed: 6},
			{at: 80 * s, total: 0, passed: 1},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := NewRing(time.Minute, 6, 2)
			for i, step := range tc.steps {
				passed := r.Advance(step.at)
				if step.charge > 0 {
					r.Charge(1, step.charge)
				}
				if i > 0 && tc.steps[i-1].at <= step.at && step.passed != 0 && passed != step.passed {
					t.Errorf("at %s: %d boundaries passed, want %d", step.at, passed, step.passed)
				}
				if r.Total() != step.total || !slices.Equal(r.Used(), []int64{0, step.total}) {
					t.Errorf("at %s: total %d of %v, want %d", step.at, r.Total(), r.Used(), step.total)
				}
			}
		})
	}
}

type ringStep struct {
	at     time.Duration
	charge int64
	total  int64
	passed int64 // checked where it is named
}

// TestRingNeverOverInAnyWindow charges greedily up to a quota at random moments and
// sums the exact charges of every window that begins or ends at one.
func TestRingNeverOverInAnyWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const quota = 1000
		r := NewRing(time.Minute, rapid.SampledFrom([]int{6, 60, 240}).Draw(t, "buckets"), 1)
		var list []charge
		now := time.Duration(0)
		for range 300 {
			now += time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "step"))
			r.Advance(now)
			if n := min(rapid.Int64Range(1, 100).Draw(t, "n"), quota-r.Total()); n > 0 {
				r.Charge(0, n)
				list = append(list, charge{now, 0, n})
			}
		}
		first, sum := 0, int64(0)
		for _, c := range list {
			sum += c.n
			for list[first].at <= c.at-time.Minute {
				sum -= list[first].n
				first++
			}
			if sum > quota {
				t.Fatalf("%d charged in the minute up to %s", sum, c.at)
			}
		}
	})
}

// TestRefundIsNoMoreThanTheBucketHolds gives back twice what was charged, and what
// has left the window.
func TestRefundIsNoMoreThanTheBucketHolds(t *testing.T) {
	r := NewRing(time.Minute, 6, 2)
	r.Charge(0, 100)
	r.Charge(1, 50)
	if got := r.Refund(0, 0, 60); got != 60 {
		t.Errorf("first refund %d, want 60", got)
	}
	if got := r.Refund(0, 0, 60); got != 40 {
		t.Errorf("second refund %d, want the 40 that are left", got)
	}
	if got := r.Refund(0, 9*time.Second, 1); got != 0 {
		t.Errorf("refund of nothing %d", got)
	}
	if r.Total() != 50 {
		t.Errorf("total %d, want what the other row charged", r.Total())
	}
	r.Advance(70 * time.Second)
	if got := r.Refund(1, 0, 50); got != 0 || r.Total() != 0 {
		t.Errorf("refund after the window %d, total %d", got, r.Total())
	}
	if got := r.Refund(1, 10*time.Minute, 50); got != 0 {
		t.Errorf("refund of the future %d", got)
	}
}
