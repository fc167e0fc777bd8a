package natsnode

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// External describes a NATS that others run. It names files, "" where there is
// none; no secret stands in it. The connection is encrypted as soon as a file of
// TLS is named, or the URL begins with tls:.
type External struct {
	URL      string // one, or several separated by commas
	Creds    string // credentials; at most one of Creds and NkeyFile
	NkeyFile string // an nkey seed
	CA       string // whom to trust, instead of whom the system trusts
	Cert     string // who we are; with Key
	Key      string
	Logger   *slog.Logger
}

// Dial connects to a NATS that others run. What is wrong with the description,
// or refused by the server, is an error; a server that is not there yet is not:
// the node then goes on trying, and its connection says so.
func Dial(o External) (*Node, error) {
	opts, err := o.options()
	if err != nil {
		return nil, err
	}
	n := &Node{
		url:  o.URL,
		lost: make(chan error, 1),
		up:   make(chan struct{}),
		dial: func(more ...nats.Option) (*nats.Conn, error) {
			return nats.Connect(o.URL, slices.Concat(more, opts)...)
		},
	}
	log := newQuiet(o.Logger)
	err = n.connect(log)
	if err == nil {
		return n, nil
	}
	if !absent(err) {
		return nil, fmt.Errorf("connecting to NATS at %s: %w", redacted(o.URL), err)
	}
	log.warn(absence, "NATS is not there yet; the broker serves as soon as it is", "url", redacted(o.URL), "error", err)
	if err := n.connect(log, nats.RetryOnFailedConnect(true)); err != nil {
		return nil, fmt.Errorf("connecting to NATS at %s: %w", redacted(o.URL), err)
	}
	return n, nil
}

func (o *External) options() ([]nats.Option, error) {
	if o.URL == "" {
		return nil, errors.New("an external NATS needs a url, like nats://nats.example:4222")
	}
	opts := []nats.Option{nats.Timeout(2 * time.Second)}
	if o.Creds != "" && o.NkeyFile != "" {
		return nil, errors.New("creds and nkey_file are both there; name one")
	}
	if o.Creds != "" {
		if err := readable("creds", o.Creds); err != nil {
			return nil, err
		}
		opts = append(opts, nats.UserCredentials(o.Creds))
	}
	if o.NkeyFile != "" {
		opt, err := nats.NkeyOptionFromSeed(o.NkeyFile)
		if err != nil {
			return nil, fmt.Errorf("nkey_file %s: %w", o.NkeyFile, err)
		}
		opts = append(opts, opt)
	}
	return o.tls(opts)
}

func (o *External) tls(opts []nats.Option) ([]nats.Option, error) {
	if (o.Cert == "") != (o.Key == "") {
		return nil, errors.New("tls needs cert and key together")
	}
	if o.CA != "" {
		if err := readable("tls.ca", o.CA); err != nil {
			return nil, err
		}
		opts = append(opts, nats.RootCAs(o.CA))
	}
	if o.Cert != "" {
		if err := errors.Join(readable("tls.cert", o.Cert), readable("tls.key", o.Key)); err != nil {
			return nil, err
		}
		opts = append(opts, nats.ClientCert(o.Cert, o.Key))
	}
	return opts, nil
}

func readable(key, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return f.Close()
}

// absent reports whether nobody answered, as opposed to somebody who refused.
func absent(err error) bool {
	if errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) {
		return true
	}
	var network interface{ Timeout() bool } // a net.Error, but not a TLS or protocol one
	return errors.As(err, &network)
}

// redacted leaves out what a URL may hold before its host.
func redacted(urls string) string {
	parts := strings.Split(urls, ",")
	for i, u := range parts {
		scheme, rest, ok := strings.Cut(strings.TrimSpace(u), "://")
		if !ok {
			scheme, rest = "nats", strings.TrimSpace(u)
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			rest = rest[at+1:]
		}
		parts[i] = scheme + "://" + rest
	}
	return strings.Join(parts, ",")
}
