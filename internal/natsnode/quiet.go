package natsnode

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// quietFor is how long a kind of event stays silent after it was logged: one
// producer that may not publish makes a hundred thousand errors a second.
const quietFor = 10 * time.Second

// absence is the kind of event that NATS is not there: one outage of it, whoever
// notices. Whoever reads that once need not read it every ten seconds all night, so
// each silence is twice as long as the one before, up to longQuiet.
const (
	absence   = "absence"
	longQuiet = 5 * time.Minute
)

// quiet logs the first event of each kind and then at most one per quietFor,
// with how many were left out. The kinds are words of this package, so few.
type quiet struct {
	log *slog.Logger

	mu struct {
		sync.Mutex
		kinds map[string]*silence
	}
}

type silence struct {
	until   time.Time
	next    time.Duration // how long the next silence is
	skipped int
}

func newQuiet(log *slog.Logger) *quiet {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	q := &quiet{log: log}
	q.mu.kinds = make(map[string]*silence)
	return q
}

func (q *quiet) warn(kind, msg string, args ...any) {
	skipped, ok := q.speak(kind)
	if !ok {
		return
	}
	if skipped > 0 {
		args = append(args, "left_out", skipped)
	}
	q.log.Warn(msg, args...)
}

// speak says whether an event of this kind may be logged now, and how many were
// not since the last one.
func (q *quiet) speak(kind string) (skipped int, ok bool) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.mu.kinds[kind]
	if s == nil {
		s = &silence{next: quietFor}
		q.mu.kinds[kind] = s
	}
	if now.Before(s.until) {
		s.skipped++
		return 0, false
	}
	skipped, s.skipped = s.skipped, 0
	s.until = now.Add(s.next)
	if kind == absence {
		s.next = min(2*s.next, longQuiet)
	}
	return skipped, true
}

func (q *quiet) asyncError(_ *nats.Conn, sub *nats.Subscription, err error) {
	kind := "error"
	switch {
	case errors.Is(err, nats.ErrSlowConsumer):
		kind = "slow consumer"
	case errors.Is(err, nats.ErrPermissionViolation):
		kind = "permission"
	}
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	q.warn(kind, "NATS reports an error", "kind", kind, "subject", subject, "error", err)
}

func (q *quiet) disconnected(_ *nats.Conn, err error) {
	if err != nil {
		q.warn("disconnected", "the connection to NATS is down; reconnecting", "error", err)
		q.speak(absence) // that is said herewith
	}
}

// connected ends an absence: the next one is news.
func (q *quiet) connected(*nats.Conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.mu.kinds, absence)
}

func (q *quiet) notYet(_ *nats.Conn, err error) {
	q.warn(absence, "NATS is still not there", "error", err)
}

func (q *quiet) reconnected(c *nats.Conn) {
	q.connected(c)
	if _, ok := q.speak("reconnected"); ok {
		q.log.Info("the connection to NATS is up again", "url", c.ConnectedUrlRedacted())
	}
}

// serverLog is the embedded server's logger. Its fatal errors end nothing: they
// are kept for whoever started the server.
type serverLog struct {
	quiet *quiet

	mu struct {
		sync.Mutex
		fatal error
	}
}

func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.fatal
}

// Fatalf keeps the first error for fatal.
func (l *serverLog) Fatalf(format string, v ...any) {
	err := fmt.Errorf(format, v...)
	for _, arg := range v {
		if cause, ok := arg.(error); ok {
			err = cause
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.fatal == nil {
		l.mu.fatal = err
	}
}

// Errorf logs an error of the server.
func (l *serverLog) Errorf(format string, v ...any) {
	l.quiet.warn("server error", "the embedded NATS server: "+fmt.Sprintf(format, v...))
}

// Warnf logs a warning of the server.
func (l *serverLog) Warnf(format string, v ...any) {
	l.quiet.warn("server warning", "the embedded NATS server: "+fmt.Sprintf(format, v...))
}

// Noticef logs what is of use only to someone who looks for a fault.
func (l *serverLog) Noticef(format string, v ...any) {
	l.quiet.log.Debug("the embedded NATS server: " + fmt.Sprintf(format, v...))
}

// Debugf drops what the server is never asked to say.
func (l *serverLog) Debugf(string, ...any) {}

// Tracef drops what the server is never asked to say.
func (l *serverLog) Tracef(string, ...any) {}
