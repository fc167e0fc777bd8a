package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"unicode/utf8"

	"quotabroker/wire"
)

// The reference decoders: slow, plain, and built on encoding/json, so that they
// share nothing with the code under test. They say what is accepted and with
// what value; what an error says is tested by the tables of decode_test.go.

// setter takes one field's value. It is called for every occurrence, so that the
// last wins and each must be right.
type setter func(raw []byte) error

var errRefused = errors.New("refused by the reference")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errRefused}, args...)...)
}

func refObject(raw []byte, fields map[string]setter) error {
	if !json.Valid(raw) {
		return refuse("not valid JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return refuse("%v is no object", t)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		set, known := fields[name.(string)]
		if !known {
			if d := depth(value); d > 64 {
				return refuse("%q nests %d deep", name, d)
			}
			continue
		}
		if err := set(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// depth is how many containers of a valid JSON text are open at once.
func depth(raw []byte) int {
	deepest, open, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			open++
			deepest = max(deepest, open)
		case c == '}' || c == ']':
			open--
		}
	}
	return deepest
}

func isNull(raw []byte) bool { return string(raw) == "null" }

var plainInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func refBig(raw []byte, least, most *big.Int) (v *big.Int, err error) {
	if !plainInteger.Match(raw) {
		return nil, refuse("%s is no plain whole number", raw)
	}
	v, _ = new(big.Int).SetString(string(raw), 10)
	if v.Cmp(least) < 0 || v.Cmp(most) > 0 {
		return nil, refuse("%s is out of range", raw)
	}
	return v, nil
}

func refOpt(into *wire.OptInt, least, most int64) setter {
	return func(raw []byte) error {
		*into = wire.OptInt{}
		if isNull(raw) {
			return nil
		}
		v, err := refBig(raw, big.NewInt(least), big.NewInt(most))
		if err == nil {
			*into = wire.Int(v.Int64())
		}
		return err
	}
}

func refInt(into *int64, least, most int64) setter {
	return func(raw []byte) error {
		var v wire.OptInt
		err := refOpt(&v, least, most)(raw)
		*into = v.Value
		return err
	}
}

func refUint(into *uint64) setter {
	return func(raw []byte) error {
		*into = 0
		if isNull(raw) {
			return nil
		}
		v, err := refBig(raw, new(big.Int), new(big.Int).SetUint64(math.MaxUint64))
		if err == nil {
			*into = v.Uint64()
		}
		return err
	}
}

func refBool(into *bool) setter {
	return func(raw []byte) error {
		*into = string(raw) == "true"
		if *into || isNull(raw) || string(raw) == "false" {
			return nil
		}
		return refuse("%s is no boolean", raw)
	}
}

var surrogateEscape = regexp.MustCompile(`(?i)^\\ud[89a-f]`)

// halfPair says whether a valid JSON string has an escape of half a pair.
func halfPair(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if !surrogateEscape.Match(raw[i:]) {
			i++
			continue
		}
		whole := raw[i:min(i+12, len(raw))]
		var pair string
		if json.Unmarshal([]byte(`"`+string(whole)+`"`), &pair) != nil || utf8.RuneCountInString(pair) != 1 || pair == "\ufffd" {
			return true
		}
		i += 11
	}
	return false
}

func refString(raw []byte, most int) (string, error) {
	if isNull(raw) {
		return "", nil
	}
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", refuse("%s is no string", raw)
	}
	if !utf8.Valid(raw) || halfPair(raw) || len(s) > most {
		return "", refuse("%s is too long or no UTF-8", raw)
	}
	return s, nil
}

func refText(into *string, most int) setter {
	return func(raw []byte) (err error) {
		*into, err = refString(raw, most)
		return err
	}
}

// refWord takes a string that is one of words, the index of which is passed on.
func refWord(set func(i int), words ...string) setter {
	return func(raw []byte) error {
		set(0)
		if isNull(raw) {
			return nil
		}
		s, err := refString(raw, math.MaxInt)
		if err != nil {
			return err
		}
		for i, w := range words {
			if w == s && w != "-" {
				set(i)
				return nil
			}
		}
		return refuse("%q is none of %q", s, words)
	}
}

var (
	leaseForm  = regexp.MustCompile(`^(0|[1-9][0-9]*)-([1-9a-f][0-9a-f]*)$`)
	ticketForm = regexp.MustCompile(`^(0|[1-9][0-9]*)-t([1-9a-f][0-9a-f]*)$`)
)

func refID(form *regexp.Regexp, set func(epoch, n uint64)) setter {
	return func(raw []byte) error {
		set(0, 0)
		s, err := refString(raw, math.MaxInt)
		if err != nil || s == "" {
			return err
		}
		m := form.FindStringSubmatch(s)
		if m == nil {
			return refuse("%q is no id", s)
		}
		epoch, err1 := strconv.ParseUint(m[1], 10, 64)
		n, err2 := strconv.ParseUint(m[2], 16, 64)
		if err1 != nil || err2 != nil {
			return refuse("%q is no id", s)
		}
		set(epoch, n)
		return nil
	}
}

func refLease(into *wire.LeaseID) setter {
	return refID(leaseForm, func(epoch, n uint64) { *into = wire.LeaseID{Epoch: epoch, N: n} })
}

func refTicket(into *wire.TicketID) setter {
	return refID(ticketForm, func(epoch, n uint64) { *into = wire.TicketID{Epoch: epoch, N: n} })
}

// refPart takes an object into a fresh T; null leaves nil.
func refPart[T any](into **T, fields func(*T) map[string]setter) setter {
	return func(raw []byte) error {
		*into = nil
		if isNull(raw) {
			return nil
		}
		part := new(T)
		if err := refObject(raw, fields(part)); err != nil {
			return err
		}
		*into = part
		return nil
	}
}
