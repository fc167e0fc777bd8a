package wire_test

import (
	"encoding/json"
	"math"
	"strings"

	"pgregory.net/rapid"

	"quotabroker/wire"
)

// Generators of valid messages: what a well-behaved producer or broker sends.

func genOpt(most int64) *rapid.Generator[wire.OptInt] {
	return rapid.Custom(func(t *rapid.T) wire.OptInt {
		if !rapid.Bool().Draw(t, "set") {
			return wire.OptInt{}
		}
		return wire.Int(rapid.Int64Range(0, most).Draw(t, "value"))
	})
}

// genText makes valid UTF-8 of at most most bytes, with all that must be escaped.
func genText(most int) *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Just(""),
		rapid.SampledFrom([]string{"acme.eu", "a b", "ü", "*", ">", "a..b", "\u2028", "\x00\x1f\x7f", `"\/`, "\b\f\n\r\t", "𝒳", "\ufffd"}),
		rapid.StringN(-1, -1, most),
	)
}

func genName() *rapid.Generator[string] { return rapid.StringMatching(`[A-Za-z0-9_-]{1,32}`) }

func genLease() *rapid.Generator[wire.LeaseID] {
	return rapid.Custom(func(t *rapid.T) wire.LeaseID {
		return wire.LeaseID{Epoch: rapid.Uint64().Draw(t, "epoch"), N: rapid.Uint64Min(1).Draw(t, "n")}
	})
}

func genTicket() *rapid.Generator[wire.TicketID] {
	return rapid.Map(genLease(), func(id wire.LeaseID) wire.TicketID { return wire.TicketID(id) })
}

// genJSON makes any value that nests at most deep levels.
func genJSON(deep int) *rapid.Generator[any] {
	leaf := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Float64Range(-1e300, 1e300).AsAny(),
		rapid.Int64().AsAny(),
		rapid.String().AsAny(),
	}
	if deep == 0 {
		return rapid.OneOf(leaf...)
	}
	return rapid.OneOf(append(leaf,
		rapid.Map(rapid.SliceOfN(genJSON(deep-1), 0, 3), func(v []any) any { return v }),
		rapid.Map(genBody(deep-1), func(v map[string]any) any { return v }),
	)...)
}

func genBody(deep int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.StringN(0, 8, -1), genJSON(deep), 0, 4)
}

func genAcquire() *rapid.Generator[wire.AcquireRequest] {
	return rapid.Custom(func(t *rapid.T) wire.AcquireRequest {
		r := wire.AcquireRequest{
			RequestID:       genText(wire.MaxRequestIDBytes).Draw(t, "request_id"),
			Model:           genText(wire.MaxTextBytes).Draw(t, "model"),
			MaxOutputTokens: genOpt(wire.MaxTokens).Draw(t, "max_output_tokens"),
			Tenant:          genText(wire.MaxTextBytes).Draw(t, "tenant"),
			Kind:            genText(wire.MaxTextBytes).Draw(t, "kind"),
			WaitMS:          rapid.Int64Range(0, wire.MaxDurationMS).Draw(t, "wait_ms"),
			DeadlineMS:      genOpt(wire.MaxDurationMS).Draw(t, "deadline_ms"),
			TTLMS:           rapid.Int64Range(0, wire.MaxDurationMS).Draw(t, "ttl_ms"),
			Confirm:         rapid.Bool().Draw(t, "confirm"),
		}
		if rapid.Bool().Draw(t, "comes back") {
			r.Ticket = genTicket().Draw(t, "ticket")
		}
		if rapid.Bool().Draw(t, "has counted") {
			r.InputTokens = wire.Int(rapid.Int64Range(0, wire.MaxTokens).Draw(t, "input_tokens"))
			return r
		}
		body, err := json.Marshal(genBody(3).Draw(t, "request"))
		if err != nil {
			t.Fatal(err)
		}
		r.Request = body
		return r
	})
}

func genSettle() *rapid.Generator[wire.SettleRequest] {
	return rapid.Custom(func(t *rapid.T) wire.SettleRequest {
		return wire.SettleRequest{
			Lease:    genLease().Draw(t, "lease"),
			Outcome:  wire.Outcome(rapid.IntRange(int(wire.OutcomeOK), int(wire.OutcomeUnknown)).Draw(t, "outcome")),
			Usage:    rapid.Ptr(genUsage(), true).Draw(t, "usage"),
			Provider: rapid.Ptr(genProvider(), true).Draw(t, "provider"),
		}
	})
}

func genUsage() *rapid.Generator[wire.Usage] {
	return rapid.Custom(func(t *rapid.T) wire.Usage {
		tokens := rapid.Int64Range(0, wire.MaxTokens)
		return wire.Usage{
			InputTokens:       tokens.Draw(t, "input_tokens"),
			CachedInputTokens: tokens.Draw(t, "cached_input_tokens"),
			CacheWriteTokens:  tokens.Draw(t, "cache_write_tokens"),
			OutputTokens:      tokens.Draw(t, "output_tokens"),
			ReasoningTokens:   tokens.Draw(t, "reasoning_tokens"),
		}
	})
}

func genProvider() *rapid.Generator[wire.ProviderState] {
	return rapid.Custom(func(t *rapid.T) wire.ProviderState {
		limit := rapid.Ptr(rapid.Custom(func(t *rapid.T) wire.LimitState {
			return wire.LimitState{
				Limit:     genOpt(wire.MaxLimitAmount).Draw(t, "limit"),
				Remaining: genOpt(wire.MaxLimitAmount).Draw(t, "remaining"),
				ResetMS:   genOpt(wire.MaxDurationMS).Draw(t, "reset_ms"),
			}
		}), true)
		return wire.ProviderState{
			Status:       rapid.Int64Range(0, 999).Draw(t, "status"),
			RetryAfterMS: genOpt(wire.MaxDurationMS).Draw(t, "retry_after_ms"),
			Tokens:       limit.Draw(t, "tokens"),
			InputTokens:  limit.Draw(t, "input_tokens"),
			OutputTokens: limit.Draw(t, "output_tokens"),
			Requests:     limit.Draw(t, "requests"),
		}
	})
}

func genRenew() *rapid.Generator[wire.RenewRequest] {
	return rapid.Custom(func(t *rapid.T) wire.RenewRequest {
		return wire.RenewRequest{
			Lease: genLease().Draw(t, "lease"),
			TTLMS: rapid.Int64Range(0, wire.MaxDurationMS).Draw(t, "ttl_ms"),
		}
	})
}

func genCancel() *rapid.Generator[wire.CancelRequest] {
	return rapid.Custom(func(t *rapid.T) wire.CancelRequest {
		switch rapid.IntRange(0, 2).Draw(t, "which") {
		case 0:
			return wire.CancelRequest{Ticket: genTicket().Draw(t, "ticket")}
		case 1:
			return wire.CancelRequest{Lease: genLease().Draw(t, "lease")}
		}
		id := genText(wire.MaxRequestIDBytes).Filter(func(s string) bool { return s != "" })
		return wire.CancelRequest{RequestID: id.Draw(t, "request_id")}
	})
}

func genCost() *rapid.Generator[wire.Cost] {
	return rapid.Custom(func(t *rapid.T) wire.Cost {
		return wire.Cost{
			Requests:     genCount().Draw(t, "requests"),
			InputTokens:  genCount().Draw(t, "input_tokens"),
			OutputTokens: genCount().Draw(t, "output_tokens"),
			Tokens:       genCount().Draw(t, "tokens"),
			Method:       wire.Method(rapid.IntRange(0, int(wire.MethodRegression)).Draw(t, "method")),
		}
	})
}

func genCount() *rapid.Generator[int64] { return rapid.Int64Min(0) }

var (
	deferCauses = []wire.Cause{
		wire.CauseQuota, wire.CauseReserved, wire.CauseOrder, wire.CausePace,
		wire.CauseTenantLimit, wire.CauseConcurrency, wire.CauseProviderPause,
	}
	refuseCauses = []wire.Cause{
		wire.CauseTenantLimit, wire.CauseClassSaturated, wire.CauseQueueFull, wire.CauseDeadline,
		wire.CauseTooLarge, wire.CauseNoQuota, wire.CauseAccountExhausted, wire.CauseDraining,
	}
)

// genDecision makes decisions that hold nothing but what their verdict sends.
func genDecision() *rapid.Generator[wire.Decision] {
	return rapid.Custom(func(t *rapid.T) wire.Decision {
		d := wire.Decision{
			Verdict: wire.Verdict(rapid.IntRange(int(wire.Grant), int(wire.Refuse)).Draw(t, "decision")),
			Class:   genName().Draw(t, "class"),
			Pool:    genName().Draw(t, "pool"),
			Cost:    genCost().Draw(t, "cost"),
		}
		switch d.Verdict {
		case wire.Grant:
			d.Lease = genLease().Draw(t, "lease")
			d.TTLMS = genCount().Draw(t, "ttl_ms")
			d.Borrowed = rapid.Bool().Draw(t, "borrowed")
			d.WaitedMS = genCount().Draw(t, "waited_ms")
			d.Epoch = rapid.Uint64().Draw(t, "epoch")
		case wire.Defer:
			d.Ticket = genTicket().Draw(t, "ticket")
			d.RetryAfterMS = rapid.Int64Min(1).Draw(t, "retry_after_ms")
			d.EtaMS = genCount().Draw(t, "eta_ms")
			d.Booked = rapid.Bool().Draw(t, "booked")
			d.Position = genCount().Draw(t, "position")
			d.TokensAhead = genCount().Draw(t, "tokens_ahead")
			d.Cause = rapid.SampledFrom(deferCauses).Draw(t, "cause")
			d.Limit = genText(20).Draw(t, "limit")
			d.WaitedMS = genCount().Draw(t, "waited_ms")
		case wire.Refuse:
			d.Cause = rapid.SampledFrom(refuseCauses).Draw(t, "cause")
			d.Message = genText(200).Draw(t, "message")
			if !d.Cause.Permanent() {
				d.RetryAfterMS = genCount().Draw(t, "retry_after_ms")
			}
			if d.Cause == wire.CauseTooLarge {
				d.Limit = genText(20).Draw(t, "limit")
				d.LimitTokens = genCount().Draw(t, "limit_tokens")
			}
		}
		return d
	})
}

func genSettleReply() *rapid.Generator[wire.SettleReply] {
	return rapid.Custom(func(t *rapid.T) wire.SettleReply {
		return wire.SettleReply{
			Settled:     rapid.Bool().Draw(t, "settled"),
			Late:        rapid.Bool().Draw(t, "late"),
			Lease:       genLease().Draw(t, "lease"),
			Charged:     genCost().Draw(t, "charged"),
			DeltaTokens: rapid.Int64Range(math.MinInt64, math.MaxInt64).Draw(t, "delta_tokens"),
		}
	})
}

func genError() *rapid.Generator[wire.Error] {
	return rapid.Custom(func(t *rapid.T) wire.Error {
		return wire.Error{
			Code:    rapid.SampledFrom(errorCodes).Draw(t, "code"),
			Field:   genText(40).Draw(t, "field"),
			Message: "because " + genText(200).Draw(t, "message"),
		}
	})
}

// nested returns a value of the given number of arrays or objects round a 1.
func nested(levels int, left, right string) string {
	return strings.Repeat(left, levels) + "1" + strings.Repeat(right, levels)
}
