package mockprovider

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server is one provider with one account. It is an [http.Handler]; Start gives it
// a listener of its own. All methods are safe for concurrent use.
type Server struct {
	opts   Options
	routes *http.ServeMux
	origin time.Time
	lastID atomic.Int64

	quit     context.Context // ends when Close has no more patience
	cutShort context.CancelFunc

	http http.Server
	url  string        // "" without a listener of its own
	done chan struct{} // closed when Serve, started by Start, has returned; else nil

	mu struct {
		sync.Mutex
		meter  *Meter
		faults []Fault
		counts Stats // the counters of it only

		handling int64         // calls of ServeHTTP under way
		idle     chan struct{} // not nil when closing; closed when handling is 0
	}
}

// New returns a server that does not listen: it is used as a handler, or by Serve.
func New(o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, origin: o.Now()}
	s.quit, s.cutShort = context.WithCancel(context.Background())
	s.mu.meter = NewMeter(o.Limits)
	s.routes = s.newRoutes()
	s.http.Handler = s
	s.http.ReadHeaderTimeout = 10 * time.Second
	return s, nil
}

// Start returns a server that listens on a TCP address, such as 127.0.0.1:0, and
// serves until Close.
func Start(address string, o Options) (*Server, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("mockprovider: %w", err)
	}
	s.url = "http://" + l.Addr().String()
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		// Anything but Close ends the connections, which is how callers see it.
		_ = s.Serve(l)
	}()
	return s, nil
}

// URL returns the base address, http://host:port, of a started server; "" of one
// that does not listen itself.
func (s *Server) URL() string { return s.url }

// Serve answers on a listener until Close, which makes it return nil, or until the
// listener fails.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("mockprovider: %w", err)
	}
	return nil
}

// Close stops listening and waits until every answer under way is complete. When
// ctx ends first, it cuts those off, waits for them, and returns the error of ctx.
// When it returns nothing of the server runs any more. It may be called more than
// once.
func (s *Server) Close(ctx context.Context) error {
	idle := s.beginClosing()
	err := s.http.Shutdown(ctx)
	if !s.waitIdle(ctx, idle) {
		err = ctx.Err()
		s.cutShort()
		<-idle
	}
	s.cutShort()
	if err != nil {
		_ = s.http.Close() // its error is that of a connection already cut
	}
	if s.done != nil {
		<-s.done
	}
	return err
}

// waitIdle waits for idle and reports whether it came before the end of ctx.
func (s *Server) waitIdle(ctx context.Context, idle <-chan struct{}) bool {
	select {
	case <-idle:
		return true
	case <-ctx.Done():
	}
	select {
	case <-idle:
		return true
	default:
		return false
	}
}

func (s *Server) beginClosing() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.idle == nil {
		s.mu.idle = make(chan struct{})
		if s.mu.handling == 0 {
			close(s.mu.idle)
		}
	}
	return s.mu.idle
}

// ServeHTTP answers one request. While the server closes it answers 503.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "closing", http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	s.routes.ServeHTTP(w, r)
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.idle != nil {
		return false
	}
	s.mu.handling++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.handling--
	if s.mu.idle != nil && s.mu.handling == 0 {
		close(s.mu.idle)
	}
}

// now is the server's own time: since it began, Speed times as fast as the clock.
func (s *Server) now() time.Duration {
	return time.Duration(math.Round(float64(s.opts.Now().Sub(s.origin)) * s.opts.Speed))
}

// sleepUntil waits until the server's own time t.
func (s *Server) sleepUntil(ctx context.Context, t time.Duration) error {
	if d := s.wire(t - s.now()); d > 0 {
		return s.opts.Sleep(ctx, d)
	}
	return ctx.Err()
}
