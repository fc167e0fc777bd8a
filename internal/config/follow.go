package config

import (
	"slices"
	"strings"

	"quotabroker/broker"
	"quotabroker/classes"
)

// restsOn names, for each key of a pool whose value is checked, the other keys that
// the check looks at; of a list or a table it is the check of all of it.
var restsOn = map[string][]string{
	"limits": nil, "tenant_limits": nil, "margin": nil, "guard": nil, "concurrency": nil, "confirm": nil,
	"max_defer": nil, "claim": nil, "max_ttl": nil, "near": nil, "reserve_half_life": nil, "buckets": nil,
	"ageing": nil, "classes": nil, "tiers": nil,
	"lease_ttl":    {"max_ttl"},
	"grace":        {"claim"},
	"tenant_share": {"concurrency"},
}

// restsInRow is the same for the keys of a class or a tier.
var restsInRow = map[string][]string{
	"share": nil, "pace": nil, "book": nil, "max_wait": nil, "max_waiting": nil, "max_waiting_tokens": nil,
	"age_after": nil, "base": nil,
	"floor":   {"share"},
	"reserve": {"floor"},
}

// mayFollow reports whether a problem of a pool's value may only follow from what
// could not be read: the value itself, or one that its check rests on.
func (r *report) mayFollow(pool, path string) bool {
	above := parent(path)
	if strings.HasSuffix(path, "]") { // an item is checked as its list is
		above = parent(above)
	}
	rests, known := restsOn, poolKeys(&Pool{})
	switch parent(above) {
	case pool + ".classes":
		rests, known = restsInRow, classKeys(&classes.Class{})
	case pool + ".tiers":
		rests, known = restsInRow, tierKeys(&broker.Tier{})
	default:
		if above != pool {
			return r.anyUnread(parent(path))
		}
	}
	key, _, _ := strings.Cut(strings.TrimPrefix(path, above+"."), "[")
	others, ok := rests[key]
	if !ok {
		return r.anyUnread(above)
	}
	return r.anyUnread(path) || len(others) > 0 && r.anyMisspelt(above, known) ||
		slices.ContainsFunc(others, func(other string) bool { return r.anyUnread(join(above, other)) })
}

// anyMisspelt reports whether a section has an unknown key, which may be any of its
// keys misspelt.
func (r *report) anyMisspelt(at string, known section) bool {
	return slices.ContainsFunc(r.unread, func(path string) bool {
		key, ok := strings.CutPrefix(path, at+".")
		_, isKey := known.find(key)
		return ok && parent(path) == at && !isKey
	})
}
