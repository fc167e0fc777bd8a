package wire

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// field names a field in the sentence of an error: the path of the object it
// stands in, with its dot ("usage."), and its name. The two are joined only when
// there is an error. An empty name means the object itself.
type field struct{ in, name string }

func (f field) path() string {
	if f.name == "" {
		return strings.TrimSuffix(f.in, ".")
	}
	return f.in + f.name
}

// subject is the path as the subject of a sentence.
func (f field) subject() string {
	if p := f.path(); p != "" {
		return p
	}
	return "the body"
}

// bounds are the least and the most a whole number may be.
type bounds struct{ least, most int64 }

var (
	tokenBounds    = bounds{0, MaxTokens}
	durationBounds = bounds{0, MaxDurationMS}
	amountBounds   = bounds{0, MaxLimitAmount}
	statusBounds   = bounds{0, 999}
	countBounds    = bounds{0, math.MaxInt64}
	anyInteger     = bounds{math.MinInt64, math.MaxInt64}
)

func (b bounds) check(f field, v int64) *Error {
	if v < b.least {
		return b.tooLow(f, strconv.FormatInt(v, 10))
	}
	if v > b.most {
		return b.tooHigh(f, strconv.FormatInt(v, 10))
	}
	return nil
}

func (b bounds) tooLow(f field, lit string) *Error {
	if b.least == 0 {
		return BadField(f.path(), "%s is %s; it must be 0 or more", f.path(), lit)
	}
	return BadField(f.path(), "%s is %s; it must be at least %d", f.path(), lit, b.least)
}

func (b bounds) tooHigh(f field, lit string) *Error {
	return BadField(f.path(), "%s is %s; it must be at most %d", f.path(), lit, b.most)
}

// checkText is what every free text must pass, from the wire or built in Go.
func checkText(f field, text string, most int) *Error {
	if len(text) > most {
		return tooLong(f, len(text), most)
	}
	if !utf8.ValidString(text) {
		return BadField(f.path(), "%s is %s; it must be valid UTF-8", f.path(), show([]byte(text)))
	}
	return nil
}

func tooLong(f field, length, most int) *Error {
	return BadField(f.path(), "%s is %d bytes long; it must be at most %d", f.path(), length, most)
}

func missing(f field, want string) *Error {
	return BadField(f.path(), "%s is missing; it must be %s", f.path(), want)
}

// show quotes text for a sentence: short, on one line, printable.
func show(text []byte) string { return strconv.Quote(string(clip(text))) }

// syntax makes the error for a text that is not JSON, or nests too deep, at pos.
func (s *scanner) syntax(f field, p problem) *Error {
	switch {
	case p == tooDeep:
		return BadField(f.path(), "%s nests deeper than %d levels, at byte %d", f.subject(), maxDepth, s.pos)
	case p == noValue && s.pos < len(s.data):
		return BadField(f.path(), "%s is not valid JSON: no value starts with %q, at byte %d", f.subject(), s.data[s.pos:s.pos+1], s.pos)
	}
	return BadField(f.path(), "%s is not valid JSON: %s, at byte %d", f.subject(), p, s.pos)
}

// mismatch makes the error for a value of another kind than the field wants.
func (s *scanner) mismatch(f field, want string) *Error {
	found := ""
	switch s.kind() {
	case kindNone:
		return s.syntax(f, s.missing(noValue))
	case kindNull:
		found = "null"
	case kindString:
		raw, _, p := s.str()
		if p != "" {
			return s.syntax(f, p)
		}
		found = show(raw) + ", a string"
	case kindNumber:
		lit, _, p := s.number()
		if p != "" {
			return s.syntax(f, p)
		}
		found = string(clip(lit)) + ", a number"
	case kindBool:
		found = "true, a boolean"
		if s.at('f') {
			found = "false, a boolean"
		}
	case kindObject:
		found = "an object"
	case kindArray:
		found = "an array"
	}
	return BadField(f.path(), "%s is %s; it must be %s", f.subject(), found, want)
}

// null takes a null, if that is what stands here.
func (s *scanner) null(f field) (bool, *Error) {
	if s.next() != 'n' {
		return false, nil
	}
	if p := s.literal("null"); p != "" {
		return false, s.syntax(f, p)
	}
	return true, nil
}

// open takes the brace of an object. present is false for a null.
func (s *scanner) open(f field) (present bool, err *Error) {
	if s.next() == '{' {
		s.pos++
		return true, nil
	}
	if null, err := s.null(f); null || err != nil {
		return false, err
	}
	return false, s.mismatch(f, "an object")
}

// openBody takes the brace of the message itself, which must be there.
func (s *scanner) openBody() *Error {
	if s.next() == '{' {
		s.pos++
		return nil
	}
	if s.pos == len(s.data) {
		return BadField("", "the body is empty; it must be a JSON object")
	}
	return s.mismatch(field{}, "a JSON object")
}

// closeBody checks that nothing follows the message.
func (s *scanner) closeBody() *Error {
	if s.next(); s.pos < len(s.data) {
		return s.syntax(field{}, hasTail)
	}
	return nil
}

// member takes an object's next field name and its colon; done says that the
// object has ended instead. It knows the first field by the brace right before
// it, which is the last byte of no value.
func (s *scanner) member(in string) (name []byte, done bool, err *Error) {
	first := s.data[s.pos-1] == '{'
	switch c := s.next(); {
	case c == '}':
		s.pos++
		return nil, true, nil
	case c == ',' && !first:
		s.pos++
	case !first:
		return nil, false, s.syntax(field{in: in}, s.missing(noComma))
	}
	raw, escaped, p := s.name()
	if p != "" {
		return nil, false, s.syntax(field{in: in}, p)
	}
	if escaped {
		raw, _ = unescape(raw)
	}
	return raw, false, nil
}

// ignore takes the value of a field that this version does not know.
func (s *scanner) ignore(in string) *Error {
	if p := s.skip(); p != "" {
		return s.syntax(field{in: in}, p)
	}
	return nil
}

// digitsOf takes a whole number apart; over says that it passes 64 bits. present
// is false for a null. 12.0 and 1e3 are refused: a producer that writes them
// computes in floating point, and would one day write 1e21.
func (s *scanner) digitsOf(f field) (lit []byte, size uint64, over, present bool, err *Error) {
	if s.kind() != kindNumber {
		null, err := s.null(f)
		if !null && err == nil {
			err = s.mismatch(f, "a whole number")
		}
		return nil, 0, false, false, err
	}
	lit, plain, p := s.number()
	if p != "" {
		return nil, 0, false, false, s.syntax(f, p)
	}
	if !plain {
		return nil, 0, false, false, BadField(f.path(), "%s is %s; it must be a whole number in plain digits, without a point or an exponent", f.path(), clip(lit))
	}
	for _, c := range lit {
		if c == '-' {
			continue
		}
		d := uint64(c - '0')
		if size > (math.MaxUint64-d)/10 {
			return lit, 0, true, true, nil
		}
		size = size*10 + d
	}
	return lit, size, false, true, nil
}

// integer reads a whole number within b; null is absent.
func (s *scanner) integer(f field, b bounds) (OptInt, *Error) {
	lit, size, over, present, err := s.digitsOf(f)
	if err != nil || !present {
		return OptInt{}, err
	}
	if lit[0] == '-' {
		if over || size > 1<<63 || int64(-size) < b.least {
			return OptInt{}, b.tooLow(f, string(clip(lit)))
		}
		return Int(int64(-size)), nil
	}
	if over || size > uint64(b.most) {
		return OptInt{}, b.tooHigh(f, string(clip(lit)))
	}
	return Int(int64(size)), nil
}

// unsigned reads a whole number of 64 bits, 0 or more; null is 0.
func (s *scanner) unsigned(f field) (uint64, *Error) {
	lit, size, over, present, err := s.digitsOf(f)
	switch {
	case err != nil || !present:
		return 0, err
	case lit[0] == '-' && (over || size > 0):
		return 0, countBounds.tooLow(f, string(clip(lit)))
	case over:
		return 0, BadField(f.path(), "%s is %s; it must be at most %d", f.path(), clip(lit), uint64(math.MaxUint64))
	}
	return size, nil
}

// boolean reads true or false; null is false.
func (s *scanner) boolean(f field) (v bool, err *Error) {
	if s.kind() != kindBool {
		null, err := s.null(f)
		if !null && err == nil {
			err = s.mismatch(f, "true or false")
		}
		return false, err
	}
	v = s.at('t')
	if p := s.scalar(s.data[s.pos]); p != "" {
		return false, s.syntax(f, p)
	}
	return v, nil
}

// word reads a string as bytes, a view where it has no escape; null is nil. A
// string of half a surrogate pair is refused.
func (s *scanner) word(f field) ([]byte, *Error) {
	if s.next() != '"' {
		null, err := s.null(f)
		if !null && err == nil {
			err = s.mismatch(f, "a string")
		}
		return nil, err
	}
	raw, escaped, p := s.str()
	if p != "" {
		return nil, s.syntax(f, p)
	}
	if !escaped {
		return raw, nil
	}
	text, ok := unescape(raw)
	if !ok {
		return nil, BadField(f.path(), "%s holds half of a surrogate pair; it must be valid UTF-8", f.path())
	}
	return text, nil
}

// text reads a free text of at most most bytes; null is "".
func (s *scanner) text(f field, most int) (string, *Error) {
	word, err := s.word(f)
	if err != nil || len(word) == 0 {
		return "", err
	}
	if len(word) > most {
		return "", tooLong(f, len(word), most)
	}
	text := string(word)
	return text, checkText(f, text, most)
}

// lease reads a lease id; null and "" are none.
func (s *scanner) lease(f field) (LeaseID, *Error) {
	word, err := s.word(f)
	if err != nil {
		return LeaseID{}, err
	}
	epoch, n, ok := parseID(word, "-")
	if !ok {
		return LeaseID{}, badLease(f, word)
	}
	return LeaseID{epoch, n}, nil
}

// ticket reads a ticket id; null and "" are none.
func (s *scanner) ticket(f field) (TicketID, *Error) {
	word, err := s.word(f)
	if err != nil {
		return TicketID{}, err
	}
	epoch, n, ok := parseID(word, "-t")
	if !ok {
		return TicketID{}, badTicket(f, word)
	}
	return TicketID{epoch, n}, nil
}

// choice reads one of names[least:] and returns its index in names; null is 0.
func choice[T ~uint8](s *scanner, f field, names []string, least int) (T, *Error) {
	word, err := s.word(f)
	if err != nil || word == nil {
		return 0, err
	}
	i, err := indexOf(names, least, word, f)
	return T(i), err
}
