package wire

import (
	"encoding/json"
	"strconv"
)

// MarshalJSON implements [encoding/json.Marshaler]: what [AppendDecision] writes.
// A decision without a verdict is an error.
func (d Decision) MarshalJSON() ([]byte, error) {
	if d.Verdict.String() == "" {
		return nil, Errorf(CodeInternal, "a decision without a verdict cannot be encoded")
	}
	return AppendDecision(make([]byte, 0, 512), &d), nil
}

// UnmarshalJSON implements [encoding/json.Unmarshaler] with the rules of
// [DecodeDecision], but for what only an acquire promises: inside an explanation
// there is no lease and no ticket. A null changes nothing.
func (d *Decision) UnmarshalJSON(data []byte) error {
	s := scanner{data: data}
	if s.kind() == kindNull {
		return nil
	}
	*d = Decision{}
	return replyError(s.decisionBody(d))
}

// MarshalJSON implements [encoding/json.Marshaler]. An absent number is null;
// with omitzero in its tag it is left out.
func (o OptInt) MarshalJSON() ([]byte, error) {
	if !o.Set {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, o.Value, 10), nil
}

// UnmarshalJSON implements [encoding/json.Unmarshaler]. It takes a whole number
// in plain digits; null makes the number absent. What it returns on anything
// else is an [*Error] that does not know the field.
func (o *OptInt) UnmarshalJSON(data []byte) error {
	s := scanner{data: data}
	v, err := s.integer(field{name: "number"}, anyInteger)
	if err == nil {
		err = s.closeBody()
	}
	if err != nil {
		return err
	}
	*o = v
	return nil
}

// MarshalJSON implements [encoding/json.Marshaler]. Lists and maps that are nil
// are sent as empty ones, so that no reader need expect a null.
func (s Status) MarshalJSON() ([]byte, error) {
	type plain Status
	s.Limits, s.Classes, s.Tenants = filled(s.Limits), filled(s.Classes), filled(s.Tenants)
	return json.Marshal(plain(s))
}

// MarshalJSON implements [encoding/json.Marshaler] as that of [Status] does.
func (c ClassStatus) MarshalJSON() ([]byte, error) {
	type plain ClassStatus
	c.Amounts = filled(c.Amounts)
	c.WaitHistogram.BoundsMS = filled(c.WaitHistogram.BoundsMS)
	c.WaitHistogram.Counts = filled(c.WaitHistogram.Counts)
	if c.Defers == nil {
		c.Defers = map[string]uint64{}
	}
	if c.Refusals == nil {
		c.Refusals = map[string]uint64{}
	}
	return json.Marshal(plain(c))
}

// MarshalJSON implements [encoding/json.Marshaler] as that of [Status] does.
func (e Explanation) MarshalJSON() ([]byte, error) {
	type plain Explanation
	e.Limits, e.Classes = filled(e.Limits), filled(e.Classes)
	return json.Marshal(plain(e))
}

// MarshalJSON implements [encoding/json.Marshaler] as that of [Status] does.
func (c ClassExplain) MarshalJSON() ([]byte, error) {
	type plain ClassExplain
	c.Amounts = filled(c.Amounts)
	return json.Marshal(plain(c))
}

// filled is list, or an empty one in place of nil.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
