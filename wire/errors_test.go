package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"quotabroker/wire"
)

var errorCodes = []wire.Code{
	wire.CodeBadRequest, wire.CodeForbidden, wire.CodeUnknownSource, wire.CodeUnknownPool, wire.CodeUnknownLease,
	wire.CodeAlreadySettled, wire.CodePayloadTooLarge, wire.CodeInternal, wire.CodeUnavailable,
}

func TestCodeStatus(t *testing.T) {
	want := []int{400, 403, 404, 404, 404, 409, 413, 500, 503}
	for i, code := range errorCodes {
		if code.Status() != want[i] {
			t.Errorf("%s: %d, want %d", code, code.Status(), want[i])
		}
	}
	if got := wire.Code("of a newer broker").Status(); got != 500 {
		t.Errorf("an unknown code: %d", got)
	}
}

func TestErrorIs(t *testing.T) {
	err := fmt.Errorf("settle: %w", &wire.Error{Code: wire.CodeBadRequest, Field: "lease", Message: "m"})
	for _, tt := range []struct {
		target error
		want   bool
	}{
		{&wire.Error{Code: wire.CodeBadRequest}, true},
		{&wire.Error{Code: wire.CodeBadRequest, Field: "lease", Message: "another"}, true},
		{&wire.Error{Code: wire.CodeBadRequest, Field: "outcome"}, false},
		{&wire.Error{Code: wire.CodeInternal}, false},
		{errors.New("bad_request: m"), false},
	} {
		if got := errors.Is(err, tt.target); got != tt.want {
			t.Errorf("is %v: %v", tt.target, got)
		}
	}
}

func TestErrorConstructors(t *testing.T) {
	e := wire.Errorf(wire.CodeUnknownLease, "lease %s has expired", wire.LeaseID{Epoch: 7, N: 0x18a3})
	if diff := cmp.Diff(&wire.Error{Code: "unknown_lease", Message: "lease 7-18a3 has expired"}, e); diff != "" {
		t.Error(diff)
	}
	if got := e.Error(); got != "unknown_lease: lease 7-18a3 has expired" {
		t.Error(got)
	}
	e = wire.BadField("ttl_ms", "ttl_ms is %d; it must be 0 or more", -1)
	if diff := cmp.Diff(&wire.Error{Code: "bad_request", Field: "ttl_ms", Message: "ttl_ms is -1; it must be 0 or more"}, e); diff != "" {
		t.Error(diff)
	}
}

func TestAppendError(t *testing.T) {
	e := wire.BadField("input_tokens", "input_tokens is -5; it must be 0 or more")
	const want = `{"error":{"code":"bad_request","field":"input_tokens","message":"input_tokens is -5; it must be 0 or more"}}`
	if got := string(wire.AppendError(nil, e)); got != want {
		t.Error(got)
	}
	e.Field = ""
	if got := string(wire.AppendError([]byte("x"), e)); got != `x{"error":{"code":"bad_request","message":"input_tokens is -5; it must be 0 or more"}}` {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		e := genError().Draw(t, "error")
		var body wire.ErrorBody
		if err := json.Unmarshal(wire.AppendError(nil, &e), &body); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&e, body.Error); diff != "" {
			t.Fatalf("(-written +read)\n%s", diff)
		}
	})
}
