package wire

// DecodeDecision decodes the reply of an acquire. Beside the types it checks
// what a caller relies on: a grant names its lease; a defer its ticket, its
// cause and a retry_after_ms of 1 or more; a refusal its cause. A reply that
// breaks these rules is an [*Error] with code internal, since the fault is not
// the caller's.
func DecodeDecision(data []byte, into *Decision) error {
	s := scanner{data: data}
	*into = Decision{}
	err := s.decisionBody(into)
	if err == nil {
		err = into.checkReply()
	}
	return replyError(err)
}

// replyError makes the fault of a reply the broker's, and a nil *Error a nil error.
func replyError(err *Error) error {
	if err == nil {
		return nil
	}
	err.Code = CodeInternal
	return err
}

func (d *Decision) checkReply() *Error {
	switch {
	case d.Verdict == Grant && d.Lease.IsZero():
		return missing(field{name: "lease"}, "there on a grant")
	case d.Verdict == Defer && d.Ticket.IsZero():
		return missing(field{name: "ticket"}, "there on a defer")
	case d.Verdict == Defer && d.RetryAfterMS < 1:
		return bounds{1, MaxDurationMS}.check(field{name: "retry_after_ms"}, d.RetryAfterMS)
	case d.Verdict != Grant && d.Cause == CauseNone:
		return missing(field{name: "cause"}, "there on a defer and on a refuse")
	}
	return nil
}

func (s *scanner) decisionBody(into *Decision) *Error {
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
		if err := s.decisionField(name, into); err != nil {
			return err
		}
	}
	if err := s.closeBody(); err != nil {
		return err
	}
	if into.Verdict == 0 {
		return missing(field{name: "decision"}, oneOf(verdictNames[1:]))
	}
	return nil
}

func (s *scanner) decisionField(name []byte, into *Decision) (err *Error) {
	switch string(name) {
	case "decision":
		into.Verdict, err = choice[Verdict](s, field{name: "decision"}, verdictNames[:], 1)
	case "class":
		into.Class, err = s.text(field{name: "class"}, maxText)
	case "pool":
		into.Pool, err = s.text(field{name: "pool"}, maxText)
	case "cost":
		into.Cost, err = s.cost("cost.")
	case "lease":
		into.Lease, err = s.lease(field{name: "lease"})
	case "ttl_ms":
		into.TTLMS, err = s.count(field{name: "ttl_ms"})
	case "borrowed":
		into.Borrowed, err = s.boolean(field{name: "borrowed"})
	case "waited_ms":
		into.WaitedMS, err = s.count(field{name: "waited_ms"})
	case "epoch":
		into.Epoch, err = s.unsigned(field{name: "epoch"})
	case "cause":
		into.Cause, err = choice[Cause](s, field{name: "cause"}, causeNames[:], 0)
	case "retry_after_ms":
		into.RetryAfterMS, err = s.count(field{name: "retry_after_ms"})
	case "message":
		into.Message, err = s.text(field{name: "message"}, maxText)
	case "ticket":
		into.Ticket, err = s.ticket(field{name: "ticket"})
	case "eta_ms":
		into.EtaMS, err = s.count(field{name: "eta_ms"})
	case "booked":
		into.Booked, err = s.boolean(field{name: "booked"})
	case "position":
		into.Position, err = s.count(field{name: "position"})
	case "tokens_ahead":
		into.TokensAhead, err = s.count(field{name: "tokens_ahead"})
	case "limit":
		into.Limit, err = s.text(field{name: "limit"}, maxText)
	case "limit_tokens":
		into.LimitTokens, err = s.count(field{name: "limit_tokens"})
	default:
		err = s.ignore("")
	}
	return err
}

// count reads a whole number that is 0 or more; null is 0.
func (s *scanner) count(f field) (int64, *Error) {
	v, err := s.integer(f, countBounds)
	return v.Value, err
}

func (s *scanner) cost(in string) (c Cost, err *Error) {
	if present, err := s.open(field{in: in}); !present {
		return Cost{}, err
	}
	for {
		name, done, err := s.member(in)
		if err != nil || done {
			return c, err
		}
		switch string(name) {
		case "requests":
			c.Requests, err = s.count(field{in, "requests"})
		case "input_tokens":
			c.InputTokens, err = s.count(field{in, "input_tokens"})
		case "output_tokens":
			c.OutputTokens, err = s.count(field{in, "output_tokens"})
		case "tokens":
			c.Tokens, err = s.count(field{in, "tokens"})
		case "method":
			c.Method, err = choice[Method](s, field{in, "method"}, methodNames[:], 0)
		default:
			err = s.ignore(in)
		}
		if err != nil {
			return Cost{}, err
		}
	}
}

// DecodeSettleReply decodes the reply of a settle, which names its lease. A
// reply that breaks a rule is an [*Error] with code internal.
func DecodeSettleReply(data []byte, into *SettleReply) error {
	s := scanner{data: data}
	*into = SettleReply{}
	return replyError(s.settleReply(into))
}

func (s *scanner) settleReply(into *SettleReply) *Error {
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
		case "settled":
			into.Settled, err = s.boolean(field{name: "settled"})
		case "late":
			into.Late, err = s.boolean(field{name: "late"})
		case "lease":
			into.Lease, err = s.lease(field{name: "lease"})
		case "charged":
			into.Charged, err = s.cost("charged.")
		case "delta_tokens":
			var v OptInt
			v, err = s.integer(field{name: "delta_tokens"}, anyInteger)
			into.DeltaTokens = v.Value
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
	if into.Lease.IsZero() {
		return missing(field{name: "lease"}, "there")
	}
	return nil
}
