package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"quotabroker/internal/natsnode"
	"quotabroker/wire"
)

// failed checks that a reply is an error reply of protocol §6, and returns it.
func failed(t testing.TB, m *nats.Msg, code wire.Code) string {
	t.Helper()
	if got := m.Header.Get(micro.ErrorCodeHeader); got != strconv.Itoa(code.Status()) {
		t.Errorf("%s is %q, want %d; body %s", micro.ErrorCodeHeader, got, code.Status(), m.Data)
	}
	want := fmt.Sprintf(`{"error":{"code":%q,`, code)
	if !strings.HasPrefix(string(m.Data), want) || m.Header.Get(micro.ErrorHeader) == "" {
		t.Errorf("got %s with headers %v, want %s…", m.Data, m.Header, want)
	}
	return string(m.Data)
}

// Whatever comes in is answered with a sentence that names what is wrong, and
// charges nothing.
func TestMalformed(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		verb       wire.Verb
		body, want string // want is part of the sentence
	}{
		{wire.VerbAcquire, ``, `empty`},
		{wire.VerbAcquire, `{`, `not valid JSON`},
		{wire.VerbAcquire, `[]`, `an array`},
		{wire.VerbAcquire, `null`, `null`},
		{wire.VerbAcquire, "\xff\xfe", `not valid JSON`},
		{wire.VerbAcquire, `{} {}`, `not valid JSON`},
		{wire.VerbAcquire, `{}`, `exactly one must be`},
		{wire.VerbAcquire, `{"input_tokens":-5}`, `input_tokens is -5; it must be 0 or more`},
		{wire.VerbAcquire, `{"input_tokens":"12"}`, `a string`},
		{wire.VerbAcquire, `{"input_tokens":1.5}`, `input_tokens`},
		{wire.VerbAcquire, `{"input_tokens":1e99}`, `input_tokens`},
		{wire.VerbAcquire, `{"input_tokens":NaN}`, `not valid JSON`},
		{wire.VerbAcquire, `{"input_tokens":1,"request":{}}`, `exactly one must be`},
		{wire.VerbAcquire, `{"input_tokens":1,"wait_ms":-1}`, `wait_ms`},
		{wire.VerbAcquire, `{"input_tokens":1,"deadline_ms":"soon"}`, `deadline_ms`},
		{wire.VerbAcquire, `{"input_tokens":1,"tenant":"` + long + `"}`, `tenant is 300 bytes long`},
		{wire.VerbAcquire, `{"input_tokens":1,"ticket":"nope"}`, `an id from a defer`},
		{wire.VerbAcquire, `{"input_tokens":1,"confirm":1}`, `confirm`},
		{wire.VerbAcquire, `{"request":"hello"}`, `a JSON object`},
		{wire.VerbAcquire, `{"request":` + strings.Repeat("[", 9000) + `}`, `request`},
		{wire.VerbAcquire, `{"request":{"x":"` + strings.Repeat("y", 20_000) + `"}`, `not valid JSON`}, // decoded by a worker
		{wire.VerbEstimate, `{"input_tokens":-1}`, `input_tokens`},
		{wire.VerbExplain, `{"input_tokens":-1}`, `input_tokens`},
		{wire.VerbSettle, `{}`, `lease is missing`},
		{wire.VerbSettle, `{"lease":"7-1"}`, `outcome is missing`},
		{wire.VerbSettle, `{"lease":"7-1","outcome":"fine"}`, `one of ok, unsent`},
		{wire.VerbSettle, `{"lease":"7-1","outcome":"ok","usage":{"input_tokens":-5000,"output_tokens":0}}`, `usage.input_tokens is -5000`},
		{wire.VerbSettle, `{"lease":"7-1","outcome":"ok","usage":{"input_tokens":1000000000000000000,"output_tokens":0}}`, `at most 1000000000`},
		{wire.VerbSettle, `{"lease":"7-1","outcome":"ok","usage":{"output_tokens":0}}`, `usage.input_tokens is missing`},
		{wire.VerbRenew, `{"lease":"seven"}`, `an id from a grant`},
		{wire.VerbRenew, `{}`, `lease is missing`},
		{wire.VerbCancel, `{}`, `exactly one must be`},
		{wire.VerbCancel, `{"lease":"7-1","ticket":"7-t1"}`, `exactly one must be`},
		{wire.VerbStatus, `{"x"}`, `not valid JSON`},
	} {
		t.Run(fmt.Sprintf("%s %.40q", c.verb, c.body), func(t *testing.T) {
			bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
				text := failed(t, r.ask(c.verb, "api", c.body), wire.CodeBadRequest)
				if !strings.Contains(text, c.want) {
					t.Errorf("got %s, want a sentence with %q", text, c.want)
				}
				if n := r.svc.Counts().Errors[ErrorKey{c.verb, wire.CodeBadRequest}]; n != 1 || r.used() != 0 {
					t.Errorf("%d errors counted, %d tokens charged", n, r.used())
				}
			})
		})
	}
}

func TestUnknown(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		for _, verb := range []wire.Verb{wire.VerbAcquire, wire.VerbSettle, wire.VerbRenew, wire.VerbCancel, wire.VerbEstimate, wire.VerbExplain} {
			for _, source := range []string{"nobody", "ü", strings.Repeat("x", 200)} {
				text := failed(t, r.ask(verb, source, `{}`), wire.CodeUnknownSource)
				if !strings.Contains(text, "it has api, eval") {
					t.Errorf("%s does not say which sources there are", text)
				}
			}
		}
		for _, verb := range []wire.Verb{wire.VerbSettle, wire.VerbRenew} {
			failed(t, r.ask(verb, "api", `{"lease":"7-99","outcome":"ok"}`), wire.CodeUnknownLease)
		}
		lease := r.acquire("api", `{"input_tokens":10}`).Lease
		failed(t, r.ask(wire.VerbSettle, "eval", fmt.Sprintf(`{"lease":%q,"outcome":"unsent"}`, lease)), wire.CodeUnknownLease)
		r.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"ok"}`, lease))
		failed(t, r.ask(wire.VerbSettle, "api", fmt.Sprintf(`{"lease":%q,"outcome":"unsent"}`, lease)), wire.CodeAlreadySettled)
	})
}

// Only what is subscribed to has an answer; the rest is NATS's to refuse.
func TestOtherSubjects(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		for _, subject := range []string{
			"quota.v1.acquire.api.other", "quota.v1.acquire.api", "quota.v1.acquire.api.default.more",
			"quota.v2.acquire.api.default", "quota.v1.steal.api.default", "other.v1.acquire.api.default",
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := r.conn.RequestWithContext(ctx, subject, []byte(`{"input_tokens":1}`))
			cancel()
			if !errors.Is(err, nats.ErrNoResponders) {
				t.Errorf("%s: got %v, want no responders", subject, err)
			}
		}
	})
}

func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, err := natsnode.StartEmbedded(natsnode.Embedded{DontListen: true, MaxPayload: 2 << 20})
		if err != nil {
			t.Fatal(err)
		}
		r := rigOn(t, node, oneClass(1000))
		text := failed(t, r.ask(wire.VerbAcquire, "api", `{"tenant":"`+strings.Repeat("x", 1<<20)+`"}`), wire.CodePayloadTooLarge)
		if !strings.Contains(text, "the limit is 1048576") {
			t.Errorf("%s does not name the limit", text)
		}
		m := nats.NewMsg("quota.v1.acquire.api.default")
		m.Data = []byte(`{"input_tokens":1}`)
		m.Header.Set("X", strings.Repeat("x", 1<<20))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		reply, err := r.conn.RequestMsgWithContext(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		failed(t, reply, wire.CodePayloadTooLarge)
	})
}

// A reply that NATS would not take is replaced by one that says so.
func TestReplyTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, err := natsnode.StartEmbedded(natsnode.Embedded{DontListen: true, MaxPayload: 1024})
		if err != nil {
			t.Fatal(err)
		}
		r := rigOn(t, node, oneClass(1000))
		failed(t, r.ask(wire.VerbStatus, "api", `{}`), wire.CodePayloadTooLarge)
	})
}

// What has no reply subject, or one that is not the source's to name, is dropped.
func TestNobodyToAnswer(t *testing.T) {
	inboxes := func(o *Options) { o.Config.Inboxes = map[string]string{"eval": "_INBOX.eval."} }
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		body := []byte(`{"input_tokens":100}`)
		heard, err := r.conn.SubscribeSync(">")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.conn.Publish("quota.v1.acquire.api.default", body); err != nil {
			t.Fatal(err)
		}
		for _, reply := range []string{"$SRV.STATS", "quota.v1.settle.eval.default"} {
			if err := r.conn.PublishRequest("quota.v1.acquire.api.default", reply, body); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.conn.PublishRequest("quota.v1.acquire.eval.default", "_INBOX.api.x", body); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n, _, _ := heard.Pending(); n != 4 { // the four asks themselves
			t.Errorf("%d messages went over NATS, want 4", n)
		}
		if c := r.svc.Counts(); c.NoReply != 1 || c.Misdirected != 3 || r.used() != 0 {
			t.Errorf("%d without a reply, %d misdirected, %d tokens charged", c.NoReply, c.Misdirected, r.used())
		}
	}, inboxes)
}

// A panic outside the core costs one answer.
func TestPanicInEstimate(t *testing.T) {
	wild := func(o *Options) {
		o.Estimate = func(j Job, r *wire.AcquireRequest) (wire.EstimateReply, *wire.Error) {
			if r.Model == "wild" {
				panic("wild")
			}
			return quarter(j, r)
		}
	}
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		failed(t, r.ask(wire.VerbAcquire, "api", `{"model":"wild","input_tokens":1}`), wire.CodeInternal) // in the handler
		failed(t, r.ask(wire.VerbAcquire, "api", `{"model":"wild","request":{}}`), wire.CodeInternal)     // in a worker
		failed(t, r.ask(wire.VerbEstimate, "api", `{"model":"wild","request":{}}`), wire.CodeInternal)
		if d := r.acquire("api", `{"input_tokens":1}`); d.Verdict != wire.Grant {
			t.Errorf("got %+v", d)
		}
		if n := r.svc.Counts().Panics; n != 3 || r.svc.Live() != nil {
			t.Errorf("%d panics counted; live: %v", n, r.svc.Live())
		}
	}, wild)
}

// A panic of the core stops the pool: everybody is answered, nothing is granted.
func TestPanicInCore(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		r.acquire("api", `{"input_tokens":1000}`)
		held := make(chan *nats.Msg)
		go func() { held <- r.ask(wire.VerbAcquire, "eval", `{"input_tokens":1,"wait_ms":10000}`) }()
		synctest.Wait()
		p := r.svc.pools()["default"]
		if err := p.call(t.Context(), func(*loop, time.Time) { panic("a bug") }); !errors.Is(err, errEnded) {
			t.Errorf("got %v", err)
		}
		failed(t, <-held, wire.CodeInternal)
		failed(t, r.ask(wire.VerbAcquire, "api", `{"input_tokens":1}`), wire.CodeUnavailable)
		failed(t, r.ask(wire.VerbStatus, "api", `{}`), wire.CodeUnavailable)
		select {
		case err := <-r.svc.Err():
			if !strings.Contains(err.Error(), "a bug") {
				t.Errorf("got %v", err)
			}
		default:
			t.Error("the service does not say that it is broken")
		}
		if r.svc.Live() == nil || r.svc.Ready(t.Context()) == nil {
			t.Error("a broken service says that it is well")
		}
	})
}

func TestInboxFull(t *testing.T) {
	bubble(t, oneClass(1000), func(t *testing.T, r *rig) {
		p := r.svc.pools()["default"]
		p.inbox.most = 1
		block, blocked := make(chan struct{}), make(chan struct{})
		go func() {
			if err := p.call(t.Context(), func(*loop, time.Time) { close(blocked); <-block }); err != nil {
				t.Error(err)
			}
		}()
		<-blocked
		answers := make(chan *nats.Msg, 3)
		for range 3 {
			go func() { answers <- r.ask(wire.VerbAcquire, "api", `{"input_tokens":1}`) }()
		}
		failed(t, <-answers, wire.CodeUnavailable)
		failed(t, <-answers, wire.CodeUnavailable)
		close(block)
		if d := r.decision(<-answers); d.Verdict != wire.Grant {
			t.Errorf("got %+v", d)
		}
	})
}
