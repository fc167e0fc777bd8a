// Package service is the shell round the pure core: it answers the protocol's
// verbs on NATS, one pool by one [broker.Broker].
//
// A pool's verbs arrive on endpoints of a NATS micro service. Their handlers
// decode, and put what they decoded into the pool's inbox; they never wait. One
// goroutine, the loop, owns the pool's broker: it takes what has arrived, decides
// each, and then sends all the answers. What takes long to count goes to a few
// other goroutines first, which take turns between the sources.
//
// # Invariants
//
//   - Only the loop touches the broker. It reads the clock once for each group that
//     it decides; a message's time of arrival is read once, by its handler.
//   - Everything that arrives with a reply subject is answered exactly once, or
//     counted as one that could not be. Nothing is answered before the whole
//     group is decided, so that a ledger can write the group in between.
//   - A grant that cannot have reached its asker is given back: because it could
//     not be published, because NATS says that nobody listens, or (in the broker)
//     because it was not confirmed in time.
//   - A grant that was confirmed in time stays, however late the loop hears of it.
//   - While the connection is down nobody is granted anything by the passing of
//     time: it could reach nobody.
//   - Time spent in the broker's own queues counts against an ask's wait and
//     deadline. An ask that is older than its deadline is not decided.
//   - After a panic of the core the pool grants nothing any more, see [Service.Err].
package service
