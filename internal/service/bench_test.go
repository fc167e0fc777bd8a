package service

import (
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"quotabroker/classes"
	"quotabroker/internal/natsnode"
)

const benchAsk = `{"ttl_ms":1000,"model":"gpt-4o-mini","input_tokens":812,"max_output_tokens":600,"tenant":"acme","kind":"judge","wait_ms":0,"deadline_ms":30000}`

const benchReply = `{"decision":"grant","lease":"7-18a3","class":"batch","pool":"default","ttl_ms":120000,"cost":{"requests":1,"input_tokens":812,"output_tokens":600,"tokens":1412,"method":"counted"},"borrowed":true,"waited_ms":0,"epoch":7}`

// BenchmarkGrant compares a grant over NATS with a bare micro echo of the same
// payloads, one at a time and with many under way. CPU time is that of the whole
// process: NATS, broker and producer; unlike the clock's it bears neighbours.
func BenchmarkGrant(b *testing.B) {
	node, err := natsnode.StartEmbedded(natsnode.Embedded{Port: -1})
	if err != nil {
		b.Fatal(err)
	}
	cfg := oneClass(classes.MaxAmount)
	cfg.Classes[0].Floor = classes.Whole
	rigOn(b, node, cfg)
	echo, err := node.Connect()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(echo.Close)
	svc, err := micro.AddService(echo, micro.Config{Name: "echo", Version: "1.0.0"})
	if err != nil {
		b.Fatal(err)
	}
	if err := svc.AddEndpoint("echo", micro.HandlerFunc(func(r micro.Request) { _ = r.Respond([]byte(benchReply)) })); err != nil {
		b.Fatal(err)
	}
	if err := echo.Flush(); err != nil {
		b.Fatal(err)
	}
	producer, err := nats.Connect(node.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(producer.Close)
	for _, load := range []struct {
		name  string
		under int
	}{{"one", 1}, {"many", 256}} {
		for _, what := range []struct{ name, subject string }{{"echo", "echo"}, {"grant", "quota.v1.acquire.api.default"}} {
			b.Run(load.name+"/"+what.name, func(b *testing.B) {
				inbox := producer.NewInbox()
				slots := make(chan struct{}, load.under)
				sub, err := producer.Subscribe(inbox, func(*nats.Msg) { <-slots })
				if err != nil {
					b.Fatal(err)
				}
				defer sub.Unsubscribe() //nolint:errcheck // the connection ends with the benchmark
				before := cpuTime()
				n := 0
				for b.Loop() {
					slots <- struct{}{}
					if err := producer.PublishRequest(what.subject, inbox, []byte(benchAsk)); err != nil {
						b.Fatal(err)
					}
					n++
				}
				for range load.under {
					slots <- struct{}{}
				}
				b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(n), "cpu-µs/op")
			})
		}
	}
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
