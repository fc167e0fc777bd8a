package natsnode

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// DefaultMaxPayload is the largest message, headers included, that an embedded
// server takes unless it is told otherwise. It is NATS's own default.
const DefaultMaxPayload = server.MAX_PAYLOAD_SIZE

// Node is a place on NATS with a connection for the service. It is safe for
// concurrent use.
type Node struct {
	conn *nats.Conn
	srv  *server.Server // nil: somebody else's
	dial func(...nats.Option) (*nats.Conn, error)
	url  string
	lost chan error
	up   chan struct{} // closed when the connection is there for the first time

	mu struct {
		sync.Mutex
		closing bool
	}
}

// Conn returns the service's connection. It ends with the node.
func (n *Node) Conn() *nats.Conn { return n.conn }

// URL returns what a producer connects to; "" where only this process can.
func (n *Node) URL() string { return n.url }

// Connect makes a further connection, for a producer in this process: past the
// network where the server is embedded, as the service's own otherwise. The
// caller closes it.
func (n *Node) Connect(opts ...nats.Option) (*nats.Conn, error) { return n.dial(opts...) }

// Lost receives an error if the service's connection ends for good although
// nobody closed the node: the process should then end, since it would stay deaf.
func (n *Node) Lost() <-chan error { return n.lost }

// Up returns a channel that is closed once the service's connection has been there
// for the first time.
func (n *Node) Up() <-chan struct{} { return n.up }

// Close flushes and closes the service's connection, stops an embedded server,
// and returns when it has ended. A second Close does nothing.
func (n *Node) Close() {
	n.mu.Lock()
	again := n.mu.closing
	n.mu.closing = true
	n.mu.Unlock()
	if again {
		return
	}
	n.conn.Close()
	if n.srv != nil {
		stop(n.srv)
	}
}

func stop(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

// connected is called by nats.go when the connection is there for the first time.
func (n *Node) connected(log *quiet) nats.ConnHandler {
	return func(c *nats.Conn) {
		log.connected(c)
		close(n.up)
	}
}

// closed is called by nats.go when the connection has ended for good.
func (n *Node) closed(c *nats.Conn) {
	n.mu.Lock()
	wanted := n.mu.closing
	n.mu.Unlock()
	if wanted {
		return
	}
	why := c.LastError()
	if why == nil {
		why = errors.New("it was closed")
	}
	n.lost <- fmt.Errorf("the connection to NATS has ended for good: %w", why)
}

// connect makes the service's connection. The handlers must be there before a
// micro service is added, since that chains them.
func (n *Node) connect(log *quiet, opts ...nats.Option) error {
	opts = slices.Concat([]nats.Option{
		nats.Name("quotabroker"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 250*time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(), // credentials are read anew each time
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(log.asyncError),
		nats.ConnectHandler(n.connected(log)),
		nats.DisconnectErrHandler(log.disconnected),
		nats.ReconnectHandler(log.reconnected),
		nats.ReconnectErrHandler(log.notYet),
		nats.ClosedHandler(n.closed),
	}, opts)
	var err error
	n.conn, err = n.dial(opts...)
	return err
}
