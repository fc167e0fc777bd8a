package wire_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quotabroker/wire"
)

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "default": true, "A-b_9": true, "-": true, strings.Repeat("x", 32): true,
		"": false, strings.Repeat("x", 33): false, "a.b": false, "*": false, ">": false, "a b": false,
		"a:b": false, "ü": false, "a\x00": false, "user@x.com": false, "@": false, "[": false, "`": false, "{": false, "/": false,
	} {
		if got := wire.ValidName(name); got != want {
			t.Errorf("ValidName(%q) is %v", name, got)
		}
	}
}

func TestSubject(t *testing.T) {
	if got := wire.Subject(wire.DefaultPrefix, wire.VerbAcquire, "eval", "default"); got != "quota.v1.acquire.eval.default" {
		t.Error(got)
	}
	if got := wire.Subject("acme.llm", wire.VerbSettle, "*", "p"); got != "acme.llm.v1.settle.*.p" {
		t.Error(got)
	}
}

func TestSplitSubject(t *testing.T) {
	for _, tt := range []struct {
		prefix, subject, verb, source, pool string
		ok                                  bool
	}{
		{"quota", "quota.v1.acquire.eval.default", "acquire", "eval", "default", true},
		{"acme.llm", "acme.llm.v1.settle.api.p-1", "settle", "api", "p-1", true},
		{"quota", "quota.v1.work.eval.default", "work", "eval", "default", true}, // not a verb of this package
		{"quota", "quota.v2.acquire.eval.default", "", "", "", false},
		{"quota", "other.v1.acquire.eval.default", "", "", "", false},
		{"quota", "quotas.v1.acquire.eval.default", "", "", "", false},
		{"quota", "quota.v1.acquire.eval", "", "", "", false},
		{"quota", "quota.v1.acquire.eval.default.more", "", "", "", false},
		{"quota", "quota.v1.acquire", "", "", "", false},
		{"quota", "quota.v1.", "", "", "", false},
		{"quota", "quota.v1..eval.default", "", "", "", false},
		{"quota", "quota.v1.acquire..default", "", "", "", false},
		{"quota", "quota.v1.acquire.eval.", "", "", "", false},
		{"quota", "quota.v1.acquire.*.default", "", "", "", false},
		{"quota", "quota.v1.>.eval.default", "", "", "", false},
		{"quota", "quota.v1.acquire.eval.>", "", "", "", false},
		{"quota", "quota.v1.acquire.e val.default", "", "", "", false},
		{"quota", "", "", "", "", false},
	} {
		verb, source, pool, ok := wire.SplitSubject(tt.prefix, tt.subject)
		if string(verb) != tt.verb || source != tt.source || pool != tt.pool || ok != tt.ok {
			t.Errorf("%q: %q %q %q %v", tt.subject, verb, source, pool, ok)
		}
	}
}

func TestSubjectRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.StringMatching(`[a-z]{1,8}(\.[a-z]{1,8})?`).Draw(t, "prefix")
		verb := rapid.SampledFrom(wire.Verbs()).Draw(t, "verb")
		source, pool := genName().Draw(t, "source"), genName().Draw(t, "pool")
		v, s, p, ok := wire.SplitSubject(prefix, wire.Subject(prefix, verb, source, pool))
		if v != verb || s != source || p != pool || !ok {
			t.Fatalf("%q %q %q %v", v, s, p, ok)
		}
	})
}

// FuzzSplitSubject: what is taken apart is put together again as it was.
func FuzzSplitSubject(f *testing.F) {
	for _, s := range []string{"quota.v1.acquire.eval.default", "quota.v1..a.b", "quota.v1.a.b.c.d", "quota.v1.*.>.x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		verb, source, pool, ok := wire.SplitSubject("quota", subject)
		if !ok {
			if verb != "" || source != "" || pool != "" {
				t.Fatalf("%q is refused, yet gives %q %q %q", subject, verb, source, pool)
			}
			return
		}
		if wire.Subject("quota", verb, source, pool) != subject || strings.Count(subject, ".") != 4 || strings.ContainsAny(subject, "*> ") {
			t.Fatalf("%q is taken for %q %q %q", subject, verb, source, pool)
		}
	})
}
