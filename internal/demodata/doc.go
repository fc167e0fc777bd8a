// Package demodata reads the recorded prompts and request arrivals that the binary
// carries, for the demo, replay and benches.
//
// What it keeps: data is parsed when it is asked for, and whole or not at all; an
// error names the file, the line and what is wrong there. Every call returns a
// slice of its own. Nothing is made up: what is not in the recording is not in the
// result.
package demodata
