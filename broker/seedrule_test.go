package broker

import (
	"math/rand/v2"
	"testing"
	"time"

	"quotabroker/wire"
)

// This file is for readers: the rule that this product was first sketched with, why
// it is not the one that is built, and what ours does with the same asks. Figures
// are per cent of the quota; the order is interactive, background, batch.

var (
	seedShares = [3]int{70, 20, 10}
	seedFloors = [3]int{70, 10, 5}
)

// seedAdmit is the sketch: a class may always use its own share; above it, it may
// borrow what neither use nor the unmet floors of classes with a larger share claim.
func seedAdmit(used [3]int, c, x int) bool {
	if used[c]+x <= seedShares[c] {
		return true
	}
	free := 100 - used[0] - used[1] - used[2]
	for e := range used {
		if seedShares[e] > seedShares[c] {
			free -= max(0, seedFloors[e]-used[e])
		}
	}
	return x <= free
}

// seedReach visits every state that the sketch admits from one, in steps of 1 %.
func seedReach(from [3]int) map[[3]int]bool {
	seen := map[[3]int]bool{from: true}
	for queue := [][3]int{from}; len(queue) > 0; queue = queue[1:] {
		for c := range seedShares {
			next := queue[0]
			if next[c]++; seedAdmit(queue[0], c, 1) && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return seen
}

// ourPool is the same three classes under our rule, with nothing learned.
func ourPool() *Broker {
	return smallPool(func(cfg *Config) {
		for i := range cfg.Classes {
			cfg.Classes[i].ReserveMin, cfg.Classes[i].ReserveMax = 0, 0
			cfg.Classes[i].MaxWait = 0
		}
	})
}

// oursGives asks for 1 % after the other for class c until it holds want or is told
// to wait, and returns what it holds then.
func oursGives(t *testing.T, b *Broker, now time.Duration, c, want int) int {
	t.Helper()
	for used(b, c) < want {
		d := must(t, b, now, Ask{Source: sourceOf[c], Cost: tokens(1000), Deadline: -1})
		if d.Verdict == wire.Grant {
			continue
		}
		if reply, _, err := b.Cancel(origin.Add(now), sourceOf[c], wire.CancelRequest{Ticket: d.Ticket}); err != nil || !reply.Cancelled {
			t.Fatalf("the ticket is not taken back: %v", err)
		}
		break
	}
	return used(b, c)
}

func used(b *Broker, c int) int    { return int(b.rule.StandingAt(0, c).Used / 1000) }
func usedTotal(b *Broker) int      { return int(b.rule.LimitAt(0).Used / 1000) }
func usedAll(b *Broker) (u [3]int) { return [3]int{used(b, 0), used(b, 1), used(b, 2)} }
func sketchTotal(used [3]int) int  { return used[0] + used[1] + used[2] }

// TestSketchPassesTheQuota follows two orders of asks, every one of which the sketch
// admits, to 110 % and to 130 %, and searches all that it admits for more. The same
// asks of our rule end at 100 % at most.
func TestSketchPassesTheQuota(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		order []int // of the classes
		wants [3]int
		total int
	}{
		{"background borrows, then everybody takes its own share", []int{1, 2, 0}, [3]int{70, 30, 10}, 110},
		{"interactive borrows everything, then the others take their shares", []int{0, 1, 2}, [3]int{100, 20, 10}, 130},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sketch [3]int
			b := ourPool()
			for _, c := range tc.order {
				for sketch[c] < tc.wants[c] {
					if !seedAdmit(sketch, c, 1) {
						t.Fatalf("the sketch stops class %d at %v", c, sketch)
					}
					sketch[c]++
				}
				oursGives(t, b, 0, c, tc.wants[c])
			}
			if got := sketchTotal(sketch); got != tc.total {
				t.Errorf("the sketch admits %d %%, want %d %%", got, tc.total)
			}
			t.Logf("the sketch admits %v, %d %%; ours %v, %d %%", sketch, sketchTotal(sketch), usedAll(b), usedTotal(b))
			if usedTotal(b) > 100 {
				t.Errorf("ours admits %d %%", usedTotal(b))
			}
		})
	}
	worst := 0
	states := seedReach([3]int{})
	for used := range states {
		worst = max(worst, sketchTotal(used))
	}
	if len(states) != 49_591 || worst != 130 {
		t.Errorf("the sketch reaches %d states, the fullest at %d %%; want 49591 and 130 %%", len(states), worst)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 60 { // ours, asked for everything in any order
		b := ourPool()
		for range 400 {
			c := rnd.IntN(3)
			oursGives(t, b, time.Duration(rnd.Int64N(int64(time.Minute))), c, used(b, c)+1)
			if usedTotal(b) > 100 {
				t.Fatalf("ours admits %v", usedAll(b))
			}
		}
	}
}

// TestSketchDoesNotLend asks how much batch can hold while interactive holds little:
// the sketch was meant to let it use 80 %, and lets it use 20 at most, since it
// borrows only what no floor claims, idle or not. Ours lends all that is idle, paced
// (here without a reserve, which would stay out of it).
func TestSketchDoesNotLend(t *testing.T) {
	t.Parallel()
	for _, interactive := range []int{0, 10, 30, 50, 70} {
		most := 0
		for used := range seedReach([3]int{interactive, 0, 0}) {
			if used[0] == interactive && used[1] == 0 {
				most = max(most, used[2])
			}
		}
		b := ourPool()
		oursGives(t, b, 0, 0, interactive)
		now := time.Duration(0)
		for range 59 * 10 { // paced, so that it comes back level
			now += 100 * time.Millisecond
			oursGives(t, b, now, 2, 100)
		}
		t.Logf("interactive holds %d %%: the sketch lets batch have %d %%, ours %d %%", interactive, most, used(b, 2))
		if most != 20 {
			t.Errorf("interactive at %d %%: the sketch lets batch have %d %%, want 20", interactive, most)
		}
		if got := used(b, 2); got != 100-interactive {
			t.Errorf("interactive at %d %%: ours lets batch have %d %% within a minute", interactive, got)
		}
	}
	most := 0
	for used := range seedReach([3]int{0, 20, 0}) {
		if used[0] == 0 && used[1] == 20 {
			most = max(most, used[2])
		}
	}
	if most != 10 {
		t.Errorf("background at 20 %%: the sketch lets batch have %d %%, want 10", most)
	}
}
