package bpe

// looksAt reports whether a test looks at its case i: all of them, or under the
// race detector every eighth.
func looksAt(i int) bool { return !underRace || i%8 == 0 }
