package provider_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"quotabroker/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// arrival is when the responses without a date arrive.
var arrival = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func testdata(name string) string { return filepath.Join("..", "..", "testdata", name) }

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(testdata(name), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(testdata(name))
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nand not\n%s", name, got, want)
	}
}

// said is what goes over the wire for these; it must pass the broker's checks.
func said(t testing.TB, outcome wire.Outcome, usage *wire.Usage, state *wire.ProviderState) string {
	t.Helper()
	s := wire.SettleRequest{Lease: wire.LeaseID{N: 1}, Outcome: outcome, Usage: usage, Provider: state}
	if err := s.Validate(); err != nil {
		t.Errorf("the broker would not take it: %v", err)
	}
	return string(wire.AppendSettle(nil, &s))[len(`{"lease":"0-1",`):]
}
