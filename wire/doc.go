// Package wire is the one vocabulary of the quotabroker protocol, version 1:
// message types, subjects, causes, error codes and JSON Schemas.
//
// The broker core, the NATS service, the Go client and the command line all
// speak these types, so there is no mapping layer between them and a field
// means the same thing everywhere.
//
// The messages of the hot path have decoders and encoders written by hand
// (Decode…, Append…) that allocate next to nothing; encoding/json works on every
// type as well, with its own looser rules about the case of names. Validate
// checks a request that was built in Go as the decoder would check it.
//
// # Invariants
//
//   - Decoding is strict about types and tolerant of fields it does not know: a
//     newer client may talk to an older broker, but "12" is never taken for 12.
//     Field names match exactly (case matters).
//   - Every decoding error is an [*Error] that names the field.
//   - Durations are whole milliseconds, never absolute times: the clocks of two
//     hosts differ. Token counts are whole numbers, never negative.
//   - What an encoder writes, the decoder of the same message reads back as the
//     same value, and its JSON Schema accepts.
//   - The package imports the standard library only, so that a client pulls in
//     nothing else; it reads no clock and starts nothing.
package wire
