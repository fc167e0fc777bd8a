package wire

// OptInt is a whole number that may be absent: 0 and absent mean different
// things in several fields of the protocol. The zero OptInt is absent.
type OptInt struct {
	Value int64
	Set   bool
}

// Int returns a present OptInt.
func Int(v int64) OptInt { return OptInt{Value: v, Set: true} }

// IsZero reports whether the number is absent; encoding/json's omitzero uses it.
func (o OptInt) IsZero() bool { return !o.Set }

// Or returns the number, or other where it is absent.
func (o OptInt) Or(other int64) int64 {
	if o.Set {
		return o.Value
	}
	return other
}
