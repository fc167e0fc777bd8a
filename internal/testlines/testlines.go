// Package testlines reads recorded data in tests.
package testlines

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// Read decodes a file of one JSON value a line, which is split on '\n' only. What
// cannot be read fails the test.
func Read[T any](tb testing.TB, path string) []T {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var all []T
	for line := range bytes.Lines(data) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			tb.Fatalf("%s:%d: %v", path, len(all)+1, err)
		}
		all = append(all, v)
	}
	return all
}
