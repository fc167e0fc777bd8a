package service

import (
	"sync"

	"quotabroker/estimator"
	"quotabroker/estimator/learn"
	"quotabroker/wire"
)

// Estimates are an [estimator.Estimator] and what settlements have taught about its
// errors. It is safe for concurrent use.
type Estimates struct {
	est *estimator.Estimator

	mu      sync.Mutex
	learned *learn.Table // nil: nothing is learned
}

// NewEstimates returns estimates that have learned nothing yet, and never will if
// learned is nil.
func NewEstimates(est *estimator.Estimator, learned *learn.Table) *Estimates {
	return &Estimates{est: est, learned: learned}
}

// mostName is the longest name of a model, in bytes: that of a field of the protocol.
const mostName = 256

// Estimate is an [Options.Estimate].
func (s *Estimates) Estimate(j Job, r *wire.AcquireRequest) (wire.EstimateReply, *wire.Error) {
	in := estimator.Input{Model: r.Model, InputTokens: r.InputTokens, MaxOutputTokens: r.MaxOutputTokens}
	if len(r.Request) > 0 {
		in.Body = r.Request
	}
	e, err := s.est.Estimate(in)
	if err != nil {
		return wire.EstimateReply{}, err
	}
	if len(e.Model) <= mostName {
		r.Model = e.Model
	}
	out := wire.EstimateReply{Cost: e.Cost, ModelKnown: e.ModelKnown, Encoding: e.Encoding, Learned: wire.Learned{InputRatio: 1}}
	if s.learned != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		out.Learned = s.learned.Apply(j.Source, learn.Sort{Kind: r.Kind, Model: r.Model}, &out.Cost, e.LimitTokens.Set)
	}
	return out, nil
}

// Learn is an [Options.Learn].
func (s *Estimates) Learn(l Lesson) {
	if s.learned == nil {
		return
	}
	if l.InputRatio > 0 {
		l.Estimated.InputTokens = int64(float64(l.Estimated.InputTokens)/l.InputRatio + 0.5)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learned.Settled(l.Source, learn.Sort{Kind: l.Kind, Model: l.Model}, l.Estimated, l.Used)
}
