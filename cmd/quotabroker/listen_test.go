package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
)

// What to do about an address follows from why it could not be listened on.
func TestCannotListen(t *testing.T) {
	for errno, want := range map[error]string{
		syscall.EADDRINUSE:                     "http.listen 127.0.0.1:80 is already in use: stop what listens there",
		syscall.EACCES:                         "no permission to listen on http.listen 127.0.0.1:80: set http.listen (QUOTABROKER_HTTP__LISTEN) to a port of 1024 or more",
		syscall.EADDRNOTAVAIL:                  "http.listen 127.0.0.1:80 is no address of this machine: set http.listen (QUOTABROKER_HTTP__LISTEN) to one that is, like 127.0.0.1:8180",
		&net.DNSError{Err: "no such host"}:     "http.listen 127.0.0.1:80 is no address of this machine",
		fmt.Errorf("wrapped: %w", syscall.EIO): "http.listen 127.0.0.1:80 cannot be used: set http.listen (QUOTABROKER_HTTP__LISTEN) to another address",
	} {
		err := cannotListen("127.0.0.1:80", &net.OpError{Op: "listen", Err: errno})
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %s", errno, err)
		}
		if strings.Contains(err.Error(), "stop what") != errors.Is(errno, syscall.EADDRINUSE) {
			t.Errorf("%v: the advice is wrong: %s", errno, err)
		}
	}
}
