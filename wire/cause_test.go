package wire_test

import (
	"encoding"
	"errors"
	"strings"
	"testing"

	"quotabroker/wire"
)

// word is one of the four vocabularies, as text sees it.
type word interface {
	String() string
	encoding.TextMarshaler
}

// checkWords checks that value i of a vocabulary is words[i], both ways. empty
// says whether the empty word is read as the zero value.
func checkWords[T interface {
	~uint8
	word
}](t *testing.T, unmarshal func(v *T, text []byte) error, field string, empty bool, words ...string) {
	t.Helper()
	for i, want := range append([]string{""}, words...) {
		v := T(i)
		text, err := v.MarshalText()
		if v.String() != want || string(text) != want || err != nil {
			t.Errorf("%s %d is %q, text %q, %v", field, i, v, text, err)
		}
		var back T
		err = unmarshal(&back, []byte(want))
		if ok := i > 0 || empty; (err == nil) != ok || back != v {
			t.Errorf("%s %q is read as %d, %v", field, want, back, err)
		}
	}
	if beyond := T(len(words) + 1); beyond.String() != "" {
		t.Errorf("%s %d has a word: %q", field, beyond, beyond)
	}
	for _, bad := range []string{"nonsense", strings.ToUpper(words[0]), words[0] + " ", "0", "1", strings.Repeat("x", 1<<20), "\xff\n"} {
		v := T(1)
		err := unmarshal(&v, []byte(bad))
		var e *wire.Error
		if !errors.As(err, &e) || e.Field != field || !strings.HasSuffix(e.Message, "must be one of "+strings.Join(words, ", ")) {
			t.Errorf("%s %.20q: %v", field, bad, err)
			continue
		}
		checkError(t, err, wire.CodeBadRequest)
		if v != T(1) {
			t.Errorf("%s %.20q left %d behind", field, bad, v)
		}
	}
}

func TestWords(t *testing.T) {
	checkWords(t, (*wire.Verdict).UnmarshalText, "decision", false, "grant", "defer", "refuse")
	checkWords(t, (*wire.Cause).UnmarshalText, "cause", true,
		"quota", "reserved", "order", "pace", "tenant_limit", "concurrency", "provider_pause", "class_saturated", "queue_full",
		"deadline", "too_large", "no_quota", "account_exhausted", "draining")
	checkWords(t, (*wire.Outcome).UnmarshalText, "outcome", false,
		"ok", "unsent", "failed", "throttled", "overloaded", "exhausted", "unknown")
	checkWords(t, (*wire.Method).UnmarshalText, "method", true, "exact", "counted", "sampled", "fallback", "regression")
}

func TestCauses(t *testing.T) {
	seen := map[string]bool{}
	for i := range wire.NumCauses {
		c := wire.Cause(i)
		if seen[c.String()] {
			t.Errorf("two causes are called %q", c)
		}
		seen[c.String()] = true
		if want := c == wire.CauseTooLarge || c == wire.CauseNoQuota; c.Permanent() != want {
			t.Errorf("%s: Permanent is %v", c, c.Permanent())
		}
	}
	if len(seen) != 15 {
		t.Errorf("%d causes, want those of the protocol and none", len(seen))
	}
}
