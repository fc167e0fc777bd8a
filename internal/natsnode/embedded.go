package natsnode

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Embedded describes a NATS server inside this process. The zero Embedded
// listens on 127.0.0.1:4222 and keeps everything in memory.
type Embedded struct {
	Name       string // of the server; "": one is made up
	Host       string // to listen on; "": 127.0.0.1
	Port       int    // 0: 4222; -1: any free one
	DontListen bool   // no port at all: connections from this process only
	MaxPayload int    // of a message, in bytes; 0: DefaultMaxPayload
	Logger     *slog.Logger
}

// startLimit is how long a server may take to come up before it counts as
// broken. It takes milliseconds.
const startLimit = 10 * time.Second

// StartEmbedded starts a server and connects to it past the network.
func StartEmbedded(o Embedded) (*Node, error) {
	log := newQuiet(o.Logger)
	srv, err := start(o, log)
	if err != nil {
		return nil, err
	}
	n := &Node{
		srv:  srv,
		lost: make(chan error, 1),
		up:   make(chan struct{}),
		dial: func(opts ...nats.Option) (*nats.Conn, error) {
			return nats.Connect("", slices.Concat(opts, []nats.Option{nats.InProcessServer(srv)})...)
		},
	}
	if !o.DontListen {
		n.url = srv.ClientURL()
	}
	if err := n.connect(log); err != nil {
		stop(srv)
		return nil, fmt.Errorf("connecting to the embedded NATS server: %w", err)
	}
	return n, nil
}

func start(o Embedded, log *quiet) (*server.Server, error) {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Port == 0 {
		o.Port = server.DEFAULT_PORT
	}
	if o.MaxPayload == 0 {
		o.MaxPayload = DefaultMaxPayload
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: o.Name,
		Host:       o.Host,
		Port:       o.Port,
		DontListen: o.DontListen,
		MaxPayload: int32(o.MaxPayload),
		NoSigs:     true,
	})
	if err != nil {
		return nil, fmt.Errorf("the embedded NATS server cannot be set up: %w", err)
	}
	events := &serverLog{quiet: log}
	srv.SetLoggerV2(events, false, false, false)
	srv.Start()
	if err := events.fatal(); err != nil {
		stop(srv)
		return nil, explain(err, o)
	}
	if !srv.ReadyForConnections(startLimit) {
		stop(srv)
		return nil, fmt.Errorf("the embedded NATS server was not ready within %s", startLimit)
	}
	return srv, nil
}

// explain says what to do about a server that could not start.
func explain(err error, o Embedded) error {
	at := net.JoinHostPort(o.Host, strconv.Itoa(o.Port))
	var unknown *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d is already in use on %s: stop what listens there (perhaps another quotabroker or a "+
			"nats-server), or set nats.listen (QUOTABROKER_NATS__LISTEN) to another address: %w", o.Port, o.Host, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("no permission to listen on %s: set nats.listen to a port of 1024 or more: %w", at, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &unknown):
		return fmt.Errorf("%s is no address of this machine: set nats.listen to one that is: %w", o.Host, err)
	}
	return fmt.Errorf("the embedded NATS server cannot listen on %s: %w", at, err)
}
