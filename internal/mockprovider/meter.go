package mockprovider

import (
	"fmt"
	"time"
)

// Metric names what a limit counts, in the words of the provider's headers.
type Metric string

// The two metrics of an OpenAI account.
const (
	Tokens   Metric = "tokens"
	Requests Metric = "requests"
)

// Limits are what an account may use; 0 means no limit on that metric.
type Limits struct {
	TokensPerMinute   int64 `json:"tokens_per_minute"`
	RequestsPerMinute int64 `json:"requests_per_minute"`
}

// Validate returns an error that names the limit that cannot be kept.
func (l Limits) Validate() error {
	for _, n := range []struct {
		name  string
		value int64
	}{{"tokens_per_minute", l.TokensPerMinute}, {"requests_per_minute", l.RequestsPerMinute}} {
		if n.value < 0 || n.value > maxLimitPerMinute {
			return fmt.Errorf("mockprovider: %s is %d; it must be 0 (no limit) to %d", n.name, n.value, int64(maxLimitPerMinute))
		}
	}
	return nil
}

// Meter is the metering of one account. Time is given to every method as the time
// since an origin of the caller's choice; an earlier time is taken as the latest
// one seen. It is not safe for concurrent use.
type Meter struct {
	now      time.Duration
	tokens   bucket
	requests bucket
	charges  rolling
}

// NewMeter returns a meter with full buckets. The limits must be valid.
func NewMeter(l Limits) *Meter {
	return &Meter{
		tokens:   bucket{limitPerMinute: l.TokensPerMinute},
		requests: bucket{limitPerMinute: l.RequestsPerMinute},
	}
}

// Charge is what an admitted request was charged. It is settled at most once.
type Charge struct {
	Tokens int64
	seq    uint64
}

// Admit charges one request and the given tokens, or refuses both. Tokens below 0
// count as 0, above 10⁹ as 10⁹. Exactly one of the results is set.
func (m *Meter) Admit(now time.Duration, tokens int64) (Charge, *Refusal) {
	m.advance(now)
	tokens = min(max(tokens, 0), maxAmount)
	if r := m.refuse(tokens); r != nil {
		return Charge{}, r
	}
	m.tokens.add(tokens)
	m.requests.add(1)
	seq := m.charges.add(entry{at: m.now, tokens: tokens, requests: 1})
	return Charge{Tokens: tokens, seq: seq}, nil
}

// refuse says why a request of so many tokens cannot be admitted now, nil if it
// can. Where both limits refuse, it names the one that takes longer.
func (m *Meter) refuse(tokens int64) *Refusal {
	var worst *Refusal
	for _, l := range []struct {
		metric Metric
		bucket *bucket
		n      int64
	}{{Tokens, &m.tokens, tokens}, {Requests, &m.requests, 1}} {
		if l.bucket.fits(l.n) {
			continue
		}
		r := &Refusal{Metric: l.metric, LimitPerMinute: l.bucket.limitPerMinute, Used: l.bucket.used(), Requested: l.n}
		if r.TooLarge() {
			return r
		}
		r.Wait = refillTime(r.Used+r.Requested-r.LimitPerMinute, r.LimitPerMinute)
		if worst == nil || r.Wait > worst.Wait {
			worst = r
		}
	}
	return worst
}

// CountRefused uses up one request, if there is one, for a request that was
// refused on its tokens: failed calls count too.
func (m *Meter) CountRefused(now time.Duration) {
	m.advance(now)
	if m.requests.fits(1) {
		m.requests.add(1)
	}
}

// Settle corrects a charge to what the request really took. More than was charged
// is charged now, whether it fits or not. Less is given back, unless the charge is
// 60 s old: by then the bucket has refilled it. It returns the change in tokens.
func (m *Meter) Settle(now time.Duration, c Charge, tokens int64) int64 {
	m.advance(now)
	diff := min(max(tokens, 0), maxAmount) - c.Tokens
	switch {
	case diff > 0:
		m.charges.add(entry{at: m.now, tokens: diff})
	case diff == 0 || !m.charges.giveBack(c.seq, -diff):
		return 0
	}
	m.tokens.add(diff)
	return diff
}

// SetLimits changes the limits. What is used stays used.
func (m *Meter) SetLimits(now time.Duration, l Limits) {
	m.advance(now)
	m.tokens.limitPerMinute = l.TokensPerMinute
	m.requests.limitPerMinute = l.RequestsPerMinute
}

// Level is the state of one limit as the headers give it.
type Level struct {
	LimitPerMinute int64         // 0: there is no such limit
	Remaining      int64         // what would fit now, rounded down
	Full           time.Duration // until the bucket is full again, not until any request fits
}

// Levels returns the state of both limits.
func (m *Meter) Levels(now time.Duration) (tokens, requests Level) {
	m.advance(now)
	level := func(b *bucket) Level { return Level{b.limitPerMinute, b.remaining(), b.full()} }
	return level(&m.tokens), level(&m.requests)
}

// Rolling returns what stands charged in the last 60 s, (now−60 s, now], and the
// most that ever stood charged in any such minute.
func (m *Meter) Rolling(now time.Duration) (tokens, requests int64, peak Peak) {
	m.advance(now)
	return m.charges.tokens, m.charges.requests, m.charges.peak
}

func (m *Meter) advance(now time.Duration) {
	m.now = max(m.now, now)
	m.tokens.advance(m.now)
	m.requests.advance(m.now)
	m.charges.expire(m.now)
}

// Refusal says why a request was not admitted.
type Refusal struct {
	Metric         Metric
	LimitPerMinute int64
	Used           int64 // rounded up
	Requested      int64
	// Wait is (Used + Requested − LimitPerMinute) / (LimitPerMinute / 60 s), rounded
	// up to a nanosecond; 0 when TooLarge.
	Wait time.Duration
}

// TooLarge reports whether no wait can help: the request is above the limit itself.
func (r *Refusal) TooLarge() bool { return r.Requested > r.LimitPerMinute }
