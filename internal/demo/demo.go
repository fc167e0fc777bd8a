package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"quotabroker/broker"
	"quotabroker/estimator"
	"quotabroker/internal/mockprovider"
)

type brokerConfig = broker.Config

// Run plays the night as often as the options say, without the broker first, and
// returns what each came to. It ends early, with ctx's error, when ctx ends; what
// was played to its end by then is returned all the same.
func Run(ctx context.Context, o Options) ([]Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	est, err := estimator.New(estimator.Default())
	if err != nil {
		return nil, err
	}
	s, err := write(o.Fixtures, est)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, with := range []bool{false, true} {
		if o.Only == "with" && !with || o.Only == "without" && with {
			continue
		}
		r, err := once(ctx, &o, s, est, with)
		if err != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}

// once plays the night against a new provider.
func once(ctx context.Context, o *Options, s *script, est *estimator.Estimator, with bool) (Result, error) {
	profile, err := mockprovider.ProfileNamed("generic")
	if err != nil {
		return Result{}, err
	}
	provider, err := mockprovider.Start("127.0.0.1:0", mockprovider.Options{
		Limits:        mockprovider.Limits{TokensPerMinute: o.TPM, RequestsPerMinute: o.TPM / requestsRatio},
		Profile:       profile,
		TokenCount:    s.count,
		DefaultAnswer: mockprovider.Answer{OutputTokens: 1, FirstToken: firstToken, TokensPerSecond: tokensPerSec},
		Models:        []string{model},
		Speed:         o.Speed,
	})
	if err != nil {
		return Result{}, fmt.Errorf("starting the mock provider: %w", err)
	}
	defer func() { _ = provider.Close(context.WithoutCancel(ctx)) }()
	p := &play{o: o, script: s, provider: provider, http: httpClient(), gate: nobody{}}
	defer p.http.CloseIdleConnections()
	p.evalLeft.Store(int64(len(s.eval)))
	say(o, "\n%s\n  Calls answered so far, by class:\n", title(with))
	if with {
		b, err := open(ctx, o, est)
		if err != nil {
			return Result{}, err
		}
		defer b.close()
		p.gate = b
	}
	r, err := p.run(ctx)
	r.Broker = with
	return r, err
}

func title(with bool) string {
	if with {
		return "The same night with quotabroker: every producer asks before it sends"
	}
	return "The night without quotabroker: every producer sends, and tries again on 429"
}

func say(o *Options, format string, args ...any) {
	if o.Progress != nil {
		_, _ = fmt.Fprintf(o.Progress, format, args...)
	}
}

// httpClient keeps as many connections as there are calls under way.
func httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 1000, MaxIdleConns: 1000, IdleConnTimeout: time.Minute,
	}}
}
