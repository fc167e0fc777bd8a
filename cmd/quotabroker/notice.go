package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// notice tells a person, once, that a broker is waited for. It is safe for concurrent
// use.
type notice struct {
	to    io.Writer
	whose string        // the pool and the NATS server
	limit time.Duration // how long it is waited for; 0 for ever
	once  sync.Once
}

// waits says that a broker is waited for, if that was not said.
func (n *notice) waits() {
	n.once.Do(func() {
		atMost := ""
		if n.limit > 0 {
			atMost = fmt.Sprintf(", %s at most", n.limit)
		}
		_, _ = fmt.Fprintf(n.to, "quotabroker: no broker answers for %s; waiting for one%s\n", n.whose, atMost)
	})
}

// ends ends the notice: from now on nothing is waited for.
func (n *notice) ends() { n.once.Do(func() {}) }
