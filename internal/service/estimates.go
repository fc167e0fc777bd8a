package service

import (
	"quotabroker/estimator"
	"quotabroker/wire"
)

// Estimates returns an Options.Estimate that counts with est. It has learned
// nothing: its ratio is 1.
func Estimates(est *estimator.Estimator) func(Job, *wire.AcquireRequest) (wire.EstimateReply, *wire.Error) {
	return func(_ Job, r *wire.AcquireRequest) (wire.EstimateReply, *wire.Error) {
		in := estimator.Input{Model: r.Model, InputTokens: r.InputTokens, MaxOutputTokens: r.MaxOutputTokens}
		if len(r.Request) > 0 {
			in.Body = r.Request
		}
		e, err := est.Estimate(in)
		if err != nil {
			return wire.EstimateReply{}, err
		}
		return wire.EstimateReply{
			Cost: e.Cost, ModelKnown: e.ModelKnown, Encoding: e.Encoding, Learned: wire.Learned{InputRatio: 1},
		}, nil
	}
}
