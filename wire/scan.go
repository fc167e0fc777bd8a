package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep a value that is not looked into may nest: far above any
// request body.
const maxDepth = 64

// problem says what is wrong with a JSON text, as a clause of an error's
// sentence. The zero problem is none.
type problem string

const (
	endsEarly   problem = "it ends too early"
	noValue     problem = "no value starts so"
	badWord     problem = "a word is neither true nor false nor null"
	noName      problem = "a field name is missing"
	noColon     problem = "a colon is missing"
	noComma     problem = "a comma or a closing bracket is missing"
	rawControl  problem = "a string holds a control character"
	badEscape   problem = "a string holds an escape that JSON does not have"
	leadingZero problem = "a number starts with a needless zero"
	noDigit     problem = "a number lacks a digit"
	hasTail     problem = "something follows the value"
	tooDeep     problem = "it nests too deep" // well-formed, but refused
)

// scanner reads one JSON text (RFC 8259) from front to back. Its methods take
// what they read: after success pos is behind it, after a problem at the fault.
// It holds no memory of its own, so it lives on the caller's stack.
type scanner struct {
	data []byte
	pos  int
}

// kind is the sort of a JSON value, known from its first byte.
type kind uint8

const (
	kindNone kind = iota // no value starts with this byte
	kindNull
	kindBool
	kindNumber
	kindString
	kindObject
	kindArray
)

var kindOf = [256]kind{
	'n': kindNull, 't': kindBool, 'f': kindBool, '"': kindString, '{': kindObject, '[': kindArray, '-': kindNumber,
	'0': kindNumber, '1': kindNumber, '2': kindNumber, '3': kindNumber, '4': kindNumber,
	'5': kindNumber, '6': kindNumber, '7': kindNumber, '8': kindNumber, '9': kindNumber,
}

// next skips white space and returns the byte that stands there, without taking
// it. At the end it returns 0, which starts no value and separates nothing.
func (s *scanner) next() byte {
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.pos++
	}
	return 0
}

// kind skips white space and returns the kind of the value that stands there.
func (s *scanner) kind() kind { return kindOf[s.next()] }

// skip takes any one value without looking at what it means. It does not
// recurse: hostile nesting costs one byte a level, and ends at maxDepth.
func (s *scanner) skip() problem {
	var stack [maxDepth]byte
	open := stack[:0] // of each container that is open, the bracket that closes it
	for {
		c := s.next()
		if c != '{' && c != '[' {
			if p := s.scalar(c); p != "" {
				return p
			}
		} else {
			if len(open) == maxDepth {
				return tooDeep
			}
			s.pos++
			open = append(open, c+2) // in ASCII, '{'+2 is '}' and '['+2 is ']'
			if s.next() != c+2 {
				if c == '{' {
					if _, _, p := s.name(); p != "" {
						return p
					}
				}
				continue // to the container's first value
			}
		}
		for len(open) > 0 && s.next() == open[len(open)-1] {
			s.pos++
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return ""
		}
		if s.next() != ',' {
			return s.missing(noComma)
		}
		s.pos++
		if open[len(open)-1] == '}' {
			if _, _, p := s.name(); p != "" {
				return p
			}
		}
	}
}

// missing is p, or endsEarly where the text has ended.
func (s *scanner) missing(p problem) problem {
	if s.pos == len(s.data) {
		return endsEarly
	}
	return p
}

// scalar takes a value that is no container and starts with c.
func (s *scanner) scalar(c byte) problem {
	switch kindOf[c] {
	case kindString:
		_, _, p := s.str()
		return p
	case kindNumber:
		_, _, p := s.number()
		return p
	case kindNull:
		return s.literal("null")
	case kindBool:
		if c == 't' {
			return s.literal("true")
		}
		return s.literal("false")
	default:
		return s.missing(noValue)
	}
}

func (s *scanner) literal(word string) problem {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return badWord
	}
	s.pos += len(word)
	return ""
}

// name takes a field name and its colon. See str for what is returned.
func (s *scanner) name() (raw []byte, escaped bool, p problem) {
	if s.next() != '"' {
		return nil, false, s.missing(noName)
	}
	raw, escaped, p = s.str()
	if p != "" {
		return nil, false, p
	}
	if s.next() != ':' {
		return nil, false, s.missing(noColon)
	}
	s.pos++
	return raw, escaped, ""
}

// str takes the string that starts at pos and returns what stands between its
// quotes, a view; escaped says that [unescape] must still be applied. Bytes that
// are no UTF-8 pass: the callers that care look for them.
func (s *scanner) str() (raw []byte, escaped bool, p problem) {
	start := s.pos + 1
	i := start
	for {
		i += plainRun(s.data[i:])
		if i >= len(s.data) {
			s.pos = len(s.data)
			return nil, false, endsEarly
		}
		switch s.data[i] {
		case '"':
			s.pos = i + 1
			return s.data[start:i], escaped, ""
		case '\\':
			n := escapeLen(s.data[i:])
			if n == 0 {
				s.pos = i
				return nil, false, badEscape
			}
			escaped = true
			i += n
		default:
			s.pos = i
			return nil, false, rawControl
		}
	}
}

// plainRun returns the length of the prefix of b that holds no quote, no
// backslash and no control character. Prompts are long, so it looks at eight
// bytes at a time: the high bit of a byte of the mask is set where that byte of
// w equals the quote, equals the backslash, or is below a blank. A borrow can
// set bits wrongly, but only above one that is set rightly, and the lowest wins.
func plainRun(b []byte) int {
	const (
		ones = 0x0101010101010101
		high = 0x8080808080808080
	)
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		q := w ^ ones*'"'
		e := w ^ ones*'\\'
		mask := ((q-ones)&^q | (e-ones)&^e | (w-ones*' ')&^w) & high
		if mask != 0 {
			return i + bits.TrailingZeros64(mask)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return i
}

// escapeLen returns the length of the escape at the start of b, 0 when JSON has
// no such escape.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads an escape of the form \u18a3 at the start of b.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape returns what raw, the inside of a string that str has accepted,
// stands for. ok is false when it names half of a surrogate pair, which no UTF-8
// can hold; a replacement character would make one name of two.
func unescape(raw []byte) (text []byte, ok bool) {
	text, ok = make([]byte, 0, len(raw)), true
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			text = append(text, c)
			i++
			continue
		}
		switch c := raw[i+1]; c {
		case 'u':
			r, _ := hex4(raw[i:])
			if utf16.IsSurrogate(r) {
				low, _ := hex4(raw[i+6:])
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				} else {
					ok = false
				}
			}
			text = utf8.AppendRune(text, r)
			i += 4
		case 'b':
			text = append(text, '\b')
		case 'f':
			text = append(text, '\f')
		case 'n':
			text = append(text, '\n')
		case 'r':
			text = append(text, '\r')
		case 't':
			text = append(text, '\t')
		default:
			text = append(text, c)
		}
		i += 2
	}
	return text, ok
}

// number takes the number that starts at pos and returns it as it is written;
// plain says that it has neither a fraction nor an exponent.
func (s *scanner) number() (lit []byte, plain bool, p problem) {
	start := s.pos
	if s.data[s.pos] == '-' {
		s.pos++
	}
	first := s.pos
	if s.digits() == 0 {
		return nil, false, noDigit
	}
	if s.data[first] == '0' && s.pos > first+1 {
		s.pos = first
		return nil, false, leadingZero
	}
	plain = true
	if s.at('.') {
		plain = false
		s.pos++
		if s.digits() == 0 {
			return nil, false, noDigit
		}
	}
	if s.at('e') || s.at('E') {
		plain = false
		s.pos++
		if s.at('+') || s.at('-') {
			s.pos++
		}
		if s.digits() == 0 {
			return nil, false, noDigit
		}
	}
	return s.data[start:s.pos], plain, ""
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.data) && s.data[s.pos] == c }

// digits takes what digits there are and returns how many.
func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos - start
}
