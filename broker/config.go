package broker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"quotabroker/classes"
	"quotabroker/wire"
)

// Config is one pool: an account's quota and how it is shared. The zero Config
// is not valid; start from [DefaultConfig]. The broker keeps a reference: treat a
// Config as read-only once given.
type Config struct {
	Pool   string          // the pool's name, a [wire.ValidName]
	Limits []classes.Limit // what the account may use; all must have room for a grant

	Margin classes.Portion // kept free of every limit, for what estimates miss
	Guard  time.Duration   // added to each window: the provider's clock is not ours

	Concurrency int              // most leases in flight; 0: no cap
	TenantShare *classes.Portion // of Concurrency, for one tenant (at least one lease); nil: no cap
	// TenantLimits are rolling limits on each tenant of its own; none: no such limit.
	TenantLimits []classes.Limit

	LeaseTTL time.Duration // how long a lease lasts without renewal, where the ask does not say
	MaxTTL   time.Duration // the most an ask may demand
	Confirm  time.Duration // how long a confirmed grant waits for its confirmation
	MaxDefer time.Duration // the longest retry_after of a deferral
	Claim    time.Duration // a ticket this late stops holding capacity back
	Grace    time.Duration // a ticket this late is dropped
	Near     time.Duration // beyond it a wait is only an estimate, and re-asks are spread
	HalfLife time.Duration // of a reserve's way down
	Buckets  int           // of each window

	Classes []classes.Class   // in order of urgency
	Sources map[string]string // where work enters → its class

	Ageing  time.Duration     // seconds of waiting worth one point of a tier's base
	Tiers   []Tier            // of customers, inside every class; none: one tier
	Tenants map[string]string // tenant → tier; "default" is the tier of all others
}

// Tier is a kind of customer. Inside a class, the job with the least
// base − waited/ageing goes first among the tiers' fair heads.
type Tier struct {
	Name        string
	Base        int64            // points; the smaller the more urgent
	MaxWait     time.Duration    // bounds the class's max_wait; 0: the class's
	TenantShare *classes.Portion // nil: the pool's
}

// DefaultTenant is the key of Config.Tenants that names the tier of every tenant
// without an entry of its own.
const DefaultTenant = "default"

// DefaultConfig returns a pool named default with no limits, the three default
// classes and sources, and every other field at its documented default.
func DefaultConfig() Config {
	return Config{
		Pool:     "default",
		Margin:   2 * classes.Percent,
		Guard:    time.Second,
		LeaseTTL: 2 * time.Minute,
		MaxTTL:   time.Hour,
		Confirm:  2 * time.Second,
		MaxDefer: 30 * time.Second,
		Claim:    500 * time.Millisecond,
		Grace:    time.Minute,
		Near:     10 * time.Second,
		HalfLife: 10 * time.Minute,
		Buckets:  240,
		Classes:  classes.DefaultClasses(),
		Sources:  classes.DefaultSources(),
		Ageing:   6 * time.Second,
	}
}

// Validate returns everything that is wrong with the configuration, with the
// path of the key at fault from the pool down; "sources.…" paths are relative to
// the file. None means that [New] and [Broker.Configure] take it.
func (c *Config) Validate() []classes.Problem {
	v := validator{}
	if !wire.ValidName(c.Pool) {
		v.bad("", "%q is no name for a pool; use 1 to 32 of A-Z, a-z, 0-9, _ and -", c.Pool)
	}
	v.limits("limits", c.Limits)
	if len(c.Limits) == 0 {
		v.bad("limits", "a pool needs at least one limit, like 450k tokens/1m")
	}
	v.limits("tenant_limits", c.TenantLimits)
	if c.Margin < 0 || c.Margin > 50*classes.Percent {
		v.bad("margin", "margin is %s; it must be between 0%% and 50%%", c.Margin)
	}
	if c.Concurrency < 0 || c.Concurrency > 1_000_000 {
		v.bad("concurrency", "concurrency is %d; it must be 0 (no cap) to 1000000", c.Concurrency)
	}
	v.share("tenant_share", c.TenantShare, c.Concurrency)
	v.durations(c)
	if c.Buckets < 6 || c.Buckets > 600 {
		v.bad("buckets", "buckets is %d; it must be between 6 and 600", c.Buckets)
	}
	v.problems = append(v.problems, classes.ValidateClasses(c.Classes)...)
	v.sources(c)
	v.tiers(c)
	return v.problems
}

type validator struct{ problems []classes.Problem }

func (v *validator) bad(path, format string, args ...any) {
	v.problems = append(v.problems, classes.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (v *validator) limits(path string, limits []classes.Limit) {
	if len(limits) > classes.MaxLimits-1 {
		v.bad(path, "there are %d limits; a pool may have at most %d", len(limits), classes.MaxLimits-1)
	}
	for i, l := range limits {
		at := fmt.Sprintf("%s[%d]", path, i)
		if l.Amount < 0 || l.Amount > classes.MaxAmount {
			v.bad(at, "the amount is %d; it must be between 0 and %d", l.Amount, int64(classes.MaxAmount))
		}
		if l.Span < time.Second || l.Span > 31*24*time.Hour {
			v.bad(at, "the span is %s; it must be between 1s and 744h", l.Span)
		}
		for _, other := range limits[:i] {
			if other.Metric == l.Metric && other.Span == l.Span {
				v.bad(at, "%s is limited twice", l)
			}
		}
	}
}

func (v *validator) share(path string, p *classes.Portion, concurrency int) {
	if p == nil {
		return
	}
	if *p < 0 || *p > classes.Whole {
		v.bad(path, "tenant_share is %s; it must be between 0%% and 100%%", *p)
	}
	if concurrency == 0 {
		v.bad(path, "tenant_share is a part of concurrency, and concurrency has no cap; set concurrency too")
	}
}

func (v *validator) durations(c *Config) {
	for _, d := range []struct {
		key         string
		d           time.Duration
		least, most time.Duration
	}{
		{"guard", c.Guard, 0, time.Minute},
		{"lease_ttl", c.LeaseTTL, time.Second, c.MaxTTL},
		{"max_ttl", c.MaxTTL, time.Second, 24 * time.Hour},
		{"confirm", c.Confirm, 10 * time.Millisecond, time.Minute},
		{"max_defer", c.MaxDefer, 100 * time.Millisecond, time.Hour},
		{"claim", c.Claim, 10 * time.Millisecond, time.Minute},
		{"grace", c.Grace, c.Claim, time.Hour},
		{"near", c.Near, time.Second, time.Minute},
		{"reserve_half_life", c.HalfLife, time.Second, 24 * time.Hour},
		{"ageing", c.Ageing, time.Millisecond, time.Hour},
	} {
		if d.d < d.least || d.d > d.most {
			v.bad(d.key, "%s is %s; it must be between %s and %s", d.key, d.d, d.least, d.most)
		}
	}
}

func (v *validator) sources(c *Config) {
	if len(c.Classes) == 0 {
		return // said already, and every source would be wrong with it
	}
	if len(c.Sources) == 0 {
		v.bad("sources", "there are no sources; name where work enters, like api: {class: %s}", c.Classes[0].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		if !wire.ValidName(name) {
			v.bad("sources."+name, "%q is no name for a source; use 1 to 32 of A-Z, a-z, 0-9, _ and -", name)
		}
		class := c.Sources[name]
		if classIndex(c.Classes, class) < 0 {
			v.bad("sources."+name+".class", "source %s has class %q, and pool %s has no such class; it has %s",
				name, class, c.Pool, classNames(c.Classes))
		}
	}
}

func (v *validator) tiers(c *Config) {
	if len(c.Tiers) > 8 {
		v.bad("tiers", "there are %d tiers; a pool may have at most 8", len(c.Tiers))
	}
	for i, t := range c.Tiers {
		at := "tiers." + t.Name
		if !wire.ValidName(t.Name) {
			v.bad(at, "%q is no name for a tier; use 1 to 32 of A-Z, a-z, 0-9, _ and -", t.Name)
		}
		if slices.ContainsFunc(c.Tiers[:i], func(o Tier) bool { return o.Name == t.Name }) {
			v.bad(at, "tier %s is there twice", t.Name)
		}
		if t.Base < 0 || t.Base > 1_000_000 {
			v.bad(at+".base", "%s: base is %d; it must be between 0 and 1000000", t.Name, t.Base)
		}
		if t.MaxWait < 0 || t.MaxWait > 24*time.Hour {
			v.bad(at+".max_wait", "%s: max_wait is %s; it must be between 0s and 24h", t.Name, t.MaxWait)
		}
		v.share(at+".tenant_share", t.TenantShare, c.Concurrency)
	}
	for _, tenant := range slices.Sorted(maps.Keys(c.Tenants)) {
		if tierIndex(c.Tiers, c.Tenants[tenant]) < 0 {
			v.bad("tenants."+tenant, "tenant %s has tier %q, and there is no such tier", tenant, c.Tenants[tenant])
		}
	}
	if len(c.Tiers) > 0 && c.Tenants[DefaultTenant] == "" {
		v.bad("tenants", "tiers are named but not the tier of a tenant without an entry; add default: %s", c.Tiers[len(c.Tiers)-1].Name)
	}
}

func classIndex(table []classes.Class, name string) int {
	return slices.IndexFunc(table, func(c classes.Class) bool { return c.Name == name })
}

func tierIndex(tiers []Tier, name string) int {
	return slices.IndexFunc(tiers, func(t Tier) bool { return t.Name == name })
}

func classNames(table []classes.Class) string {
	s := ""
	for i, c := range table {
		if i > 0 {
			s += ", "
		}
		s += c.Name
	}
	return s
}
