package wire

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// LeaseID names a lease: the epoch of the broker that granted it and a number
// unique within the epoch. On the wire it is "<epoch>-<hex number>", "7-18a3".
// The zero LeaseID names none.
type LeaseID struct{ Epoch, N uint64 }

// TicketID names a waiting place: "<epoch>-t<hex number>", "7-t42". The zero
// TicketID names none.
type TicketID struct{ Epoch, N uint64 }

// IsZero reports whether the id names no lease.
func (id LeaseID) IsZero() bool { return id.N == 0 }

// IsZero reports whether the id names no ticket.
func (id TicketID) IsZero() bool { return id.N == 0 }

// AppendText implements [encoding.TextAppender].
func (id LeaseID) AppendText(b []byte) ([]byte, error) { return appendID(b, id.Epoch, "-", id.N), nil }

// AppendText implements [encoding.TextAppender].
func (id TicketID) AppendText(b []byte) ([]byte, error) {
	return appendID(b, id.Epoch, "-t", id.N), nil
}

// MarshalText implements [encoding.TextMarshaler].
func (id LeaseID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// MarshalText implements [encoding.TextMarshaler].
func (id TicketID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// String returns the form sent on the wire, "" for the zero id.
func (id LeaseID) String() string { return string(appendID(nil, id.Epoch, "-", id.N)) }

// String returns the form sent on the wire, "" for the zero id.
func (id TicketID) String() string { return string(appendID(nil, id.Epoch, "-t", id.N)) }

// UnmarshalText implements [encoding.TextUnmarshaler]. "" is the zero id; any
// text that no broker sends is an error that names the field lease.
func (id *LeaseID) UnmarshalText(text []byte) error {
	epoch, n, ok := parseID(text, "-")
	if !ok {
		return badLease(field{name: "lease"}, text)
	}
	*id = LeaseID{epoch, n}
	return nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]. "" is the zero id; any
// text that no broker sends is an error that names the field ticket.
func (id *TicketID) UnmarshalText(text []byte) error {
	epoch, n, ok := parseID(text, "-t")
	if !ok {
		return badTicket(field{name: "ticket"}, text)
	}
	*id = TicketID{epoch, n}
	return nil
}

func appendID(b []byte, epoch uint64, sep string, n uint64) []byte {
	if n == 0 {
		return b
	}
	b = strconv.AppendUint(b, epoch, 10)
	b = append(b, sep...)
	return strconv.AppendUint(b, n, 16)
}

func badLease(f field, text []byte) *Error {
	return BadField(f.path(), "%s is %s; it must be an id from a grant, like 7-18a3", f.path(), show(text))
}

func badTicket(f field, text []byte) *Error {
	return BadField(f.path(), "%s is %s; it must be an id from a defer, like 7-t42", f.path(), show(text))
}

// parseID accepts exactly what appendID writes, so that one lease has one name:
// no needless zeros, no capitals, no sign.
func parseID(text []byte, sep string) (epoch, n uint64, ok bool) {
	if len(text) == 0 {
		return 0, 0, true
	}
	i := 0
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		d := uint64(text[i] - '0')
		if epoch > (math.MaxUint64-d)/10 {
			return 0, 0, false
		}
		epoch = epoch*10 + d
	}
	if i == 0 || i > 1 && text[0] == '0' || !bytes.HasPrefix(text[i:], []byte(sep)) {
		return 0, 0, false
	}
	hex := text[i+len(sep):]
	if len(hex) == 0 || len(hex) > 16 || hex[0] == '0' {
		return 0, 0, false
	}
	for _, c := range hex {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, 0, false
		}
		n = n<<4 | uint64(c)
	}
	return epoch, n, true
}

// clip shortens hostile text for a sentence.
func clip(text []byte) []byte {
	const most = 64
	if len(text) <= most {
		return text
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return append(append([]byte{}, text[:end]...), "..."...)
}
