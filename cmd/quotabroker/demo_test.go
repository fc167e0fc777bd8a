package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"quotabroker/internal/demo"
)

// interrupter is a terminal at which somebody presses Ctrl-C once it shows a text.
type interrupter struct {
	bytes.Buffer
	at     string
	cancel func()
}

func (i *interrupter) Write(p []byte) (int, error) {
	n, err := i.Buffer.Write(p)
	if strings.Contains(i.String(), i.at) {
		i.cancel()
	}
	return n, err
}

// What was played to its end before an interrupt is shown, and nothing that is
// shown is wider than a terminal.
func TestDemoInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	progress := &interrupter{at: "The same night", cancel: func() { cancel(&interrupted{syscall.SIGTERM}) }}
	var out bytes.Buffer
	code := run(ctx, []string{"demo", "--speed", "40", "--fixtures", "20"}, &streams{out: &out, err: progress, terminal: true})
	if code != 143 {
		t.Errorf("the exit code is %d", code)
	}
	if !strings.Contains(out.String(), "\nwithout quotabroker\n") || strings.Contains(out.String(), "\nwith quotabroker\n") {
		t.Errorf("this is not the first half:\n%s", out.String())
	}
	if want := "quotabroker: interrupted; only the night without the broker was played in full\n"; !strings.HasSuffix(progress.String(), want) {
		t.Errorf("it ends with another sentence: %q", progress.String())
	}
	fits(t, out.String())
	fits(t, progress.String())
}

func TestDemoInterruptedAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	progress := &interrupter{at: "The night", cancel: func() { cancel(&interrupted{syscall.SIGINT}) }}
	var out bytes.Buffer
	code := run(ctx, []string{"demo", "-o", "json"}, &streams{out: &out, err: progress})
	if code != 130 || out.Len() > 0 || !strings.Contains(progress.String(), "interrupted before a night was over") {
		t.Errorf("exit code %d, output %q, said %q", code, out.String(), progress.String())
	}
}

// A night of the largest figures still fits.
func TestNightFits(t *testing.T) {
	var out bytes.Buffer
	class := demo.ClassResult{
		Class: "interactive", Asked: 99_999, Answered: 99_999, Refused: 9999, Failed: 99_999,
		Throttled: 99_999, Tokens: 99_999_999, WaitP50MS: 99_990, WaitP99MS: 600_000,
	}
	printNight(&out, &demo.Options{TPM: 1_000_000_000, Fixtures: 100_000, Workers: 2000}, []demo.Result{
		{Classes: []demo.ClassResult{class}, EvalDone: false, Throttled: 9_999_999, Utilisation: 9.99, LagMS: 100_000},
		{Broker: true, Classes: []demo.ClassResult{class}, EvalDone: true, EvalMS: 800_000, Utilisation: 1},
	})
	fits(t, out.String())
}

var control = regexp.MustCompile(`\x1b\[[?0-9]*[a-zA-Z]`)

// fits checks that every line, written over or not, has 80 columns at most.
func fits(t *testing.T, text string) {
	t.Helper()
	for _, line := range strings.FieldsFunc(control.ReplaceAllString(text, ""), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}
