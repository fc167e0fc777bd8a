//go:build !race

package bpe

import "testing"

const underRace = false

// TestNoAllocations: once the scratch memory has grown, whatever the text. It is for
// builds without the race detector, which lets a sync.Pool forget on purpose.
func TestNoAllocations(t *testing.T) {
	texts := hostile(20_000)
	for _, k := range kindsOfText(t) {
		texts[k.name] = k.text
	}
	for name, text := range texts {
		for _, e := range encodings() {
			b := []byte(text)
			if got := testing.AllocsPerRun(5, func() { e.vocabulary.Count(b) }); got != 0 {
				t.Errorf("%s %s: %v allocations", e.name, name, got)
			}
		}
	}
}
