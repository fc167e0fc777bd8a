package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"quotabroker/classes"
	"quotabroker/estimator"
	"quotabroker/estimator/learn"
	"quotabroker/internal/config"
	"quotabroker/internal/metrics"
	"quotabroker/internal/natsnode"
	"quotabroker/internal/service"
)

// account is a configuration without a file: the default one with these limits.
type account struct {
	TPM string `name:"tpm" placeholder:"450k" help:"Tokens per minute of the account, instead of a file."`
	RPM string `name:"rpm" placeholder:"5k" help:"Requests per minute of the account, instead of a file."`
}

// load reads the configuration: of a file, or of the limits given.
func (a *account) load(file string) (*config.File, error) {
	var limits []classes.Limit
	for _, l := range []struct {
		flag, value string
		metric      classes.Metric
	}{{"--tpm", a.TPM, classes.Tokens}, {"--rpm", a.RPM, classes.Requests}} {
		if l.value == "" {
			continue
		}
		n, err := config.ParseAmount(l.value)
		if err != nil {
			return nil, &exitError{exitUsage, fmt.Sprintf("%s is %q; %v", l.flag, l.value, err)}
		}
		limits = append(limits, classes.Limit{Metric: l.metric, Amount: n, Span: time.Minute})
	}
	if file != "" && len(limits) > 0 {
		return nil, &exitError{exitUsage, "--tpm and --rpm are for a broker without a file; put the limits in " + file}
	}
	var f *config.File
	var err error
	switch {
	case file != "":
		f, err = config.Load(file, environ())
	default:
		f, err = config.ForLimits(limits, environ())
	}
	if err != nil {
		return nil, &exitError{exitUsage, err.Error()}
	}
	return f, nil
}

// environ returns the environment without the variables that are flags' own.
func environ() []string {
	var out []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "QUOTABROKER_URL", "QUOTABROKER_SOURCE", "QUOTABROKER_LEASE", usageVariable:
		default:
			out = append(out, v)
		}
	}
	return out
}

type serveCmd struct {
	Config     string        `short:"c" type:"path" placeholder:"FILE" help:"Configuration file (YAML)."`
	DrainLimit time.Duration `default:"30s" help:"How long leases in flight may end after SIGTERM."`
	LogFormat  string        `enum:"text,json" default:"text" help:"text or json."`
	Debug      bool          `help:"Log more."`
	account
}

// Run serves until SIGTERM or an interrupt.
func (c *serveCmd) Run(ctx context.Context, s *streams) error {
	if c.Config == "" && c.TPM == "" && c.RPM == "" {
		return &exitError{exitUsage, "say how large the account's quota is, with --tpm 450k or a file with --config"}
	}
	f, err := c.load(c.Config)
	if err != nil {
		return err
	}
	log := logger(c, s)
	for _, w := range f.Warnings {
		log.Warn(w)
	}
	b := &server{cmd: c, log: log, errors: s.err, file: f}
	defer b.close()
	if err := b.start(ctx); err != nil {
		return err
	}
	return b.wait(ctx)
}

func logger(c *serveCmd, s *streams) *slog.Logger {
	opts := &slog.HandlerOptions{Level: slog.LevelInfo}
	if c.Debug {
		opts.Level = slog.LevelDebug
	}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(s.err, opts))
	}
	return slog.New(slog.NewTextHandler(s.err, opts))
}

// server is a running broker.
type server struct {
	cmd    *serveCmd
	log    *slog.Logger
	errors io.Writer
	file   *config.File
	node   *natsnode.Node
	svc    *service.Service
	http   *http.Server
	fell   chan error // the HTTP server ended
}

func (b *server) start(ctx context.Context) error {
	var err error
	if b.node, err = openNode(b.file, b.log); err != nil {
		return err
	}
	est, err := newEstimates(b.file)
	if err != nil {
		return err
	}
	b.svc, err = service.New(service.Options{
		Conn: b.node.Conn(), Config: serviceConfig(b.file), Estimate: est.Estimate, Learn: est.Learn,
		Prefix: b.file.NATS.Prefix, Version: versionOf(), Instance: instance(), Logger: b.log,
	})
	if err != nil {
		return err
	}
	if err := b.svc.Start(ctx); err != nil {
		return err
	}
	if err := b.listen(); err != nil {
		return err
	}
	go estimator.Warm() // the first request with a body should not wait for the vocabularies
	b.log.Info("serving", "nats", b.where(), "http", "http://"+b.http.Addr, "pools", summary(b.file), "version", versionOf())
	if b.file.NATS.Mode == config.ModeEmbedded {
		b.log.Info("this broker keeps everything in memory and knows no credentials: only programs on this machine can ask it")
	}
	return nil
}

func (b *server) where() string {
	if url := b.node.URL(); url != "" {
		return url
	}
	return b.file.NATS.External.URL
}

// openNode starts the embedded NATS server, or connects to another.
func openNode(f *config.File, log *slog.Logger) (*natsnode.Node, error) {
	if f.NATS.Mode == config.ModeExternal {
		e := f.NATS.External
		return natsnode.Dial(natsnode.External{
			URL: e.URL, Creds: e.Creds, NkeyFile: e.NkeyFile,
			CA: e.TLS.CA, Cert: e.TLS.Cert, Key: e.TLS.Key, Logger: log,
		})
	}
	host, port, err := hostPort(f.NATS.Listen)
	if err != nil {
		return nil, fmt.Errorf("nats.listen: %w", err)
	}
	return natsnode.StartEmbedded(natsnode.Embedded{Host: host, Port: port, Logger: log})
}

// hostPort splits an address; port 0, any free one, is -1 to the NATS server.
func hostPort(address string) (string, int, error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.Atoi(p)
	if port == 0 {
		port = -1
	}
	return host, port, err
}

// newEstimates makes an estimator that learns.
func newEstimates(f *config.File) (*service.Estimates, error) {
	o := estimator.Default()
	if _, err := rand.Read(o.Seed[:]); err != nil {
		return nil, err
	}
	o.DefaultOutputTokens, o.ImageTokens = f.Estimator.DefaultOutput, f.Estimator.ImageTokens
	if e, ok := estimator.ParseEncoding(f.Estimator.FallbackEncoding); ok {
		o.Fallback = e
	}
	est, err := estimator.New(o)
	if err != nil {
		return nil, err
	}
	l := learn.Default()
	l.Quantile = int(f.Estimator.OutputQuantile / classes.Percent)
	learned, err := learn.New(l)
	if err != nil {
		return nil, err
	}
	return service.NewEstimates(est, learned), nil
}

func serviceConfig(f *config.File) service.Config {
	c := service.Config{Hash: f.Hash(), Inboxes: map[string]string{}}
	for _, p := range f.InOrder() {
		c.Pools = append(c.Pools, p.Config)
	}
	return c
}

func instance() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "quotabroker"
	}
	return fmt.Sprintf("%s-%d", name, os.Getpid())
}

// listen serves metrics and health over HTTP.
func (b *server) listen() error {
	l, err := net.Listen("tcp", b.file.HTTP.Listen)
	if err != nil {
		return fmt.Errorf("http.listen %s cannot be used: %w; stop what listens there, or set http.listen (QUOTABROKER_HTTP__LISTEN) to another address",
			b.file.HTTP.Listen, err)
	}
	b.http = &http.Server{Addr: l.Addr().String(), Handler: metrics.Handler(b.svc, versionOf()), ReadHeaderTimeout: 10 * time.Second}
	b.fell = make(chan error, 1)
	go func() { b.fell <- b.http.Serve(l) }()
	return nil
}

// wait serves until it is told to end, reloading on SIGHUP.
func (b *server) wait(ctx context.Context) error {
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	for {
		select {
		case <-reload:
			b.reload(ctx)
		case err := <-b.svc.Err():
			return err
		case err := <-b.node.Lost():
			return err
		case err := <-b.fell:
			return fmt.Errorf("the HTTP server ended: %w", err)
		case <-ctx.Done():
			return b.drain(context.WithoutCancel(ctx))
		}
	}
}

// reload reads the file anew. A bad one leaves the old one in force and says so.
func (b *server) reload(ctx context.Context) {
	f, err := b.cmd.load(b.cmd.Config)
	if err != nil {
		b.svc.ReloadFailed()
		b.log.Error("the configuration was not reloaded, the old one stays in force", "file", b.cmd.Config)
		_, _ = fmt.Fprintln(b.errors, err) // with the place and a caret, which a log line would spoil
		return
	}
	for _, w := range f.Warnings {
		b.log.Warn(w)
	}
	if f.NATS.Listen != b.file.NATS.Listen || f.HTTP != b.file.HTTP || f.NATS.Mode != b.file.NATS.Mode || f.NATS.Prefix != b.file.NATS.Prefix || f.Estimator != b.file.Estimator {
		b.log.Warn("what nats, http and estimator say takes effect at the next start only; pools and sources are reloaded")
	}
	if err := b.svc.Reload(ctx, serviceConfig(f)); err != nil {
		b.log.Error("the configuration was not reloaded, the old one stays in force", "error", err)
		return
	}
	b.file.Pools, b.file.Sources = f.Pools, f.Sources
	b.log.Info("reloaded", "pools", summary(f), "config", f.Hash())
}

// drain refuses what waits and asks, and lets the leases in flight end.
func (b *server) drain(ctx context.Context) error {
	b.log.Info("draining: what waits is refused, leases in flight may end", "limit", b.cmd.DrainLimit)
	ctx, cancel := context.WithTimeout(ctx, b.cmd.DrainLimit)
	defer cancel()
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	go func() {
		select {
		case <-again: // told twice: it is meant
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := b.svc.Drain(ctx); err != nil && !errors.Is(err, context.Canceled) {
		b.log.Warn("some leases had not ended", "error", err)
	}
	b.log.Info("ended")
	return nil
}

func (b *server) close() {
	if b.http != nil {
		_ = b.http.Close()
	}
	if b.svc != nil {
		b.svc.Close()
	}
	if b.node != nil {
		b.node.Close()
	}
}
