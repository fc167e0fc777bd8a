package wire_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"quotabroker/wire"
)

// The messages, in terms of the reference decoders of reference_test.go.

func refAcquire(data []byte) (r wire.AcquireRequest, err error) {
	err = refObject(data, map[string]setter{
		"request_id": refText(&r.RequestID, 128),
		"model":      refText(&r.Model, 256),
		"request": func(raw []byte) error {
			r.Request = nil
			if isNull(raw) {
				return nil
			}
			if raw[0] != '{' || depth(raw) > 64 {
				return refuse("no object, or too deep")
			}
			r.Request = raw
			return nil
		},
		"input_tokens":      refOpt(&r.InputTokens, 0, 1e9),
		"max_output_tokens": refOpt(&r.MaxOutputTokens, 0, 1e9),
		"tenant":            refText(&r.Tenant, 256),
		"kind":              refText(&r.Kind, 256),
		"wait_ms":           refInt(&r.WaitMS, 0, 31_536_000_000),
		"deadline_ms":       refOpt(&r.DeadlineMS, 0, 31_536_000_000),
		"ttl_ms":            refInt(&r.TTLMS, 0, 31_536_000_000),
		"ticket":            refTicket(&r.Ticket),
		"confirm":           refBool(&r.Confirm),
	})
	if err == nil && (r.Request != nil) == r.InputTokens.Set {
		err = refuse("not exactly one of request and input_tokens")
	}
	return r, err
}

func refSettle(data []byte) (r wire.SettleRequest, err error) {
	limit := func(into **wire.LimitState) setter {
		return refPart(into, func(l *wire.LimitState) map[string]setter {
			return map[string]setter{
				"limit":     refOpt(&l.Limit, 0, 1e15),
				"remaining": refOpt(&l.Remaining, 0, 1e15),
				"reset_ms":  refOpt(&l.ResetMS, 0, 31_536_000_000),
			}
		})
	}
	err = refObject(data, map[string]setter{
		"lease": refLease(&r.Lease),
		"outcome": refWord(func(i int) { r.Outcome = wire.Outcome(i) },
			"-", "ok", "unsent", "failed", "throttled", "overloaded", "exhausted", "unknown"),
		"usage": func(raw []byte) error {
			var input, output wire.OptInt
			err := refPart(&r.Usage, func(u *wire.Usage) map[string]setter {
				return map[string]setter{
					"input_tokens":        refOpt(&input, 0, 1e9),
					"cached_input_tokens": refInt(&u.CachedInputTokens, 0, 1e9),
					"cache_write_tokens":  refInt(&u.CacheWriteTokens, 0, 1e9),
					"output_tokens":       refOpt(&output, 0, 1e9),
					"reasoning_tokens":    refInt(&u.ReasoningTokens, 0, 1e9),
				}
			})(raw)
			if err != nil || r.Usage == nil {
				return err
			}
			if !input.Set || !output.Set {
				return refuse("a figure is missing")
			}
			r.Usage.InputTokens, r.Usage.OutputTokens = input.Value, output.Value
			return nil
		},
		"provider": refPart(&r.Provider, func(p *wire.ProviderState) map[string]setter {
			return map[string]setter{
				"status":         refInt(&p.Status, 0, 999),
				"retry_after_ms": refOpt(&p.RetryAfterMS, 0, 31_536_000_000),
				"tokens":         limit(&p.Tokens),
				"input_tokens":   limit(&p.InputTokens),
				"output_tokens":  limit(&p.OutputTokens),
				"requests":       limit(&p.Requests),
			}
		}),
	})
	if err == nil && (r.Lease.IsZero() || r.Outcome == 0) {
		err = refuse("no lease, or no outcome")
	}
	return r, err
}

func refRenew(data []byte) (r wire.RenewRequest, err error) {
	err = refObject(data, map[string]setter{
		"lease":  refLease(&r.Lease),
		"ttl_ms": refInt(&r.TTLMS, 0, 31_536_000_000),
	})
	if err == nil && r.Lease.IsZero() {
		err = refuse("no lease")
	}
	return r, err
}

func refCancel(data []byte) (r wire.CancelRequest, err error) {
	err = refObject(data, map[string]setter{
		"request_id": refText(&r.RequestID, 128),
		"ticket":     refTicket(&r.Ticket),
		"lease":      refLease(&r.Lease),
	})
	named := 0
	if r.RequestID != "" {
		named++
	}
	if r.Ticket.N != 0 {
		named++
	}
	if r.Lease.N != 0 {
		named++
	}
	if err == nil && named != 1 {
		err = refuse("%d things named", named)
	}
	return r, err
}

func refCost(into *wire.Cost) setter {
	return func(raw []byte) error {
		*into = wire.Cost{}
		if isNull(raw) {
			return nil
		}
		return refObject(raw, map[string]setter{
			"requests":      refInt(&into.Requests, 0, math.MaxInt64),
			"input_tokens":  refInt(&into.InputTokens, 0, math.MaxInt64),
			"output_tokens": refInt(&into.OutputTokens, 0, math.MaxInt64),
			"tokens":        refInt(&into.Tokens, 0, math.MaxInt64),
			"method": refWord(func(i int) { into.Method = wire.Method(i) },
				"", "exact", "counted", "sampled", "fallback", "regression"),
		})
	}
}

func refDecision(data []byte) (d wire.Decision, err error) {
	err = refObject(data, map[string]setter{
		"decision":  refWord(func(i int) { d.Verdict = wire.Verdict(i) }, "-", "grant", "defer", "refuse"),
		"class":     refText(&d.Class, math.MaxInt),
		"pool":      refText(&d.Pool, math.MaxInt),
		"cost":      refCost(&d.Cost),
		"lease":     refLease(&d.Lease),
		"ttl_ms":    refInt(&d.TTLMS, 0, math.MaxInt64),
		"borrowed":  refBool(&d.Borrowed),
		"waited_ms": refInt(&d.WaitedMS, 0, math.MaxInt64),
		"epoch":     refUint(&d.Epoch),
		"cause": refWord(func(i int) { d.Cause = wire.Cause(i) }, strings.Split(
			" quota reserved order pace tenant_limit concurrency provider_pause class_saturated queue_full deadline"+
				" too_large no_quota account_exhausted draining", " ")...),
		"retry_after_ms": refInt(&d.RetryAfterMS, 0, math.MaxInt64),
		"message":        refText(&d.Message, math.MaxInt),
		"ticket":         refTicket(&d.Ticket),
		"eta_ms":         refInt(&d.EtaMS, 0, math.MaxInt64),
		"booked":         refBool(&d.Booked),
		"position":       refInt(&d.Position, 0, math.MaxInt64),
		"tokens_ahead":   refInt(&d.TokensAhead, 0, math.MaxInt64),
		"limit":          refText(&d.Limit, math.MaxInt),
		"limit_tokens":   refInt(&d.LimitTokens, 0, math.MaxInt64),
	})
	if err != nil {
		return d, err
	}
	ok := false
	switch d.Verdict {
	case wire.Grant:
		ok = d.Lease.N != 0
	case wire.Defer:
		ok = d.Ticket.N != 0 && d.RetryAfterMS > 0 && d.Cause != 0
	case wire.Refuse:
		ok = d.Cause != 0
	}
	if !ok {
		err = refuse("a decision that a caller cannot act on")
	}
	return d, err
}

func refSettleReply(data []byte) (r wire.SettleReply, err error) {
	err = refObject(data, map[string]setter{
		"settled":      refBool(&r.Settled),
		"late":         refBool(&r.Late),
		"lease":        refLease(&r.Lease),
		"charged":      refCost(&r.Charged),
		"delta_tokens": refInt(&r.DeltaTokens, math.MinInt64, math.MaxInt64),
	})
	if err == nil && r.Lease.IsZero() {
		err = refuse("no lease")
	}
	return r, err
}

func refStatusRequest(data []byte) error {
	if len(bytes.Trim(data, " \t\r\n")) == 0 {
		return nil
	}
	if !json.Valid(data) || bytes.TrimLeft(data, " \t\r\n")[0] != '{' || depth(data) > 64 {
		return refuse("no object")
	}
	return nil
}
