package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"quotabroker": func() {
			ctx, stop := interruptible(context.Background())
			defer stop()
			os.Exit(run(ctx, os.Args[1:], &streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
		},
	})
}

// TestScripts plays testdata/cli with the real program as real processes over TCP.
// Each script has a free port for NATS and one for HTTP, and "ready" waits until a
// broker answers there. UPDATE=1 rewrites what is compared.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/cli",
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			natsAddr, httpAddr := freeAddress(t), freeAddress(t)
			e.Setenv("NATS", natsAddr)
			e.Setenv("HTTP", httpAddr)
			e.Setenv("QUOTABROKER_URL", "nats://"+natsAddr)
			e.Setenv("QUOTABROKER_NATS__LISTEN", natsAddr)
			e.Setenv("QUOTABROKER_HTTP__LISTEN", httpAddr)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ready": ready, "hup": hup, "metric": metric,
		},
	})
}

// hup tells the broker that the script started to reload.
func hup(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(ts.BackgroundCmds()[0].Process.Signal(syscall.SIGHUP))
}

// metric waits until the broker's metrics hold a line.
func metric(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get("http://" + ts.Getenv("HTTP") + "/metrics")
		if err != nil {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil && strings.Contains(string(body), args[0]+"\n") {
			return
		}
	}
	ts.Fatalf("the metrics never said %s", args[0])
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// ready waits until a broker answers a status, or with ! until none does.
func ready(ts *testscript.TestScript, neg bool, _ []string) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if answers(ts.Getenv("QUOTABROKER_URL")) != neg {
			return
		}
	}
	ts.Fatalf("no broker is ready")
}

func answers(url string) bool {
	c, err := nats.Connect(url)
	if err != nil {
		return false
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = c.RequestWithContext(ctx, "quota.v1.status.eval.default", []byte("{}"))
	return err == nil
}
