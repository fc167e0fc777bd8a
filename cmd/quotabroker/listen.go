package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"quotabroker/internal/metrics"
)

// listen serves metrics and health over HTTP.
func (b *server) listen() error {
	l, err := net.Listen("tcp", b.file.HTTP.Listen)
	if err != nil {
		return cannotListen(b.file.HTTP.Listen, err)
	}
	b.http = &http.Server{Addr: l.Addr().String(), Handler: metrics.Handler(b.svc, versionOf()), ReadHeaderTimeout: 10 * time.Second}
	b.fell = make(chan error, 1)
	go func() { b.fell <- b.http.Serve(l) }()
	return nil
}

// cannotListen says what to do about an address of http.listen that cannot be
// listened on.
func cannotListen(address string, err error) error {
	const key = "http.listen (QUOTABROKER_HTTP__LISTEN)"
	var unknown *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("http.listen %s is already in use: stop what listens there (perhaps another quotabroker), or set %s to another address: %w", address, key, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("no permission to listen on http.listen %s: set %s to a port of 1024 or more: %w", address, key, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &unknown):
		return fmt.Errorf("http.listen %s is no address of this machine: set %s to one that is, like 127.0.0.1:8180: %w", address, key, err)
	}
	return fmt.Errorf("http.listen %s cannot be used: set %s to another address: %w", address, key, err)
}
