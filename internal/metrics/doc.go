// Package metrics shows a service to Prometheus and to whatever watches its
// health.
//
// # Invariants
//
//   - Every name begins with quotabroker_. testdata/metrics/names.txt lists all of
//     them; a name is an interface.
//   - Labels are of bounded kinds: what the configuration names (pool, class,
//     limit) and what the protocol does (cause, verb, code, state). What a
//     producer names (tenant, kind, model) is never one.
//   - A counter never falls while the process lives, nothing is negative or NaN.
//     What was refunded is a counter of its own.
//   - A scrape reads snapshots and changes nothing. A pool that does not answer in
//     time is left out, rather than shown as it was.
package metrics
