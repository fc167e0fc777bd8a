package config

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"quotabroker/broker"
	"quotabroker/classes"
)

// keysOf binds every key of a file, in the order they are shown.
func keysOf(f *File) section {
	inPool := aKeyOf(poolKeys(&Pool{}), "a pool: write it under pools, like pools: {default: {limits: [450k tokens/1m]}}")
	return section{what: "the file", belongs: inPool, fields: []field{
		{"nats", natsKeys(&f.NATS)},
		{"http", section{what: "http", label: "http.", fields: []field{
			{"listen", address(&f.HTTP.Listen)},
		}}},
		{"estimator", section{what: "estimator", label: "estimator.", fields: []field{
			{"default_output", tokens(&f.Estimator.DefaultOutput)},
			{"output_quantile", bind(&f.Estimator.OutputQuantile, parseQuantile, classes.Portion.String)},
			{"fallback_encoding", choice(&f.Estimator.FallbackEncoding, "o200k_base", "cl100k_base")},
			{"image_tokens", tokens(&f.Estimator.ImageTokens)},
		}}},
		{"pools", poolsOf(f)},
		{"sources", sourcesOf(f)},
		{"gateway", ignored{"gateway"}},
		{"jobs", ignored{"jobs"}},
	}}
}

func natsKeys(n *NATS) value {
	x, c := &n.External, &n.Cluster
	unused := func() bool { return n.Mode == ModeExternal && n.Listen == defaultListen }
	return section{what: "nats", label: "nats.", fields: []field{
		{"mode", choice(&n.Mode, ModeEmbedded, ModeCluster, ModeExternal)},
		{"listen", optional{address(&n.Listen), unused}},
		{"store_dir", bind(&n.StoreDir, parseText, formatText)},
		{"prefix", bind(&n.Prefix, parseName, formatText)},
		{"name", unlessZero(&n.Name, bind(&n.Name, parseName, formatText))},
		{"cluster", optional{section{what: "nats.cluster", label: "nats.cluster.", fields: []field{
			{"name", unlessZero(&c.Name, bind(&c.Name, parseName, formatText))},
			{"listen", unlessZero(&c.Listen, address(&c.Listen))},
			{"routes", unlessEmpty(&c.Routes, many[string]{&c.Routes, "[host:6222]", parseAddress, formatText})},
			{"secret_file", filePath(&c.SecretFile)},
		}}, c.empty}},
		{"url", unlessZero(&x.URL, bind(&x.URL, parseServers, formatText))},
		{"creds", filePath(&x.Creds)},
		{"nkey_file", filePath(&x.NkeyFile)},
		{"tls", optional{section{what: "nats.tls", label: "nats.tls.", fields: []field{
			{"ca", filePath(&x.TLS.CA)},
			{"cert", filePath(&x.TLS.Cert)},
			{"key", filePath(&x.TLS.Key)},
		}}, func() bool { return x.TLS == TLS{} }}},
	}, belongs: func(key string) string {
		if key == ModeExternal {
			return "the keys of mode external stand in nats itself: url, creds, nkey_file and tls"
		}
		return ""
	}}
}

func (c *Cluster) empty() bool {
	return c.Name == "" && c.Listen == "" && len(c.Routes) == 0 && c.SecretFile == ""
}

func poolsOf(f *File) named {
	return named{
		example: "default: {limits: [450k tokens/1m]}",
		clear:   func() { clear(f.Pools) },
		names: func() []string {
			var out []string
			for _, p := range f.InOrder() {
				out = append(out, p.Pool)
			}
			return out
		},
		entry: func(name string) value { return poolKeys(f.pool(name)) },
	}
}

func poolKeys(p *Pool) section {
	inClass := aKeyOf(classKeys(&classes.Class{}), "a class: write it under classes, like interactive: {max_wait: 5s}")
	return section{what: "pool " + quote(p.Pool), belongs: inClass, fields: []field{
		{"models", unlessEmpty(&p.Models, many[string]{&p.Models, `["*"]`, parseModel, formatText})},
		{"limits", limits(&p.Limits)},
		{"profile", choice(&p.Profile, profiles...)},
		{"margin", bind(&p.Margin, parsePortion, classes.Portion.String)},
		{"guard", duration(&p.Guard)},
		{"concurrency", count(&p.Concurrency)},
		{"tenant_share", portionOrNil(&p.TenantShare)},
		{"tenant_limits", unlessEmpty(&p.TenantLimits, limits(&p.TenantLimits))},
		{"lease_ttl", duration(&p.LeaseTTL)},
		{"max_ttl", duration(&p.MaxTTL)},
		{"confirm", duration(&p.Confirm)},
		{"max_defer", duration(&p.MaxDefer)},
		{"claim", duration(&p.Claim)},
		{"grace", duration(&p.Grace)},
		{"near", duration(&p.Near)},
		{"reserve_half_life", duration(&p.HalfLife)},
		{"buckets", count(&p.Buckets)},
		{"classes", classesOf(p)},
		{"ageing", duration(&p.Ageing)},
		{"tiers", optional{tiersOf(p), func() bool { return len(p.Tiers) == 0 }}},
		{"tenants", optional{tenantsOf(p), func() bool { return len(p.Tenants) == 0 }}},
	}}
}

func classesOf(p *Pool) named {
	return named{
		example: "interactive: {share: 70%, floor: 70%}",
		clear:   func() { p.Classes = nil },
		names: func() []string {
			var out []string
			for _, c := range p.Classes {
				out = append(out, c.Name)
			}
			return out
		},
		entry: func(name string) value {
			i := slices.IndexFunc(p.Classes, func(c classes.Class) bool { return c.Name == name })
			if i < 0 {
				i = len(p.Classes)
				p.Classes = append(p.Classes, classes.Class{Name: name, MaxWaiting: classes.DefaultMaxWaiting})
			}
			return classKeys(&p.Classes[i])
		},
	}
}

// What a class that does not say otherwise has: a paced class is one that can
// wait, so it is booked further ahead and aged.
const (
	bookPaced   = 3 * time.Second
	bookUnpaced = 1 * time.Second
	agePaced    = 15 * time.Second
)

func classKeys(c *classes.Class) section {
	reserve := one[bounds]{
		func() bounds { return bounds{c.ReserveMin, c.ReserveMax} },
		func(b bounds) { c.ReserveMin, c.ReserveMax = b.low, b.high },
		parseBounds, formatBounds,
	}
	return section{
		what: "class " + quote(c.Name), label: c.Name + ": ", flow: true,
		fields: []field{
			{"share", bind(&c.Share, parsePortion, classes.Portion.String)},
			{"floor", bind(&c.Floor, parsePortion, classes.Portion.String)},
			{"reserve", reserve},
			{"book", duration(&c.Book)},
			{"pace", unlessZero(&c.Pace, duration(&c.Pace))},
			{"max_wait", unlessZero(&c.MaxWait, duration(&c.MaxWait))},
			{"max_waiting", atLeast(1, count(&c.MaxWaiting))},
			{"max_waiting_tokens", unlessZero(&c.MaxWaitingTokens, tokens(&c.MaxWaitingTokens))},
			{"age_after", duration(&c.AgeAfter)},
		},
		then: func(n *node) {
			book, age := bookUnpaced, time.Duration(0)
			if c.Pace > 0 {
				book, age = bookPaced, agePaced
			}
			if n.get("book") == nil {
				c.Book = book
			}
			if n.get("age_after") == nil {
				c.AgeAfter = age
			}
		},
	}
}

func tiersOf(p *Pool) named {
	return named{
		example: "premium: {base: 0, max_wait: 5s}",
		clear:   func() { p.Tiers = nil },
		names: func() []string {
			var out []string
			for _, t := range p.Tiers {
				out = append(out, t.Name)
			}
			return out
		},
		entry: func(name string) value {
			i := slices.IndexFunc(p.Tiers, func(t broker.Tier) bool { return t.Name == name })
			if i < 0 {
				i = len(p.Tiers)
				p.Tiers = append(p.Tiers, broker.Tier{Name: name})
			}
			return tierKeys(&p.Tiers[i])
		},
	}
}

func tierKeys(t *broker.Tier) section {
	return section{what: "tier " + quote(t.Name), label: "tier " + t.Name + ": ", flow: true, fields: []field{
		{"base", one[int64]{func() int64 { return t.Base }, func(n int64) { t.Base = n }, ParseAmount, formatPlain}},
		{"max_wait", unlessZero(&t.MaxWait, duration(&t.MaxWait))},
		{"tenant_share", portionOrNil(&t.TenantShare)},
	}}
}

func tenantsOf(p *Pool) named {
	return named{
		example: "acme: premium",
		clear:   func() { p.Tenants = map[string]string{} },
		names:   func() []string { return sortedKeys(p.Tenants) },
		entry: func(name string) value {
			return one[string]{
				func() string { return p.Tenants[name] },
				func(tier string) { p.Tenants[name] = tier },
				parseText, formatText,
			}
		},
	}
}

func sourcesOf(f *File) named {
	return named{
		example: "api: {class: interactive}",
		clear:   func() { clear(f.Sources) },
		names:   func() []string { return sortedKeys(f.Sources) },
		entry: func(name string) value {
			s := f.source(name)
			return section{what: "source " + quote(name), label: "source " + name + ": ", flow: true, fields: []field{
				{"class", bind(&s.Class, parseText, formatText)},
				{"user", unlessZero(&s.User, bind(&s.User, parseName, formatText))},
				{"password_env", unlessZero(&s.PasswordEnv, bind(&s.PasswordEnv, parseEnvName, formatText))},
				{"password_file", filePath(&s.PasswordFile)},
				{"nkey", unlessZero(&s.Nkey, bind(&s.Nkey, parseNkey, formatText))},
			}}
		},
	}
}

// aKeyOf says of a key that would be right in another section where it belongs.
func aKeyOf(v section, where string) func(key string) string {
	return func(key string) string {
		if _, ok := v.find(key); ok {
			return "it is a key of " + where
		}
		return ""
	}
}

func duration(p *time.Duration) value { return bind(p, parseDuration, formatDuration) }

func address(p *string) value { return bind(p, parseAddress, formatText) }

func filePath(p *string) value { return unlessZero(p, bind(p, parsePath, formatText)) }

func choice(p *string, words ...string) value { return bind(p, parseChoice(words...), formatText) }

func tokens(p *int64) value { return bind(p, ParseAmount, formatAmount) }

func limits(p *[]classes.Limit) value {
	return many[classes.Limit]{p, "[450k tokens/1m, 5k requests/1m]", ParseLimit, formatLimit}
}

func count(p *int) one[int64] {
	return one[int64]{
		func() int64 { return int64(*p) },
		func(n int64) { *p = int(n) },
		ParseAmount, formatPlain,
	}
}

// atLeast refuses smaller amounts.
func atLeast(least int64, o one[int64]) value {
	parse := o.parse
	o.parse = func(text string) (int64, error) {
		n, err := parse(text)
		if err == nil && n < least {
			err = fmt.Errorf("it must be %d or more", least)
		}
		return n, err
	}
	return o
}

func formatPlain(n int64) string { return strconv.FormatInt(n, 10) }

// portionOrNil binds a percentage that may be absent.
func portionOrNil(p **classes.Portion) value {
	return unlessZero(p, one[classes.Portion]{
		func() classes.Portion { return **p },
		func(v classes.Portion) { *p = &v },
		parsePortion, classes.Portion.String,
	})
}

// ignored is a section of a later version: read past, with a warning.
type ignored struct{ key string }

func (i ignored) read(r *report, at spot, _ *node) {
	r.warn(at.path, "%s is not in this version; the section is ignored", i.key)
}

func (i ignored) show() *node { return nil }
