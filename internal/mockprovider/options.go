package mockprovider

import (
	"context"
	"errors"
	"time"
)

// Answer is how the server answers one request: how much, and how fast in the
// server's own time (see [Options.Speed]).
type Answer struct {
	OutputTokens    int64         // of each choice; cut at the request's limit
	FirstToken      time.Duration // until the first token
	TokensPerSecond float64       // of the tokens after the first; 0: all at once
}

// Options say what the server is. The zero Options are an account without limits
// that answers 64 tokens at once.
type Options struct {
	Limits  Limits  // of the whole account; all models share them
	Profile Profile // how a request is charged; zero: generic

	// TokenCount counts text as the model does. nil: characters/4, rounded up. It is
	// called from many goroutines.
	TokenCount func(text string) int
	// Answer decides length and pace; nil: DefaultAnswer. A length that the request
	// itself asks for (see OutputTokensName) goes before it. It is called from many
	// goroutines, and must not keep the request.
	Answer        func(*Request) Answer
	DefaultAnswer Answer // zero: 64 tokens at once
	// ModelMaxOutputTokens bounds the answer to a request that sets no limit; 0: 16384.
	ModelMaxOutputTokens int64

	Models       []string // any other is not found; none: every name is a model
	Organization string   // named in refusals; "": org-mock
	Key          string   // the bearer key callers must show; "": any, or none

	// Speed is how many seconds of the server pass in one of its caller's; 0: 1. At 60
	// a limit per minute refills in one second.
	Speed float64
	// Now and Sleep are the clock; nil: the machine's. Sleep returns early with the
	// context's error.
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
}

const (
	defaultOutputTokens   = 64
	defaultModelMaxTokens = 16384
)

// withDefaults checks the options and fills in what is zero.
func (o Options) withDefaults() (Options, error) {
	if err := o.Limits.Validate(); err != nil {
		return o, err
	}
	if o.Speed < 0 || o.Speed > 1e6 {
		return o, errors.New("mockprovider: Speed must be 0 (as 1) to 1000000")
	}
	if o.ModelMaxOutputTokens < 0 || o.ModelMaxOutputTokens > maxAmount {
		return o, errors.New("mockprovider: ModelMaxOutputTokens must be 0 (as 16384) to 1000000000")
	}
	if o.Profile.Admission == nil {
		o.Profile = profiles[0]
	}
	if o.TokenCount == nil {
		o.TokenCount = func(text string) int { return (len([]rune(text)) + 3) / 4 }
	}
	if o.DefaultAnswer == (Answer{}) {
		o.DefaultAnswer.OutputTokens = defaultOutputTokens
	}
	if o.Answer == nil {
		fixed := o.DefaultAnswer
		o.Answer = func(*Request) Answer { return fixed }
	}
	if o.ModelMaxOutputTokens == 0 {
		o.ModelMaxOutputTokens = defaultModelMaxTokens
	}
	if o.Organization == "" {
		o.Organization = "org-mock"
	}
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return o, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
