package client

import (
	"encoding/json"
	"math"
	"sync"
	"time"

	"quotabroker/wire"
)

const (
	// localWindow is a minute, and a second for calls that are sent a little
	// later than they were granted.
	localWindow = 61 * time.Second

	// assumedOutputTokens stands for the output of a request that sets no limit.
	assumedOutputTokens = 4096
)

// allowance is what a client may grant while no broker answers: in any minute at
// most perMinute tokens. It keeps the exact list of its charges. The zero
// allowance grants nothing. It is safe for concurrent use.
type allowance struct {
	perMinute int64

	mu struct {
		sync.Mutex
		charges []*charge // by time; those older than the window are gone
		used    int64     // the sum of charges; above perMinute after an overrun
	}
}

// charge is tokens that count against the allowance until at + localWindow.
type charge struct {
	at     time.Time
	tokens int64
	listed bool // it counts
}

// take charges tokens if they fit. If not, the charge is nil and room says when
// they would: never, for more than a whole minute's allowance.
func (a *allowance) take(now time.Time, tokens int64) (c *charge, room time.Duration) {
	c = &charge{at: now, tokens: tokens}
	if a.perMinute == int64(Allow) {
		return c, 0
	}
	if tokens > a.perMinute {
		return nil, math.MaxInt64
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(now)
	over := a.mu.used - (a.perMinute - tokens)
	if over <= 0 {
		a.add(c)
		return c, 0
	}
	for _, old := range a.mu.charges {
		if over -= old.tokens; over <= 0 {
			return nil, old.at.Add(localWindow).Sub(now)
		}
	}
	return nil, localWindow
}

// settle replaces what was charged by what was used. Less is given back to the
// minute it was taken from; more counts from now on, and holds back what follows.
func (a *allowance) settle(now time.Time, c *charge, used int64) {
	if a.perMinute == int64(Allow) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(now)
	if used > c.tokens {
		a.add(&charge{at: now, tokens: used - c.tokens})
		return
	}
	if c.listed {
		a.mu.used -= c.tokens - used
	}
	c.tokens = used
}

func (a *allowance) add(c *charge) {
	c.listed = true
	a.mu.charges = append(a.mu.charges, c)
	a.mu.used += c.tokens
}

// forget drops the charges that have left the window.
func (a *allowance) forget(now time.Time) {
	gone := 0
	for gone < len(a.mu.charges) && now.Sub(a.mu.charges[gone].at) >= localWindow {
		c := a.mu.charges[gone]
		c.listed = false
		a.mu.used -= c.tokens
		a.mu.charges[gone] = nil
		gone++
	}
	a.mu.charges = a.mu.charges[gone:]
}

// localTokens is what a request counts for against the allowance; at least 1.
func (c *Client) localTokens(req *Request) int64 {
	if estimate := c.opts.LocalEstimate; estimate != nil {
		return max(estimate(*req), 1)
	}
	return max(req.InputTokens.Or(int64(len(req.Body)))+outputLimit(req), 1)
}

// outputLimit is the most a request lets the model write.
func outputLimit(req *Request) int64 {
	if req.MaxOutputTokens.Set {
		return req.MaxOutputTokens.Value
	}
	var body struct {
		MaxTokens           json.Number `json:"max_tokens"`            // chat, Anthropic
		MaxCompletionTokens json.Number `json:"max_completion_tokens"` // chat
		MaxOutputTokens     json.Number `json:"max_output_tokens"`     // responses
		GenerationConfig    struct {
			MaxOutputTokens json.Number `json:"maxOutputTokens"` // Gemini
		} `json:"generationConfig"`
	}
	// What is no such body sets no limit; a wrong type leaves the rest readable.
	_ = json.Unmarshal(req.Body, &body)
	most := int64(-1)
	for _, limit := range []json.Number{
		body.MaxTokens, body.MaxCompletionTokens, body.MaxOutputTokens, body.GenerationConfig.MaxOutputTokens,
	} {
		if n, err := limit.Int64(); err == nil {
			most = max(most, n)
		}
	}
	if most < 0 {
		return assumedOutputTokens
	}
	return min(most, wire.MaxTokens)
}
