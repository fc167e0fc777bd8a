package wire

import (
	"math"
	"slices"
)

// The decoders are written by hand because decoding was the broker's largest
// own cost per request. They keep to one set of rules:
//
//   - The body is one JSON object and nothing else. Field names match exactly.
//   - Unknown fields are skipped; they must be well-formed and nest at most 64
//     deep. A null is an absent field.
//   - Of a field that is given twice the last counts, and each must be right.
//   - On an error the message decoded into is in no defined state.
//
// Whatever is returned is an [*Error], behind the type error so that a nil is
// nil. For requests its code is bad_request.

// DecodeAcquire decodes and checks the body of an acquire, an estimate or an
// explain. It sets every field of into. into.Request is a view of data: it is
// valid as long as data is not written to. Nothing inside it is looked at, but
// that it is well-formed.
func DecodeAcquire(data []byte, into *AcquireRequest) error {
	s := scanner{data: data}
	*into = AcquireRequest{}
	if err := s.acquire(into); err != nil {
		return err
	}
	return nil
}

func (s *scanner) acquire(into *AcquireRequest) *Error {
	if err := s.openBody(); err != nil {
		return err
	}
	for {
		name, done, err := s.member("")
		if err != nil {
			return err
		}
		if done {
			break
		}
		switch string(name) {
		case "request_id":
			into.RequestID, err = s.text(field{name: "request_id"}, MaxRequestIDBytes)
		case "model":
			into.Model, err = s.text(field{name: "model"}, MaxTextBytes)
		case "request":
			into.Request, err = s.request()
		case "input_tokens":
			into.InputTokens, err = s.integer(field{name: "input_tokens"}, tokenBounds)
		case "max_output_tokens":
			into.MaxOutputTokens, err = s.integer(field{name: "max_output_tokens"}, tokenBounds)
		case "tenant":
			into.Tenant, err = s.text(field{name: "tenant"}, MaxTextBytes)
		case "kind":
			into.Kind, err = s.text(field{name: "kind"}, MaxTextBytes)
		case "wait_ms":
			into.WaitMS, err = s.duration("wait_ms")
		case "deadline_ms":
			into.DeadlineMS, err = s.integer(field{name: "deadline_ms"}, durationBounds)
		case "ttl_ms":
			into.TTLMS, err = s.duration("ttl_ms")
		case "ticket":
			into.Ticket, err = s.ticket(field{name: "ticket"})
		case "confirm":
			into.Confirm, err = s.boolean(field{name: "confirm"})
		default:
			err = s.ignore("")
		}
		if err != nil {
			return err
		}
	}
	if err := s.closeBody(); err != nil {
		return err
	}
	return into.checkOne()
}

func (s *scanner) duration(name string) (int64, *Error) {
	v, err := s.integer(field{name: name}, durationBounds)
	return v.Value, err
}

// request takes the provider request body as it stands.
func (s *scanner) request() ([]byte, *Error) {
	f := field{name: "request"}
	if s.next() != '{' {
		null, err := s.null(f)
		if !null && err == nil {
			err = s.mismatch(f, "a JSON object, the provider request body")
		}
		return nil, err
	}
	start := s.pos
	if p := s.skip(); p != "" {
		return nil, s.syntax(f, p)
	}
	return slices.Clip(s.data[start:s.pos]), nil
}

// DecodeSettle decodes and checks the body of a settle. A usage must name its
// input_tokens and its output_tokens: taking a forgotten figure for zero would
// give back tokens that were spent. It allocates one object for a usage and one
// for a provider state.
func DecodeSettle(data []byte, into *SettleRequest) error {
	s := scanner{data: data}
	*into = SettleRequest{}
	if err := s.settle(into); err != nil {
		return err
	}
	return nil
}

func (s *scanner) settle(into *SettleRequest) *Error {
	if err := s.openBody(); err != nil {
		return err
	}
	for {
		name, done, err := s.member("")
		if err != nil {
			return err
		}
		if done {
			break
		}
		switch string(name) {
		case "lease":
			into.Lease, err = s.lease(field{name: "lease"})
		case "outcome":
			into.Outcome, err = choice[Outcome](s, field{name: "outcome"}, outcomeNames[:], 1)
		case "usage":
			into.Usage, err = s.usage()
		case "provider":
			into.Provider, err = s.provider()
		default:
			err = s.ignore("")
		}
		if err != nil {
			return err
		}
	}
	if err := s.closeBody(); err != nil {
		return err
	}
	return into.checkRequired()
}

func (s *scanner) usage() (*Usage, *Error) {
	const in = "usage."
	if present, err := s.open(field{in: in}); !present {
		return nil, err
	}
	var input, cached, write, output, reasoning OptInt
	for {
		name, done, err := s.member(in)
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
		switch string(name) {
		case "input_tokens":
			input, err = s.integer(field{in, "input_tokens"}, tokenBounds)
		case "cached_input_tokens":
			cached, err = s.integer(field{in, "cached_input_tokens"}, tokenBounds)
		case "cache_write_tokens":
			write, err = s.integer(field{in, "cache_write_tokens"}, tokenBounds)
		case "output_tokens":
			output, err = s.integer(field{in, "output_tokens"}, tokenBounds)
		case "reasoning_tokens":
			reasoning, err = s.integer(field{in, "reasoning_tokens"}, tokenBounds)
		default:
			err = s.ignore(in)
		}
		if err != nil {
			return nil, err
		}
	}
	const want = "there when usage is, as a whole number; 0 where the provider counts none"
	if !input.Set {
		return nil, missing(field{in, "input_tokens"}, want)
	}
	if !output.Set {
		return nil, missing(field{in, "output_tokens"}, want)
	}
	return &Usage{
		InputTokens:       input.Value,
		CachedInputTokens: cached.Value,
		CacheWriteTokens:  write.Value,
		OutputTokens:      output.Value,
		ReasoningTokens:   reasoning.Value,
	}, nil
}

// providerBlock keeps a provider state and all that it can point to in one
// allocation.
type providerBlock struct {
	state                           ProviderState
	tokens, input, output, requests LimitState
}

func (s *scanner) provider() (*ProviderState, *Error) {
	const in = "provider."
	if present, err := s.open(field{in: in}); !present {
		return nil, err
	}
	b := new(providerBlock)
	for {
		name, done, err := s.member(in)
		if err != nil {
			return nil, err
		}
		if done {
			return &b.state, nil
		}
		switch string(name) {
		case "status":
			var v OptInt
			v, err = s.integer(field{in, "status"}, statusBounds)
			b.state.Status = v.Value
		case "retry_after_ms":
			b.state.RetryAfterMS, err = s.integer(field{in, "retry_after_ms"}, durationBounds)
		case "tokens":
			b.state.Tokens, err = s.limit("provider.tokens.", &b.tokens)
		case "input_tokens":
			b.state.InputTokens, err = s.limit("provider.input_tokens.", &b.input)
		case "output_tokens":
			b.state.OutputTokens, err = s.limit("provider.output_tokens.", &b.output)
		case "requests":
			b.state.Requests, err = s.limit("provider.requests.", &b.requests)
		default:
			err = s.ignore(in)
		}
		if err != nil {
			return nil, err
		}
	}
}

// limit reads one metric into l and returns l, or nil for a null.
func (s *scanner) limit(in string, l *LimitState) (*LimitState, *Error) {
	if present, err := s.open(field{in: in}); !present {
		return nil, err
	}
	*l = LimitState{}
	for {
		name, done, err := s.member(in)
		if err != nil {
			return nil, err
		}
		if done {
			return l, nil
		}
		switch string(name) {
		case "limit":
			l.Limit, err = s.integer(field{in, "limit"}, amountBounds)
		case "remaining":
			l.Remaining, err = s.integer(field{in, "remaining"}, amountBounds)
		case "reset_ms":
			l.ResetMS, err = s.integer(field{in, "reset_ms"}, durationBounds)
		default:
			err = s.ignore(in)
		}
		if err != nil {
			return nil, err
		}
	}
}

// DecodeRenew decodes and checks the body of a renew. It allocates nothing.
func DecodeRenew(data []byte, into *RenewRequest) error {
	s := scanner{data: data}
	*into = RenewRequest{}
	if err := s.renew(into); err != nil {
		return err
	}
	return nil
}

func (s *scanner) renew(into *RenewRequest) *Error {
	if err := s.openBody(); err != nil {
		return err
	}
	for {
		name, done, err := s.member("")
		if err != nil {
			return err
		}
		if done {
			break
		}
		switch string(name) {
		case "lease":
			into.Lease, err = s.lease(field{name: "lease"})
		case "ttl_ms":
			into.TTLMS, err = s.duration("ttl_ms")
		default:
			err = s.ignore("")
		}
		if err != nil {
			return err
		}
	}
	if err := s.closeBody(); err != nil {
		return err
	}
	return into.checkRequired()
}

// DecodeCancel decodes and checks the body of a cancel.
func DecodeCancel(data []byte, into *CancelRequest) error {
	s := scanner{data: data}
	*into = CancelRequest{}
	if err := s.cancel(into); err != nil {
		return err
	}
	return nil
}

func (s *scanner) cancel(into *CancelRequest) *Error {
	if err := s.openBody(); err != nil {
		return err
	}
	for {
		name, done, err := s.member("")
		if err != nil {
			return err
		}
		if done {
			break
		}
		switch string(name) {
		case "request_id":
			into.RequestID, err = s.text(field{name: "request_id"}, MaxRequestIDBytes)
		case "ticket":
			into.Ticket, err = s.ticket(field{name: "ticket"})
		case "lease":
			into.Lease, err = s.lease(field{name: "lease"})
		default:
			err = s.ignore("")
		}
		if err != nil {
			return err
		}
	}
	if err := s.closeBody(); err != nil {
		return err
	}
	return into.checkOne()
}

// CheckStatusRequest checks the body of a status request: any JSON object, or
// nothing at all. No field of it means anything yet.
func CheckStatusRequest(data []byte) error {
	s := scanner{data: data}
	if s.next(); s.pos == len(data) {
		return nil
	}
	if s.next() != '{' {
		return s.mismatch(field{}, "a JSON object")
	}
	if err := s.ignore(""); err != nil {
		return err
	}
	if err := s.closeBody(); err != nil {
		return err
	}
	return nil
}

// maxText is for texts that need no bound: those of a reply, which the largest
// NATS message bounds.
const maxText = math.MaxInt
