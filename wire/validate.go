package wire

// Validate checks a request built in Go by the rules of [DecodeAcquire], in the
// same sentences. What it returns is nil or an [*Error]. It reads the whole of
// Request, which must be one well-formed JSON object.
func (r *AcquireRequest) Validate() error {
	if err := r.check(); err != nil {
		return err
	}
	return nil
}

func (r *AcquireRequest) check() *Error {
	return firstError(
		checkText(field{name: "request_id"}, r.RequestID, MaxRequestIDBytes),
		checkText(field{name: "model"}, r.Model, MaxTextBytes),
		checkText(field{name: "tenant"}, r.Tenant, MaxTextBytes),
		checkText(field{name: "kind"}, r.Kind, MaxTextBytes),
		tokenBounds.check(field{name: "input_tokens"}, r.InputTokens.Or(0)),
		tokenBounds.check(field{name: "max_output_tokens"}, r.MaxOutputTokens.Or(0)),
		durationBounds.check(field{name: "wait_ms"}, r.WaitMS),
		durationBounds.check(field{name: "deadline_ms"}, r.DeadlineMS.Or(0)),
		durationBounds.check(field{name: "ttl_ms"}, r.TTLMS),
		checkRequest(r.Request),
		r.checkOne(),
	)
}

// checkOne checks that the producer says in exactly one way how large its
// request is.
func (r *AcquireRequest) checkOne() *Error {
	switch has := len(r.Request) > 0; {
	case has && r.InputTokens.Set:
		return BadField("", "request and input_tokens are both there; exactly one must be")
	case !has && !r.InputTokens.Set:
		return BadField("", "request and input_tokens are both missing; exactly one must be there")
	}
	return nil
}

// checkRequest checks a body as it will go on the wire. A null there would be
// dropped by the other side, so it is refused here.
func checkRequest(body []byte) *Error {
	if len(body) == 0 {
		return nil
	}
	f := field{name: "request"}
	s := scanner{data: body}
	if s.next() != '{' {
		return s.mismatch(f, "a JSON object, the provider request body")
	}
	p := s.skip()
	if p == "" && s.next() == 0 && s.pos == len(body) {
		return nil
	}
	if p == "" {
		p = hasTail
	}
	return s.syntax(f, p)
}

// Validate checks a request built in Go by the rules of [DecodeSettle], in the
// same sentences. What it returns is nil or an [*Error].
func (r *SettleRequest) Validate() error {
	err := firstError(r.checkRequired(), r.Usage.check(), r.Provider.check())
	if err != nil {
		return err
	}
	return nil
}

func (r *SettleRequest) checkRequired() *Error {
	if r.Lease.IsZero() {
		return missing(field{name: "lease"}, "the id from the grant")
	}
	if r.Outcome.String() == "" {
		return missing(field{name: "outcome"}, oneOf(outcomeNames[:]))
	}
	return nil
}

func (u *Usage) check() *Error {
	if u == nil {
		return nil
	}
	const in = "usage."
	return firstError(
		tokenBounds.check(field{in, "input_tokens"}, u.InputTokens),
		tokenBounds.check(field{in, "cached_input_tokens"}, u.CachedInputTokens),
		tokenBounds.check(field{in, "cache_write_tokens"}, u.CacheWriteTokens),
		tokenBounds.check(field{in, "output_tokens"}, u.OutputTokens),
		tokenBounds.check(field{in, "reasoning_tokens"}, u.ReasoningTokens),
	)
}

func (p *ProviderState) check() *Error {
	if p == nil {
		return nil
	}
	const in = "provider."
	return firstError(
		statusBounds.check(field{in, "status"}, p.Status),
		durationBounds.check(field{in, "retry_after_ms"}, p.RetryAfterMS.Or(0)),
		p.Tokens.check("provider.tokens."),
		p.InputTokens.check("provider.input_tokens."),
		p.OutputTokens.check("provider.output_tokens."),
		p.Requests.check("provider.requests."),
	)
}

func (l *LimitState) check(in string) *Error {
	if l == nil {
		return nil
	}
	return firstError(
		amountBounds.check(field{in, "limit"}, l.Limit.Or(0)),
		amountBounds.check(field{in, "remaining"}, l.Remaining.Or(0)),
		durationBounds.check(field{in, "reset_ms"}, l.ResetMS.Or(0)),
	)
}

// Validate checks a request built in Go by the rules of [DecodeRenew], in the
// same sentences. What it returns is nil or an [*Error].
func (r *RenewRequest) Validate() error {
	err := firstError(r.checkRequired(), durationBounds.check(field{name: "ttl_ms"}, r.TTLMS))
	if err != nil {
		return err
	}
	return nil
}

func (r *RenewRequest) checkRequired() *Error {
	if r.Lease.IsZero() {
		return missing(field{name: "lease"}, "the id from the grant")
	}
	return nil
}

// Validate checks a request built in Go by the rules of [DecodeCancel], in the
// same sentences. What it returns is nil or an [*Error].
func (r *CancelRequest) Validate() error {
	err := firstError(checkText(field{name: "request_id"}, r.RequestID, MaxRequestIDBytes), r.checkOne())
	if err != nil {
		return err
	}
	return nil
}

// checkOne checks that exactly one thing is named.
func (r *CancelRequest) checkOne() *Error {
	named := 0
	for _, there := range [...]bool{r.RequestID != "", !r.Ticket.IsZero(), !r.Lease.IsZero()} {
		if there {
			named++
		}
	}
	if named == 1 {
		return nil
	}
	return BadField("", "%d of request_id, ticket and lease are there; exactly one must be", named)
}

func firstError(errs ...*Error) *Error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
