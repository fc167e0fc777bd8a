package wire_test

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quotabroker/wire"
)

func TestIDs(t *testing.T) {
	for _, tt := range []struct {
		epoch, n      uint64
		lease, ticket string
	}{
		{7, 0x18a3, "7-18a3", "7-t18a3"},
		{0, 1, "0-1", "0-t1"},
		{math.MaxUint64, math.MaxUint64, "18446744073709551615-ffffffffffffffff", "18446744073709551615-tffffffffffffffff"},
		{0, 0, "", ""},
		{7, 0, "", ""}, // n 0 names none, in whatever epoch
	} {
		lease, ticket := wire.LeaseID{Epoch: tt.epoch, N: tt.n}, wire.TicketID{Epoch: tt.epoch, N: tt.n}
		if lease.String() != tt.lease || ticket.String() != tt.ticket {
			t.Errorf("%v is %q and %q", tt, lease, ticket)
		}
		if none := tt.lease == ""; lease.IsZero() != none || ticket.IsZero() != none {
			t.Errorf("%v: IsZero is wrong", tt)
		}
		if text, err := lease.AppendText([]byte("x")); err != nil || string(text) != "x"+tt.lease {
			t.Errorf("%v: AppendText gives %q, %v", tt, text, err)
		}
		if text, err := ticket.MarshalText(); err != nil || string(text) != tt.ticket {
			t.Errorf("%v: MarshalText gives %q, %v", tt, text, err)
		}
	}
}

func TestIDsRefuse(t *testing.T) {
	for _, text := range []string{
		"7", "7-", "-1", "-", "7-0", "7-01", "07-1", "00-1", "7-1A", "7-g", "7--1", "7-+1", "+7-1", " 7-1", "7-1 ", "7-1\n", "7 -1", "7-t", "7-T1", "7-t01", "7_1",
		"18446744073709551616-1", "99999999999999999999-1", "7-10000000000000000", "7-t10000000000000000", "7-1-1", "\x007-1", "７-1", strings.Repeat("9", 1000) + "-1",
	} {
		lease, ticket := wire.LeaseID{Epoch: 1, N: 1}, wire.TicketID{Epoch: 1, N: 1}
		err := lease.UnmarshalText([]byte(text))
		if err == nil {
			t.Errorf("%q is a lease: %v", text, lease)
		} else {
			checkError(t, err, wire.CodeBadRequest)
		}
		if lease != (wire.LeaseID{Epoch: 1, N: 1}) {
			t.Errorf("%q left %v behind", text, lease)
		}
		if err := ticket.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a ticket: %v", text, ticket)
		} else {
			checkError(t, err, wire.CodeBadRequest)
		}
	}
	if new(wire.LeaseID).UnmarshalText([]byte("7-t1")) == nil || new(wire.TicketID).UnmarshalText([]byte("7-1")) == nil {
		t.Error("a lease passes for a ticket, or a ticket for a lease")
	}
}

func TestIDsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lease, ticket := genLease().Draw(t, "lease"), genTicket().Draw(t, "ticket")
		var lease2 wire.LeaseID
		var ticket2 wire.TicketID
		if err := lease2.UnmarshalText([]byte(lease.String())); err != nil || lease2 != lease {
			t.Fatalf("%s: %v, %v", lease, lease2, err)
		}
		if err := ticket2.UnmarshalText([]byte(ticket.String())); err != nil || ticket2 != ticket {
			t.Fatalf("%s: %v, %v", ticket, ticket2, err)
		}
	})
}

// FuzzID: what is read as an id is exactly what would be written for it, so one
// lease has one name; and everything of the right form in range is read.
func FuzzID(f *testing.F) {
	for _, s := range []string{"", "7-18a3", "7-t42", "0-1", "07-1", "7-01", "7-A", "18446744073709551615-ffffffffffffffff", "18446744073709551616-1", "7-10000000000000000"} {
		f.Add(s)
	}
	form := regexp.MustCompile(`^(0|[1-9][0-9]{0,18})-t?[1-9a-f][0-9a-f]{0,15}$`)
	f.Fuzz(func(t *testing.T, s string) {
		var lease wire.LeaseID
		leaseErr := lease.UnmarshalText([]byte(s))
		if leaseErr == nil && lease.String() != s {
			t.Fatalf("%q is read as %s", s, lease)
		}
		var ticket wire.TicketID
		ticketErr := ticket.UnmarshalText([]byte(s))
		if ticketErr == nil && ticket.String() != s {
			t.Fatalf("%q is read as %s", s, ticket)
		}
		if form.MatchString(s) && leaseErr != nil && ticketErr != nil {
			t.Fatalf("%q is refused: %v; %v", s, leaseErr, ticketErr)
		}
	})
}
