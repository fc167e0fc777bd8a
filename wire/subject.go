package wire

import "strings"

// Version is the protocol version, the second token of every subject.
const Version = "v1"

// DefaultPrefix is the first token of every subject unless configured otherwise.
const DefaultPrefix = "quota"

// Verb is what a message asks for: the third token of a subject.
type Verb string

// The verbs of protocol §1 that are requests.
const (
	VerbAcquire  Verb = "acquire"
	VerbSettle   Verb = "settle"
	VerbRenew    Verb = "renew"
	VerbCancel   Verb = "cancel"
	VerbEstimate Verb = "estimate"
	VerbExplain  Verb = "explain"
	VerbStatus   Verb = "status"
)

// Verbs lists the request verbs, in the order a reader meets them.
func Verbs() []Verb {
	return []Verb{VerbAcquire, VerbSettle, VerbRenew, VerbCancel, VerbEstimate, VerbExplain, VerbStatus}
}

// MaxNameBytes is the longest a source, pool or class name may be.
const MaxNameBytes = 32

// ValidName reports whether s may name a source, a pool or a class:
// [A-Za-z0-9_-]{1,32}. Such a name is always one legal subject token.
func ValidName(s string) bool {
	if len(s) == 0 || len(s) > MaxNameBytes {
		return false
	}
	for i := range len(s) {
		c := s[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
		if !ok {
			return false
		}
	}
	return true
}

// Subject returns <prefix>.v1.<verb>.<source>.<pool>. "*" is accepted for
// source, so that a service can subscribe.
func Subject(prefix string, verb Verb, source, pool string) string {
	return prefix + "." + Version + "." + string(verb) + "." + source + "." + pool
}

// SplitSubject takes a subject apart. ok is false when it is not one of ours
// under the prefix, or when verb, source or pool is not a [ValidName]. The verb
// need not be one of [Verbs].
func SplitSubject(prefix, subject string) (verb Verb, source, pool string, ok bool) {
	rest, ok := strings.CutPrefix(subject, prefix+"."+Version+".")
	if !ok {
		return "", "", "", false
	}
	v, rest, ok := strings.Cut(rest, ".")
	if !ok || !ValidName(v) {
		return "", "", "", false
	}
	source, pool, ok = strings.Cut(rest, ".")
	if !ok || !ValidName(source) || !ValidName(pool) {
		return "", "", "", false
	}
	return Verb(v), source, pool, true
}
