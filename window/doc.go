// Package window meters what was charged within a rolling window.
//
// It holds three small meters that the admission rule is made of: [Ring], what
// each class charged in the last window; [Line], the level of the account's
// pacing bucket; [Rate], a smoothed rate of charging.
//
// # Invariants
//
//   - A charge never leaves a [Ring] early: it is counted in every window of
//     length W that contains the moment it was made. So a caller that keeps
//     Total at most Q never charges more than Q in any half-open interval of
//     length W. The price is that a charge stays up to one bucket (W/B) longer.
//   - Used and Total are exactly the sums of the buckets; nothing is negative.
//   - A refund gives back no more than the bucket it was charged to still holds,
//     so it never lowers a sum below what others charged.
//   - Time given to a meter never goes back: an earlier now is taken as the
//     latest one seen.
//
// All arithmetic is on integers, so two machines that see the same calls hold
// the same state. Nothing here locks, allocates after construction, or reads a
// clock: now is the time since an origin the caller chose.
package window
