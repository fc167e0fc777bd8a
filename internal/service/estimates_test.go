package service

import (
	"encoding/json"
	"fmt"
	"testing"

	"quotabroker/estimator"
	"quotabroker/estimator/learn"
	"quotabroker/wire"
)

// What settlements teach changes what is charged for the next job of the sort: its
// output where it sets no limit, and its input where its model has no tokenizer. A
// correction that was learned is not learned again.
func TestEstimatesLearn(t *testing.T) {
	est, err := estimator.New(estimator.Default())
	if err != nil {
		t.Fatal(err)
	}
	learned, err := learn.New(learn.Default())
	if err != nil {
		t.Fatal(err)
	}
	e := NewEstimates(est, learned)
	bubble(t, oneClass(100_000_000), func(t *testing.T, r *rig) {
		ask := func(kind, more string) wire.Decision {
			return r.acquire("api", fmt.Sprintf(`{"kind":%q,"request":{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":%q}]%s}}`,
				kind, "How far is it from the moon to the sea, and who has measured it?", more))
		}
		first := ask("judge", "")
		for range 200 {
			d := ask("judge", "")
			in := first.Cost.InputTokens * 3 / 2
			r.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"ok","usage":{"input_tokens":%d,"output_tokens":40}}`, d.Lease, in))
		}
		now := ask("judge", "")
		if now.Cost.OutputTokens != 40 || now.Cost.InputTokens < first.Cost.InputTokens*145/100 || now.Cost.InputTokens > first.Cost.InputTokens*160/100 {
			t.Errorf("at first %+v, now %+v", first.Cost, now.Cost)
		}
		if d := ask("judge", `,"max_tokens":600`); d.Cost.OutputTokens != 600 {
			t.Errorf("a request that sets a limit reserves %+v", d.Cost)
		}
		if d := ask("other", ""); d.Cost != first.Cost {
			t.Errorf("another kind: %+v, want %+v", d.Cost, first.Cost)
		}
		var reply wire.EstimateReply
		m := r.ask(wire.VerbEstimate, "api", `{"kind":"judge","model":"claude-sonnet-4-5","input_tokens":10}`)
		if err := json.Unmarshal(m.Data, &reply); err != nil || reply.Learned.Samples != 200 || reply.Learned.OutputP85 != 40 {
			t.Errorf("%s: %v", m.Data, err)
		}
	}, func(o *Options) { o.Estimate, o.Learn = e.Estimate, e.Learn })
}
