package wire

// Verdict is what a broker answers to an ask.
type Verdict uint8

// The three verdicts. The zero Verdict is none of them and is never sent.
const (
	Grant  Verdict = iota + 1 // send now; a lease was made
	Defer                     // come back after retry_after_ms, with the ticket
	Refuse                    // do not come back with this as it is
)

// Cause says in one word why an ask was deferred or refused. Every wait and
// every refusal has exactly one.
type Cause uint8

// The causes of protocol §2. The zero Cause stands on grants and is not sent.
const (
	CauseNone             Cause = iota
	CauseQuota                  // defer: the pool has no room in the window
	CauseReserved               // defer: the room that is left is held for other classes
	CauseOrder                  // defer: others of the class are ahead
	CausePace                   // defer: borrowing goes at a paced rate
	CauseTenantLimit            // defer or refuse: this tenant is at its cap
	CauseConcurrency            // defer: too many leases are in flight
	CauseProviderPause          // defer: the provider told the account to wait
	CauseClassSaturated         // refuse: the wait would pass the class's max_wait
	CauseQueueFull              // refuse: the class holds its maximum of tickets
	CauseDeadline               // refuse: the wait would pass the request's own deadline
	CauseTooLarge               // refuse, permanent: larger than the class can ever be given
	CauseNoQuota                // refuse, permanent: a limit of zero applies
	CauseAccountExhausted       // refuse: the provider says that the account is out of money
	CauseDraining               // refuse: this instance is going away; ask again
	numCauses
)

// NumCauses is the number of Cause values, CauseNone included: the length of an
// array indexed by Cause.
const NumCauses = int(numCauses)

// Permanent reports whether asking again with the same request is pointless
// until the configuration changes. Such a refusal carries no retry_after_ms.
func (c Cause) Permanent() bool { return c == CauseTooLarge || c == CauseNoQuota }

var verdictNames = [...]string{Grant: "grant", Defer: "defer", Refuse: "refuse"}

var causeNames = [numCauses]string{
	CauseNone:             "",
	CauseQuota:            "quota",
	CauseReserved:         "reserved",
	CauseOrder:            "order",
	CausePace:             "pace",
	CauseTenantLimit:      "tenant_limit",
	CauseConcurrency:      "concurrency",
	CauseProviderPause:    "provider_pause",
	CauseClassSaturated:   "class_saturated",
	CauseQueueFull:        "queue_full",
	CauseDeadline:         "deadline",
	CauseTooLarge:         "too_large",
	CauseNoQuota:          "no_quota",
	CauseAccountExhausted: "account_exhausted",
	CauseDraining:         "draining",
}

// String returns the word sent on the wire, "" for a verdict that is none.
func (v Verdict) String() string { return nameOf(verdictNames[:], int(v)) }

// String returns the word sent on the wire; it is "" for CauseNone.
func (c Cause) String() string { return nameOf(causeNames[:], int(c)) }

// MarshalText implements [encoding.TextMarshaler].
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalText implements [encoding.TextMarshaler].
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. A word that is no
// verdict, the empty one included, is an error.
func (v *Verdict) UnmarshalText(text []byte) error {
	i, err := indexOf(verdictNames[:], 1, text, field{name: "decision"})
	if err != nil {
		return err
	}
	*v = Verdict(i)
	return nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]. A word that is no cause
// is an error; the empty word is CauseNone.
func (c *Cause) UnmarshalText(text []byte) error {
	i, err := indexOf(causeNames[:], 0, text, field{name: "cause"})
	if err != nil {
		return err
	}
	*c = Cause(i)
	return nil
}

// Outcome is how a granted call ended, as its producer reports it.
type Outcome uint8

// The outcomes of protocol §3. The zero Outcome is not accepted from the wire.
const (
	OutcomeOK         Outcome = iota + 1 // the provider answered
	OutcomeUnsent                        // never sent: everything is given back
	OutcomeFailed                        // the provider refused or broke; usage if known
	OutcomeThrottled                     // 429
	OutcomeOverloaded                    // 529, 503
	OutcomeExhausted                     // the account is out of money
	OutcomeUnknown                       // sent, result lost: the reservation stays charged
)

var outcomeNames = [...]string{
	OutcomeOK: "ok", OutcomeUnsent: "unsent", OutcomeFailed: "failed", OutcomeThrottled: "throttled",
	OutcomeOverloaded: "overloaded", OutcomeExhausted: "exhausted", OutcomeUnknown: "unknown",
}

// String returns the word sent on the wire, "" for an outcome that is none.
func (o Outcome) String() string { return nameOf(outcomeNames[:], int(o)) }

// MarshalText implements [encoding.TextMarshaler].
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. A word that is no
// outcome, the empty one included, is an error.
func (o *Outcome) UnmarshalText(text []byte) error {
	i, err := indexOf(outcomeNames[:], 1, text, field{name: "outcome"})
	if err != nil {
		return err
	}
	*o = Outcome(i)
	return nil
}

// Method says how a cost was arrived at.
type Method uint8

// The methods.
const (
	MethodExact      Method = iota + 1 // counted with the model's own tokenizer
	MethodCounted                      // the producer's own count (input_tokens)
	MethodSampled                      // extrapolated from samples of a long text, erring high
	MethodFallback                     // counted with another model's tokenizer
	MethodRegression                   // estimated from character classes, no tokenizer
)

var methodNames = [...]string{
	MethodExact: "exact", MethodCounted: "counted", MethodSampled: "sampled",
	MethodFallback: "fallback", MethodRegression: "regression",
}

// String returns the word sent on the wire, "" for a method that is none.
func (m Method) String() string { return nameOf(methodNames[:], int(m)) }

// MarshalText implements [encoding.TextMarshaler].
func (m Method) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. A word that is no method
// is an error; the empty word is the zero Method.
func (m *Method) UnmarshalText(text []byte) error {
	i, err := indexOf(methodNames[:], 0, text, field{name: "method"})
	if err != nil {
		return err
	}
	*m = Method(i)
	return nil
}

func nameOf(names []string, i int) string {
	if i >= len(names) {
		return ""
	}
	return names[i]
}
