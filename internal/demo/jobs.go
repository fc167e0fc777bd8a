package demo

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"quotabroker/estimator"
	"quotabroker/internal/demodata"
)

// The classes of the night, in order of urgency, and their sources.
const (
	live = iota
	work
	eval
	kinds
)

var kindNames = [kinds]string{"interactive", "background", "batch"}

var sources = [kinds]string{"api", "scheduler", "eval"}

// model is what everybody asks for.
const model = "gpt-4o-mini"

// job is one call to the provider.
type job struct {
	kind         int
	at           time.Duration // when it arrives, in the night's time
	body         []byte
	inputTokens  int64 // 0: the broker counts the body
	outputTokens int64 // what the provider will answer with
	outputLimit  int64
}

// script is what is asked of the account in the night.
type script struct {
	live, work []job
	eval       []job
	counts     map[string]int // tokens of every text of the evaluation
}

// write makes the night from the recorded data.
func write(fixtures int, est *estimator.Estimator) (*script, error) {
	conversation, err := demodata.AzureConversation()
	if err != nil {
		return nil, err
	}
	code, err := demodata.AzureCode()
	if err != nil {
		return nil, err
	}
	s := &script{counts: map[string]int{}}
	for _, a := range conversation {
		s.live = append(s.live, recorded(live, a, liveLimit))
	}
	for i := 0; i < len(code); i += workEvery {
		s.work = append(s.work, recorded(work, code[i], max(256, code[i].OutputTokens)))
	}
	return s, s.writeEval(fixtures, est)
}

// recorded is a request of which only the sizes are known: its text is as many
// characters as the recorded tokens would be.
func recorded(kind int, a demodata.Arrival, limit int64) job {
	limit = max(limit, a.OutputTokens)
	return job{
		kind: kind, at: time.Duration(a.ArrivalMS) * time.Millisecond,
		inputTokens: a.InputTokens, outputTokens: max(a.OutputTokens, 1), outputLimit: limit,
	}
}

// shots is how many problems stand before the one to solve.
const shots = 3

// writeEval makes the fixtures: every problem of HumanEval and GSM8K with three
// others of its kind before it, over again until there are enough.
func (s *script) writeEval(fixtures int, est *estimator.Estimator) error {
	code, err := demodata.HumanEval()
	if err != nil {
		return err
	}
	maths, err := demodata.GSM8K()
	if err != nil {
		return err
	}
	var all []job
	for _, set := range [][]demodata.Prompt{code, maths} {
		for i, p := range set {
			text := fewShot(set, i)
			n, _ := est.Count(estimator.O200K, text)
			s.counts[text] = int(n)
			all = append(all, job{kind: eval, body: body(text, evalLimit), outputTokens: min(evalLimit, 60+p.ReferenceOutputTokens*3/2), outputLimit: evalLimit})
		}
	}
	for i := range fixtures {
		s.eval = append(s.eval, all[i*7%len(all)])
	}
	return nil
}

func fewShot(set []demodata.Prompt, i int) string {
	var b strings.Builder
	for k := 1; k <= shots; k++ {
		fmt.Fprintf(&b, "Problem %d:\n%s\n\n", k, set[(i+k)%len(set)].Text)
	}
	fmt.Fprintf(&b, "Solve this one, step by step:\n%s", set[i].Text)
	return b.String()
}

func body(text string, limit int64) []byte {
	b, err := json.Marshal(map[string]any{
		"model": model, "max_tokens": limit,
		"messages": []map[string]string{{"role": "user", "content": text}},
	})
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return b
}

// filler stands for text of which only the size is recorded: four characters a
// token.
const filler = "data "

func fillerBody(tokens, limit int64) []byte {
	const framing = 8 // of a chat of one message
	chars := int(max(tokens-framing, 1)) * 4
	return body(strings.Repeat(filler, chars/len(filler)+1)[:chars], limit)
}

// count is the provider's tokenizer: exact for the texts of the evaluation, and
// four characters a token for what stands for recorded text.
func (s *script) count(text string) int {
	if n, ok := s.counts[text]; ok {
		return n
	}
	return (len(text) + 3) / 4
}
