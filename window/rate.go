package window

import (
	"math/bits"
	"time"
)

// rateScale is the fixed point of [Rate]: 16 binary digits of a token.
const rateScale = 16

// Rate is an exponential average of what was charged: the charge rate of a class
// with a memory of Tau. Its arithmetic is on integers and its decay is applied a
// bucket at a time, so that a replica that sees the same calls holds the same
// value.
//
// The zero Rate has seen nothing. A Rate is not safe for concurrent use.
type Rate struct {
	sum int64 // sum of charges, each decayed by exp(-age/Tau); 1/2^16 tokens
}

// Add counts a charge of n tokens.
func (r *Rate) Add(n int64) { r.sum += n << rateScale }

// Zero reports whether nothing is expected at all.
func (r *Rate) Zero() bool { return r.sum == 0 }

// Decay lets the average age by the given power of d.
func (r *Rate) Decay(d *Decay, steps int64) {
	if r.sum != 0 {
		r.sum = d.Apply(r.sum, steps)
	}
}

// Over returns the tokens expected in dt if the average rate over tau goes on.
func (r *Rate) Over(dt, tau time.Duration) int64 { return r.Flow(tau).Over(dt) }

// Flow returns the average rate over tau (positive), to be asked more than once.
func (r *Rate) Flow(tau time.Duration) Flow {
	hi, lo := bits.Mul64(uint64(r.sum), 1<<(flowScale-rateScale))
	if hi >= uint64(tau) {
		return 1<<64 - 1
	}
	f, _ := bits.Div64(hi, lo, uint64(tau))
	return Flow(f)
}

// flowScale is the fixed point of [Flow]: over a minute it is off by less than a
// thousandth of a token.
const flowScale = 48

// Flow is a rate in 1/2^48 tokens a nanosecond.
type Flow uint64

// Over returns the whole tokens that flow in dt, 2^58 and a little at most.
func (f Flow) Over(dt time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(f), uint64(dt))
	return int64(min(hi, 1<<42)<<(64-flowScale) | lo>>flowScale)
}

// Decay is exp(-step/tau) and its powers, as fixed-point numbers.
type Decay struct {
	powers [32]uint64 // powers[i] = factor^(2^i), in 1/2^63
}

// NewDecay returns the decay of one step at time constant tau. The factor is
// computed on integers, as (1 - x/2^20)^(2^20) with x = step/tau, which differs
// from exp(-x) by less than x²/2^21 + 2^-41; for x of 32 and more it is 0.
func NewDecay(step, tau time.Duration) *Decay {
	const halvings = 20
	d := &Decay{}
	if tau <= 0 || step/tau >= 32 {
		return d
	}
	hi, lo := bits.Mul64(uint64(step), 1<<(63-halvings))
	x, _ := bits.Div64(hi, lo, uint64(tau))
	f := uint64(1)<<63 - x
	for range halvings {
		f = mul63(f, f)
	}
	for i := range d.powers {
		d.powers[i] = f
		f = mul63(f, f)
	}
	return d
}

// NewHalfLife returns the decay of one step of something that halves every
// halfLife.
func NewHalfLife(step, halfLife time.Duration) *Decay {
	// tau = halfLife / ln 2, with ln 2 = 0.693147180559945 as a ratio.
	hi, lo := bits.Mul64(uint64(halfLife), 1_000_000_000_000_000)
	tau, _ := bits.Div64(hi, lo, 693_147_180_559_945)
	return NewDecay(step, time.Duration(tau))
}

// Apply returns n (0 or more) after the given number of steps, rounded down.
func (d *Decay) Apply(n, steps int64) int64 {
	for i := 0; steps > 0 && n > 0; i++ {
		if i == len(d.powers) {
			return 0
		}
		if steps&1 != 0 {
			hi, lo := bits.Mul64(uint64(n), d.powers[i])
			n = int64(hi<<1 | lo>>63)
		}
		steps >>= 1
	}
	return n
}

func mul63(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<1 | lo>>63
}
