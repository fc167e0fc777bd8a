package classes

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// crowd is a rule of several limits in which every class waits.
type crowd struct {
	*rand.Rand
	s    Settings
	rule *Rule
	now  time.Duration
}

func newCrowd(seed uint64) *crowd {
	rnd := rand.New(rand.NewPCG(seed, 2))
	w := &world{Rand: rnd}
	k := &crowd{Rand: rnd, s: Settings{
		Classes: w.table(), HalfLife: 10 * time.Minute, Buckets: []int{6, 60, 240}[rnd.IntN(3)],
		Limits: []Limit{{Tokens, 10_000 + rnd.Int64N(1_000_000), time.Minute}},
	}}
	if rnd.IntN(2) == 0 {
		k.s.Limits = append(k.s.Limits, Limit{Requests, 20 + rnd.Int64N(500), time.Minute})
	}
	if rnd.IntN(2) == 0 {
		k.s.Limits = append(k.s.Limits, Limit{Tokens, 5_000 + rnd.Int64N(100_000), 2 * time.Second})
	}
	if rnd.IntN(2) == 0 {
		k.s.Limits = append(k.s.Limits, Limit{InputTokens, 10_000 + rnd.Int64N(500_000), time.Minute}, Limit{OutputTokens, 5_000 + rnd.Int64N(100_000), time.Minute})
	}
	if rnd.IntN(2) == 0 {
		k.s.Concurrency = 1 + rnd.IntN(30)
	}
	k.rule = NewRule(k.s)
	return k
}

// job makes up a job that class c has a bounded wait for, or none.
func (k *crowd) job(c int) (Vec, bool) {
	v := Vec{Requests: 1, Leases: 1}
	most := int64(1) << 60
	for i := range k.rule.limits {
		if l := &k.rule.limits[i]; l.Metric == Tokens || l.Metric == InputTokens || l.Metric == OutputTokens {
			most = min(most, l.class[c].bounded)
		}
	}
	if most < 2 {
		return v, false
	}
	v[Tokens] = 1 + k.Int64N(most)
	if k.IntN(2) == 0 {
		v[Tokens] = most
	}
	v[OutputTokens] = k.Int64N(v[Tokens])
	v[InputTokens] = v[Tokens] - v[OutputTokens]
	return v, k.rule.Bounded(c, v)
}

func (k *crowd) wants(c int, v Vec) {
	d := Demand{Count: 1 + k.IntN(3), Head: v}
	for range d.Count {
		d.Queued = d.Queued.Add(v)
	}
	if k.IntN(3) > 0 {
		d.HeadTried, d.HeadSince = true, k.now-min(k.now, time.Duration(k.IntN(40))*time.Second)
	}
	k.rule.SetDemand(c, d)
}

// TestOneOrderOnAllLimits lets every class wait in random states of several limits
// and checks that no class holds back for one that holds back for it, over any
// number of steps; and that once the windows are empty one of them may go.
func TestOneOrderOnAllLimits(t *testing.T) {
	edges, grants, progress := 0, 0, 0
	for seed := range uint64(3000) {
		k := newCrowd(seed)
		for range 40 {
			k.now += time.Duration(k.ExpFloat64() * float64(time.Second))
			k.rule.Advance(k.now)
			c := k.IntN(len(k.s.Classes))
			if v, ok := k.job(c); ok {
				k.wants(c, v)
				if k.tryGrant(t, seed, c, v) {
					grants++
				}
			}
			edges += k.ordered(t, seed)
		}
		for c := range k.s.Classes {
			for k.rule.limits[len(k.rule.limits)-1].ring == nil && k.rule.limits[len(k.rule.limits)-1].used[c] > 0 {
				k.rule.Release(c)
			}
		}
		if k.moves(t, seed) {
			progress++
		}
	}
	t.Logf("exercised: %d precedences, %d grants, %d drained", edges, grants, progress)
	if edges < 1000 || grants < 1000 || progress < 1000 {
		t.Error("the states test nothing")
	}
}

// ordered checks that precedence between the classes that wait has no cycle.
func (k *crowd) ordered(t *testing.T, seed uint64) (edges int) {
	var before [MaxClasses]uint32 // by class: the classes that it lets go first
	for c := range k.s.Classes {
		d := &k.rule.demand[c]
		if d.Count == 0 {
			continue
		}
		if o := k.rule.order(c, &d.Head, &d.Head); !o.guaranteed {
			before[c] = o.aged | o.first
		}
	}
	for c := range k.s.Classes { // what is reached from c in any number of steps
		reached := before[c]
		for range k.s.Classes {
			for e := range k.s.Classes {
				if reached>>e&1 != 0 {
					reached |= before[e]
					edges++
				}
			}
		}
		if reached>>c&1 != 0 {
			t.Fatalf("seed %d: class %d lets itself go first: %b", seed, c, before)
		}
	}
	return edges
}

// tryGrant grants the job if it may go and checks what a grant must leave on every
// limit: the quota kept, the reserves there, and above its floor what is protected.
func (k *crowd) tryGrant(t *testing.T, seed uint64, c int, v Vec) bool {
	ask := Ask{Class: c, Cost: v}
	check := k.rule.May(&ask)
	if !check.Go {
		return false
	}
	borrows := false
	for i := range k.rule.limits {
		l := &k.rule.limits[i]
		borrows = borrows || v[l.Metric] > 0 && l.used[c]+v[l.Metric] > l.class[c].floor
	}
	k.rule.Charge(c, v)
	for i := range k.rule.limits {
		l := &k.rule.limits[i]
		if v[l.Metric] == 0 {
			continue
		}
		var held int64
		for e := range l.class {
			p := &l.class[e]
			hold := p.m()
			if borrows && e != c {
				owed := int64(0)
				if k.rule.demand[e].Count > 0 && k.rule.below(e) {
					owed = k.rule.demand[e].Queued[l.Metric]
				}
				hold = max(hold, min(p.floor, l.used[e]+owed+p.m()))
			}
			held += max(0, hold-l.used[e])
		}
		if free := l.quota - l.total(); free < held {
			t.Fatalf("seed %d: after a grant to class %d %s has %d free and %d held", seed, c, l.Limit, free, held)
		}
	}
	return true
}

// moves checks that with nothing charged and everybody waiting some head may go.
func (k *crowd) moves(t *testing.T, seed uint64) bool {
	waiting := 0
	for c := range k.s.Classes {
		k.rule.SetDemand(c, Demand{})
		if v, ok := k.job(c); ok {
			k.wants(c, v)
			waiting++
		}
	}
	if waiting == 0 {
		return false
	}
	k.now += 2*k.rule.LongestWindow() + time.Second
	k.rule.Advance(k.now)
	why := ""
	for c := range k.s.Classes {
		d := &k.rule.demand[c]
		if d.Count == 0 {
			continue
		}
		ask := Ask{Class: c, Cost: d.Head}
		check := k.rule.May(&ask)
		if check.Go {
			return true
		}
		why += fmt.Sprintf("class %d wants %v: %+v\n", c, d.Head, check)
	}
	t.Fatalf("seed %d: nothing is charged, and none of those who wait may go\n%s%+v", seed, why, k.s)
	return false
}

// TestFloorsOfLeases checks that on the concurrency cap floors are whole leases that
// can be honoured together.
func TestFloorsOfLeases(t *testing.T) {
	for seed := range uint64(2000) {
		k := newCrowd(seed)
		for n := range 40 {
			l := newLimit(Limit{Metric: Leases, Amount: int64(n)}, k.s)
			var sum, most int64
			for c := range l.class {
				sum += l.class[c].floor
				most += l.class[c].most
				if l.class[c].most > l.class[c].floor {
					t.Fatalf("seed %d: %d leases: the reserve of class %d is above its floor", seed, n, c)
				}
				if n > 0 && l.class[c].largest < 1 {
					t.Fatalf("seed %d: %d leases: class %d can never be given one", seed, n, c)
				}
			}
			if sum > int64(n) {
				t.Fatalf("seed %d: floors of %d leases sum to %d", seed, n, sum)
			}
			for c, spec := range k.s.Classes {
				if sum > 0 && spec.Floor > 0 && l.class[c].floor == 0 {
					t.Fatalf("seed %d: of %d leases class %d has no floor, others have %d", seed, n, c, sum)
				}
			}
		}
	}
}

// TestNoLeaseTwoHeads is the smallest case of two heads that once held back for each
// other for ever: one lease, a class without a floor whose head is aged, and one
// that wants more tokens than its floor.
func TestNoLeaseTwoHeads(t *testing.T) {
	r := NewRule(Settings{
		Classes: []Class{
			{Name: "free", Share: 10 * Percent, AgeAfter: time.Second},
			{Name: "floor", Share: 90 * Percent, Floor: 50 * Percent},
		},
		Limits: []Limit{{Tokens, 1000, time.Minute}}, Concurrency: 1, Buckets: 60, HalfLife: time.Minute,
	})
	r.Advance(10 * time.Second)
	small, large := Vec{Tokens: 100, Leases: 1}, Vec{Tokens: 600, Leases: 1}
	r.SetDemand(0, Demand{Count: 1, Queued: small, Head: small, HeadTried: true})
	r.SetDemand(1, Demand{Count: 1, Queued: large, Head: large, HeadTried: true})
	if !r.May(&Ask{Class: 0, Cost: small}).Go {
		t.Error("the aged head of the class without a floor may not go")
	}
	if r.May(&Ask{Class: 1, Cost: large}).Go {
		t.Error("it does not go first")
	}
}
