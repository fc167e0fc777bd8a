package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Code is a machine-readable error code of protocol §6.
type Code string

// The error codes. A normal defer or refusal is not an error.
const (
	CodeBadRequest      Code = "bad_request"
	CodeForbidden       Code = "forbidden"
	CodeUnknownSource   Code = "unknown_source"
	CodeUnknownPool     Code = "unknown_pool"
	CodeUnknownLease    Code = "unknown_lease"
	CodeAlreadySettled  Code = "already_settled"
	CodePayloadTooLarge Code = "payload_too_large"
	CodeInternal        Code = "internal"
	CodeUnavailable     Code = "unavailable"
)

// Status returns the number sent in the Nats-Service-Error-Code header; 500 for
// a code this package does not know.
func (c Code) Status() int {
	switch c {
	case CodeBadRequest:
		return 400
	case CodeForbidden:
		return 403
	case CodeUnknownSource, CodeUnknownPool, CodeUnknownLease:
		return 404
	case CodeAlreadySettled:
		return 409
	case CodePayloadTooLarge:
		return 413
	case CodeUnavailable:
		return 503
	case CodeInternal:
		return 500
	}
	return 500
}

// Error is the one error shape of the protocol. Message is a whole sentence for
// a person: it names the field, the value and what would be right. Field is ""
// where no single field is at fault.
type Error struct {
	Code    Code   `json:"code"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Error returns the code and the sentence.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Is reports whether target is an *Error of the same code, so that
// errors.Is(err, &wire.Error{Code: wire.CodeUnknownLease}) works on a wrapped error.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Field == "" || t.Field == e.Field)
}

// ErrorBody is the body of an error reply.
type ErrorBody struct {
	Error *Error `json:"error"`
}

// Errorf makes an error of the given code that no single field is at fault for.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// BadField makes a bad_request error about one field.
func BadField(field, format string, args ...any) *Error {
	return &Error{Code: CodeBadRequest, Field: field, Message: fmt.Sprintf(format, args...)}
}

// indexOf finds a word in names[least:] and says which words there are when it
// is not one of them. Where names[0] is "" and least is 0, the empty word is one.
func indexOf(names []string, least int, word []byte, f field) (int, *Error) {
	for i := least; i < len(names); i++ {
		if names[i] == string(word) {
			return i, nil
		}
	}
	return 0, BadField(f.path(), "%s is %s; it must be %s", f.path(), show(word), oneOf(names))
}

func oneOf(names []string) string {
	known := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "" })
	return "one of " + strings.Join(known, ", ")
}
