// Package mockprovider is an HTTP server that meters its callers the way OpenAI
// does, and says so in the same headers and error bodies. Tests, the demo and
// the benches send to it what they would send to the provider.
//
// It has two parts. [Meter] is the metering alone: a value, without a clock, a
// lock or a network, that a test in virtual time may use by itself. [Server]
// puts the OpenAI endpoints round one Meter: an account, whose limits all models
// share.
//
// # What it keeps
//
//   - A limit of L per minute is a bucket of depth L that refills continuously at
//     L per 60 s. So what is charged in any interval of length t, less what is
//     given back in it, is at most L + L·t/60 s; a correction upwards (a call that
//     took more than was charged for it) is the only way past that.
//   - A request is charged when it is admitted, on every limit or on none. What it
//     is charged is the business of the [Profile].
//   - The wait a refusal names in retry-after-ms is enough: whoever waits that long
//     and meets nobody else is admitted. The wait in the sentence is the same one,
//     cut to whole milliseconds as the provider cuts it.
//   - The peak of a rolling minute in [Stats] is exact: it is computed from the list
//     of charges of the last 60 s, not from buckets of them.
//   - With [Options.Speed] above 1 the server lives through the night faster: a
//     minute of its limits lasts 60 s / Speed, and so do its latencies. Every
//     duration it sends is in its caller's time.
//   - The same requests in the same order at the same times get the same answers:
//     nothing is random.
//
// What the provider does is taken from recorded responses and from its
// documentation; testdata/headers holds the recordings that the tests compare
// with.
package mockprovider
