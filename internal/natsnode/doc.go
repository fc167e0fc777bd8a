// Package natsnode gives the broker its place on NATS: a server embedded in the
// process, or a connection to a company's own.
//
// # Invariants
//
//   - A [Node] is either up with a usable connection, or was never returned.
//   - Its connection reconnects for ever and keeps nothing back for later: what
//     cannot be published now is an error now, so that no answer arrives long
//     after its asker gave up. Only [Node.Close] ends it; if it ends otherwise,
//     [Node.Lost] says so, once.
//   - [Node.Close] returns when the server's goroutines have ended.
//   - The embedded server handles no signals, writes no files, and listens on the
//     loopback interface unless it is told otherwise. No secret is logged.
package natsnode
