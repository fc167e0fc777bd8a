package client

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestAllowanceNeverPassesItsCap drives an allowance with takes and settlements at
// random times, and checks it against the plain list of what was granted: in no
// minute, wherever it starts, more than the cap. A settlement that used less frees
// its difference; one that used more is charged, and is the only thing that can
// bring a minute above the cap, by nobody's grant.
func TestAllowanceNeverPassesItsCap(t *testing.T) {
	type granted struct {
		at     time.Time
		charge *charge
		tokens int64 // granted, or used where that was less
	}
	rapid.Check(t, func(t *rapid.T) {
		perMinute := rapid.Int64Range(1, 1000).Draw(t, "cap")
		a := &allowance{perMinute: perMinute}
		now := time.Unix(0, 0)
		var all []*granted
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause")))
			if len(all) > 0 && rapid.IntRange(0, 2).Draw(t, "settle") == 0 {
				g := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
				if g.charge == nil {
					continue // settled before
				}
				used := rapid.Int64Range(0, 2*g.tokens).Draw(t, "used")
				a.settle(now, g.charge, used)
				g.charge, g.tokens = nil, min(g.tokens, used)
				continue
			}
			tokens := rapid.Int64Range(1, perMinute+1).Draw(t, "tokens")
			before := a.mu.used
			c, room := a.take(now, tokens)
			if c == nil {
				if tokens <= perMinute && (room <= 0 || room > localWindow) {
					t.Fatalf("no room for %v", room)
				}
				if tokens <= perMinute && before == 0 {
					t.Fatalf("no room for %d of %d although nothing is used", tokens, perMinute)
				}
				continue
			}
			all = append(all, &granted{at: now, charge: c, tokens: tokens})
			var minute int64
			for _, g := range all {
				if now.Sub(g.at) <= time.Minute {
					minute += g.tokens
				}
			}
			if minute > perMinute {
				t.Fatalf("%d tokens in the minute before %v, the cap is %d", minute, now, perMinute)
			}
		}
		// Nothing is left over: after a quiet window all of it is free again.
		if c, _ := a.take(now.Add(localWindow), perMinute); c == nil {
			t.Fatalf("%d of %d are still used after a quiet window", a.mu.used, perMinute)
		}
	})
}

// TestAllowanceSaysWhenThereIsRoom: at the time it names, and not a nanosecond
// before, the take succeeds.
func TestAllowanceSaysWhenThereIsRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &allowance{perMinute: 100}
		now := time.Unix(0, 0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			tokens := rapid.Int64Range(1, 100).Draw(t, "tokens")
			c, room := a.take(now, tokens)
			if c != nil {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "pause")))
				continue
			}
			if c, _ := a.take(now.Add(room-1), tokens); c != nil {
				t.Fatalf("%d fit earlier than %v from now", tokens, room)
			}
			now = now.Add(room)
			if c, _ := a.take(now, tokens); c == nil {
				t.Fatalf("%d do not fit %v later", tokens, room)
			}
		}
	})
}
