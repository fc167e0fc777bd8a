package window

import "time"

// Ring is a rolling-window meter of several rows (one a class) over one window.
//
// Time is cut into buckets of W/B. A charge made in bucket b leaves when
// now >= (b+1)·W/B + W, which is when no moment of the bucket lies inside the
// window any more. The ring therefore holds B+1 buckets.
//
// The zero Ring is not usable; call [NewRing]. A Ring is not safe for
// concurrent use.
type Ring struct {
	width   int64 // of a bucket, ns
	buckets int64 // B
	rows    int
	newest  int64   // number of the newest bucket; bucket b covers [b·width, (b+1)·width)
	at      int     // index of the newest bucket in cells
	cells   []int64 // bucket-major: cells[i*rows+row]
	used    []int64
	total   int64
}

// NewRing returns an empty meter of rows rows over a window of at least span,
// cut into buckets. The window is rounded up to a whole number of nanoseconds
// per bucket. span, buckets and rows must be positive.
func NewRing(span time.Duration, buckets, rows int) *Ring {
	width := (int64(span) + int64(buckets) - 1) / int64(buckets)
	return &Ring{
		width: width, buckets: int64(buckets), rows: rows,
		cells: make([]int64, (buckets+1)*rows),
		used:  make([]int64, rows),
	}
}

// Window returns W, the time for which a charge is counted at least.
func (r *Ring) Window() time.Duration { return time.Duration(r.width * r.buckets) }

// BucketWidth returns W/B, the most by which a charge outstays its window.
func (r *Ring) BucketWidth() time.Duration { return time.Duration(r.width) }

// Buckets returns B.
func (r *Ring) Buckets() int { return int(r.buckets) }

// Advance moves the meter to now and drops what has left the window. It returns
// the number of bucket boundaries passed since the last call, 0 if none or if
// now lies in the past. Cost: O(rows) for each boundary, at most O(B·rows).
func (r *Ring) Advance(now time.Duration) (passed int64) {
	b := int64(now) / r.width
	if b <= r.newest {
		return 0
	}
	passed = b - r.newest
	r.newest = b
	steps := passed
	if steps > r.buckets {
		clear(r.cells)
		clear(r.used)
		r.total, r.at = 0, 0
		return passed
	}
	for ; steps > 0; steps-- {
		if r.at++; r.at > int(r.buckets) {
			r.at = 0
		}
		cell := r.cells[r.at*r.rows : (r.at+1)*r.rows]
		for row, n := range cell {
			if n != 0 {
				r.used[row] -= n
				r.total -= n
				cell[row] = 0
			}
		}
	}
	return passed
}

// Charge counts n (0 or more) for row in the newest bucket.
func (r *Ring) Charge(row int, n int64) {
	r.cells[r.at*r.rows+row] += n
	r.used[row] += n
	r.total += n
}

// Refund gives back up to n of what row charged at the time charged, as far as
// that bucket still holds it, and returns how much that was: 0 once the bucket
// has left the window.
func (r *Ring) Refund(row int, charged time.Duration, n int64) int64 {
	i, ok := r.index(int64(charged) / r.width)
	if !ok {
		return 0
	}
	cell := &r.cells[i*r.rows+row]
	n = min(n, *cell)
	*cell -= n
	r.used[row] -= n
	r.total -= n
	return n
}

// Used returns what each row holds in the window. It is a view: read only, valid
// until the ring is dropped.
func (r *Ring) Used() []int64 { return r.used }

// Total returns what all rows hold in the window.
func (r *Ring) Total() int64 { return r.total }

// Boundary returns the time of the j-th bucket boundary from now on; j counts
// from 1. What [Ring.Leaving] of j says leaves at that moment.
func (r *Ring) Boundary(j int) time.Duration {
	return time.Duration((r.newest + int64(j)) * r.width)
}

// Leaving returns what each row will lose at the j-th boundary from now on, j
// from 1 to B+1; after that many boundaries the ring is empty. It is a view.
func (r *Ring) Leaving(j int) []int64 {
	i := r.at + j
	if i > int(r.buckets) {
		i -= int(r.buckets) + 1
	}
	return r.cells[i*r.rows : (i+1)*r.rows]
}

// FreeAt returns the first moment, now or a bucket boundary, at which at least n
// of quota is not in use if nothing more is charged. ok is false when n is more
// than the quota, which no waiting cures.
func (r *Ring) FreeAt(now time.Duration, quota, n int64) (at time.Duration, ok bool) {
	if n > quota {
		return 0, false
	}
	total := r.total
	if quota-total >= n {
		return now, true
	}
	for j := 1; j <= int(r.buckets)+1; j++ {
		for _, leaving := range r.Leaving(j) {
			total -= leaving
		}
		if quota-total >= n {
			return r.Boundary(j), true
		}
	}
	return r.Boundary(int(r.buckets) + 1), true
}

// Since returns the time from which on every charge is still held: what was charged
// before it has left the window.
func (r *Ring) Since() time.Duration {
	return time.Duration(max(0, r.newest-r.buckets) * r.width)
}

// Held calls yield for every bucket that holds something, oldest first, with the
// end of the bucket and its amounts by row (a view). It serves to carry a meter's
// content over to one of another shape.
func (r *Ring) Held(yield func(end time.Duration, amounts []int64)) {
	for j := 1; j <= int(r.buckets)+1; j++ {
		amounts := r.Leaving(j)
		for _, n := range amounts {
			if n != 0 {
				yield(time.Duration((r.newest-r.buckets+int64(j))*r.width), amounts)
				break
			}
		}
	}
}

// ChargeAt counts n for row as if it had been charged at an earlier time, which
// must not lie after the newest bucket. A time that has left the window counts
// nothing.
func (r *Ring) ChargeAt(row int, charged time.Duration, n int64) {
	i, ok := r.index(int64(charged) / r.width)
	if !ok {
		return
	}
	r.cells[i*r.rows+row] += n
	r.used[row] += n
	r.total += n
}

// index finds the place of a bucket by its number.
func (r *Ring) index(bucket int64) (int, bool) {
	age := r.newest - bucket
	if age < 0 || age > r.buckets {
		return 0, false
	}
	i := r.at - int(age)
	if i < 0 {
		i += int(r.buckets) + 1
	}
	return i, true
}
