package broker

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestWildLives lets everything happen to a pool whose configuration stays: what is
// charged is what the ledger says, exactly.
func TestWildLives(t *testing.T) { wildLives(t, 300, false) }

// TestWildReloads is the same with configurations that change at any moment: limits,
// classes, sources, tiers and caps come and go, and nothing is forgotten.
func TestWildReloads(t *testing.T) { wildLives(t, 300, true) }

func wildLives(t *testing.T, n int, reload bool) {
	var mu sync.Mutex
	met, ended, asked := map[string]int{}, map[string]int{}, 0
	n = histories(n)
	parts := 2 * runtime.GOMAXPROCS(0)
	t.Run("lives", func(t *testing.T) {
		for part := range parts {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := part; seed < n; seed += parts {
					w := newWild(t, uint64(seed), reload)
					w.lives(t, 3*time.Minute)
					mu.Lock()
					asked += w.asked
					for k, v := range w.met {
						met[k] += v
					}
					for k, v := range w.ended {
						ended[k] += v
					}
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d asks: %v; %v", asked, ended, met)
	sum := 0
	for _, n := range ended {
		sum += n
	}
	if sum != asked {
		t.Errorf("%d asks and %d answers", asked, sum)
	}
	for _, what := range []string{
		"asked twice", "settled ok", "settled unsent", "settled unknown", "settled throttled", "settled overloaded", "settled failed",
		"settled late", "settled twice", "contradicted", "forgotten", "overran", "taken back", "given again", "cancelled", "explained grant", "explained defer",
	} {
		if met[what] < histories(20) {
			t.Errorf("%q was met %d times: the lives test nothing", what, met[what])
		}
	}
	for _, how := range []string{
		"grant ", "defer quota", "defer reserved", "defer pace", "defer order", "defer tenant_limit", "defer concurrency", "defer provider_pause",
		"refuse class_saturated", "refuse queue_full", "refuse deadline", "refuse too_large", "refuse draining",
	} {
		if ended[how] == 0 && !testing.Short() {
			t.Errorf("nothing was answered with %q", how)
		}
	}
	if reload && met["configured"] < histories(100) {
		t.Errorf("%d configurations", met["configured"])
	}
}
