// Package broker is the state machine of one pool: it owns an account's quota
// and decides, for every ask, whether it may be sent now, when it may come back,
// or why it never should.
package broker
