// Package classes is the table of classes that share a quota, and the admission
// rule: may a job of this class go now, and if not, when?
//
// A class has a share, a floor, and a reserve inside its floor. Its floor it gets
// within one window whatever the others do, its reserve at once. What is not used
// is lent, but borrowers may only keep the account's total charge rate level, so
// that what they charged comes back level when its owner returns. A class that
// had to wait below its floor raises its own reserve by what was missing.
//
// # Invariants
//
// With Q the quota of a limit, U what is charged in its window, u, F and M a
// class's use, floor and reserve, and P = min(F, u + waiting + M) its protected
// level, [Rule] keeps on every limit at once:
//
//   - U <= Q in every window of the limit, as long as nothing overruns its
//     estimate and Q stays as it is.
//   - Q - U >= sum of max(0, M - u): the reserves are there. Where growth of M, a
//     cut of Q or an overrun broke that, no grant makes it worse.
//   - After a grant that takes a class above its floor, Q - U >= sum of
//     max(0, P - u) over the other classes: borrowers never take what is protected.
//   - The head of a class that stays within its floor is granted within one window.
//   - There is one total order between the classes that wait, the same on every
//     limit: those within their floors by rank, then heads that have waited long
//     by age, then by level (use over share). So no two classes wait for each other.
//
// The rule is a value: it locks nothing, starts nothing, allocates nothing after
// construction and reads no clock. Time is the time since an origin the caller
// chose; all arithmetic is on integers.
package classes
