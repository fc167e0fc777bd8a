//go:build race

package bpe

// underRace: the race detector makes the tokenizer ten times slower and learns
// nothing from tests of one goroutine, so these look at every eighth case only.
const underRace = true
