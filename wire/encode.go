package wire

import (
	"strconv"
	"unicode/utf8"
)

// The encoders append one message to b and return the longer slice, in the
// manner of append; they allocate only where b has no room. What they write is
// valid JSON whatever the strings hold: bytes that are no UTF-8 become U+FFFD.

// AppendAcquire appends an acquire, estimate or explain request. Absent and zero
// fields are left out. r.Request goes out as it stands, so it must be valid JSON;
// [AcquireRequest.Validate] says whether it is.
func AppendAcquire(b []byte, r *AcquireRequest) []byte {
	b = append(b, '{')
	b = textMember(b, "request_id", r.RequestID)
	b = textMember(b, "model", r.Model)
	if len(r.Request) > 0 {
		b = append(member(b, "request"), r.Request...)
	}
	b = optMember(b, "input_tokens", r.InputTokens)
	b = optMember(b, "max_output_tokens", r.MaxOutputTokens)
	b = textMember(b, "tenant", r.Tenant)
	b = textMember(b, "kind", r.Kind)
	b = nonzeroMember(b, "wait_ms", r.WaitMS)
	b = optMember(b, "deadline_ms", r.DeadlineMS)
	b = nonzeroMember(b, "ttl_ms", r.TTLMS)
	b = ticketMember(b, r.Ticket)
	if r.Confirm {
		b = append(member(b, "confirm"), "true"...)
	}
	return append(b, '}')
}

// AppendSettle appends a settle request. Absent and zero fields are left out,
// but for a usage's input_tokens and output_tokens, which are always sent.
func AppendSettle(b []byte, r *SettleRequest) []byte {
	b = append(b, `{"lease":"`...)
	b = appendID(b, r.Lease.Epoch, "-", r.Lease.N)
	b = append(b, `","outcome":"`...)
	b = append(b, r.Outcome.String()...)
	b = append(b, '"')
	if u := r.Usage; u != nil {
		b = append(b, `,"usage":{`...)
		b = intMember(b, "input_tokens", u.InputTokens)
		b = nonzeroMember(b, "cached_input_tokens", u.CachedInputTokens)
		b = nonzeroMember(b, "cache_write_tokens", u.CacheWriteTokens)
		b = intMember(b, "output_tokens", u.OutputTokens)
		b = nonzeroMember(b, "reasoning_tokens", u.ReasoningTokens)
		b = append(b, '}')
	}
	if p := r.Provider; p != nil {
		b = append(b, `,"provider":{`...)
		b = nonzeroMember(b, "status", p.Status)
		b = optMember(b, "retry_after_ms", p.RetryAfterMS)
		b = limitMember(b, "tokens", p.Tokens)
		b = limitMember(b, "input_tokens", p.InputTokens)
		b = limitMember(b, "output_tokens", p.OutputTokens)
		b = limitMember(b, "requests", p.Requests)
		b = append(b, '}')
	}
	return append(b, '}')
}

func limitMember(b []byte, name string, l *LimitState) []byte {
	if l == nil {
		return b
	}
	b = append(member(b, name), '{')
	b = optMember(b, "limit", l.Limit)
	b = optMember(b, "remaining", l.Remaining)
	b = optMember(b, "reset_ms", l.ResetMS)
	return append(b, '}')
}

// AppendRenew appends a renew request. A ttl_ms of 0 is left out.
func AppendRenew(b []byte, r *RenewRequest) []byte {
	b = leaseMember(append(b, '{'), r.Lease)
	b = nonzeroMember(b, "ttl_ms", r.TTLMS)
	return append(b, '}')
}

// AppendCancel appends a cancel request with the one field that is set.
func AppendCancel(b []byte, r *CancelRequest) []byte {
	b = append(b, '{')
	b = textMember(b, "request_id", r.RequestID)
	b = ticketMember(b, r.Ticket)
	if !r.Lease.IsZero() {
		b = leaseMember(b, r.Lease)
	}
	return append(b, '}')
}

// AppendDecision appends the reply of an acquire: of d exactly the fields that
// belong to its verdict, so that what is left over in others never leaks.
//
//   - grant: lease, class, pool, ttl_ms, cost, borrowed, waited_ms, epoch
//   - defer: class, pool, ticket, retry_after_ms, eta_ms, booked, position,
//     tokens_ahead, cause, limit, cost; waited_ms when it is not 0
//   - refuse: class, pool, cause, message, cost; retry_after_ms when it is above
//     0 and the cause is not permanent; limit and limit_tokens with too_large
//
// A zero lease or ticket, as inside an explanation, is left out. The Verdict must
// be one of the three: AppendDecision panics on any other.
func AppendDecision(b []byte, d *Decision) []byte {
	b = append(b, `{"decision":"`...)
	b = append(b, d.Verdict.String()...)
	b = append(b, '"')
	switch d.Verdict {
	case Grant:
		if !d.Lease.IsZero() {
			b = leaseMember(b, d.Lease)
		}
		b = placeMembers(b, d)
		b = intMember(b, "ttl_ms", d.TTLMS)
		b = appendCost(member(b, "cost"), &d.Cost)
		b = boolMember(b, "borrowed", d.Borrowed)
		b = intMember(b, "waited_ms", d.WaitedMS)
		b = strconv.AppendUint(member(b, "epoch"), d.Epoch, 10)
	case Defer:
		b = placeMembers(b, d)
		b = ticketMember(b, d.Ticket)
		b = intMember(b, "retry_after_ms", d.RetryAfterMS)
		b = intMember(b, "eta_ms", d.EtaMS)
		b = boolMember(b, "booked", d.Booked)
		b = intMember(b, "position", d.Position)
		b = intMember(b, "tokens_ahead", d.TokensAhead)
		b = causeMember(b, d.Cause)
		b = appendString(member(b, "limit"), d.Limit)
		b = nonzeroMember(b, "waited_ms", d.WaitedMS)
		b = appendCost(member(b, "cost"), &d.Cost)
	case Refuse:
		b = placeMembers(b, d)
		b = causeMember(b, d.Cause)
		if d.RetryAfterMS > 0 && !d.Cause.Permanent() {
			b = intMember(b, "retry_after_ms", d.RetryAfterMS)
		}
		b = appendString(member(b, "message"), d.Message)
		if d.Cause == CauseTooLarge {
			b = appendString(member(b, "limit"), d.Limit)
			b = intMember(b, "limit_tokens", d.LimitTokens)
		}
		b = appendCost(member(b, "cost"), &d.Cost)
	default:
		panic("wire: a decision without a verdict")
	}
	return append(b, '}')
}

func placeMembers(b []byte, d *Decision) []byte {
	b = appendString(member(b, "class"), d.Class)
	return appendString(member(b, "pool"), d.Pool)
}

// AppendSettleReply appends the reply of a settle. late is left out when false.
func AppendSettleReply(b []byte, r *SettleReply) []byte {
	b = boolMember(append(b, '{'), "settled", r.Settled)
	if r.Late {
		b = boolMember(b, "late", true)
	}
	b = leaseMember(b, r.Lease)
	b = appendCost(member(b, "charged"), &r.Charged)
	b = intMember(b, "delta_tokens", r.DeltaTokens)
	return append(b, '}')
}

// AppendRenewReply appends the reply of a renew.
func AppendRenewReply(b []byte, r *RenewReply) []byte {
	b = leaseMember(append(b, '{'), r.Lease)
	b = intMember(b, "ttl_ms", r.TTLMS)
	return append(b, '}')
}

// AppendCancelReply appends the reply of a cancel.
func AppendCancelReply(b []byte, r *CancelReply) []byte {
	return append(boolMember(append(b, '{'), "cancelled", r.Cancelled), '}')
}

// AppendError appends the body of an error reply, {"error":{…}}. field is left
// out where no single field is at fault.
func AppendError(b []byte, e *Error) []byte {
	b = append(b, `{"error":{"code":`...)
	b = appendString(b, string(e.Code))
	b = textMember(b, "field", e.Field)
	b = appendString(member(b, "message"), e.Message)
	return append(b, '}', '}')
}

func appendCost(b []byte, c *Cost) []byte {
	b = append(b, '{')
	b = intMember(b, "requests", c.Requests)
	b = intMember(b, "input_tokens", c.InputTokens)
	b = intMember(b, "output_tokens", c.OutputTokens)
	b = intMember(b, "tokens", c.Tokens)
	b = textMember(b, "method", c.Method.String())
	return append(b, '}')
}

// member appends a field name and its colon, after a comma where a field stands
// before it: after a brace none does.
func member(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func intMember(b []byte, name string, v int64) []byte {
	return strconv.AppendInt(member(b, name), v, 10)
}

func nonzeroMember(b []byte, name string, v int64) []byte {
	if v == 0 {
		return b
	}
	return intMember(b, name, v)
}

func optMember(b []byte, name string, v OptInt) []byte {
	if !v.Set {
		return b
	}
	return intMember(b, name, v.Value)
}

func boolMember(b []byte, name string, v bool) []byte {
	return strconv.AppendBool(member(b, name), v)
}

func textMember(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendString(member(b, name), text)
}

func causeMember(b []byte, c Cause) []byte { return appendString(member(b, "cause"), c.String()) }

func leaseMember(b []byte, id LeaseID) []byte {
	b = append(member(b, "lease"), '"')
	return append(appendID(b, id.Epoch, "-", id.N), '"')
}

func ticketMember(b []byte, id TicketID) []byte {
	if id.IsZero() {
		return b
	}
	b = append(member(b, "ticket"), '"')
	return append(appendID(b, id.Epoch, "-t", id.N), '"')
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0 // s[from:i] needs no escape and is not yet written
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, s[from:i]...)
				b = utf8.AppendRune(b, utf8.RuneError)
				from = i + 1
			}
			i += size
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}
