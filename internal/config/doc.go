// Package config turns the operator's YAML file and environment into the typed
// configuration of the broker, and back.
//
// Every key stands once, in a table that binds it to the Go value behind it
// (keys.go). The same table reads a key, shows it, finds it for an environment
// variable, and suggests it for a misspelt one, so the four cannot disagree.
//
// # Invariants
//
//   - [Parse] returns either a [File] that the broker takes as it is, or an
//     [Error] that lists what is wrong. It never panics, always ends, and reads
//     neither clock, network nor environment.
//   - Nothing is ignored in silence: an unknown key, a key that is there twice, a
//     value of the wrong kind and an override that fits no key are errors; what a
//     later version will use is a warning; what would weaken security is an error.
//   - Every problem of a file carries the line and column of the value at fault,
//     every problem of an override the name of its variable.
//   - Parse(Print(f)) equals f, apart from warnings.
//   - No secret is shown: the file holds names of variables and of files, and
//     what looks like a secret is masked wherever a source line is quoted.
package config
