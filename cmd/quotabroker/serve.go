package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	f, err := a.read(file)
	var exit *exitError
	if err != nil && !errors.As(err, &exit) {
		err = &exitError{exitUsage, err.Error()}
	}
	return f, err
}

// read is load with the error of a configuration as it is.
func (a *account) read(file string) (*config.File, error) {
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
		return nil, &exitError{exitUsage, "--tpm and --rpm are for a broker without a file; put the limits into " + fileName(file)}
	}
	if file != "" {
		f, err := config.Load(file, environ())
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			return nil, usageError("--config %s cannot be read: %v", file, path.Err)
		}
		return f, err
	}
	return config.ForLimits(limits, environ())
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
	DrainLimit time.Duration `default:"30s" help:"How long leases in flight may end after SIGTERM; 0s ends them at once."`
	LogFormat  string        `enum:"text,json" default:"text" help:"text or json."`
	Debug      bool          `help:"Log more."`
	account
}

// Run serves until SIGTERM or an interrupt.
func (c *serveCmd) Run(ctx context.Context, s *streams) error {
	log := logger(c, s)
	if err := c.check(); err != nil {
		return c.failed(log, "the command line is wrong", err, exitUsage)
	}
	f, err := c.read(c.Config)
	if err != nil {
		return c.failed(log, "the configuration cannot be used", err, exitUsage)
	}
	for _, w := range f.Warnings {
		log.Warn(w)
	}
	b := &server{cmd: c, log: log, errors: s.err, file: f}
	defer b.close()
	if err := b.start(ctx); err != nil {
		return c.failed(log, "the broker could not start", err, exitFailed)
	}
	if err := b.wait(ctx); err != nil {
		return c.failed(log, "the broker has ended", err, exitFailed)
	}
	return nil
}

// check checks the flags but for the configuration.
func (c *serveCmd) check() error {
	switch {
	case c.Config == "" && c.TPM == "" && c.RPM == "":
		return usageError("say how large the account's quota is, with --tpm 450k or a file with --config")
	case c.DrainLimit < 0:
		return usageError("--drain-limit is %s; it must be 0s or more, like 30s", c.DrainLimit)
	}
	return nil
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
	return nil
}

// connected says that the broker serves, which it does from the moment when NATS
// is there.
func (b *server) connected() {
	b.log.Info("serving", "nats", b.node.URL(), "http", "http://"+b.http.Addr, "pools", summary(b.file), "version", versionOf())
	if b.file.NATS.Mode == config.ModeEmbedded {
		b.log.Info("this broker keeps everything in memory and knows no credentials: only programs on this machine can ask it")
	}
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

// wait serves until it is told to end, reloading on SIGHUP.
func (b *server) wait(ctx context.Context) error {
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	up := b.node.Up()
	for {
		select {
		case <-up:
			b.connected()
			up = nil // once
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
	f, err := b.cmd.read(b.cmd.Config)
	if err != nil {
		b.svc.ReloadFailed()
		b.notReloaded(err)
		return
	}
	for _, w := range f.Warnings {
		b.log.Warn(w)
	}
	if f.NATS.Listen != b.file.NATS.Listen || f.HTTP != b.file.HTTP || f.NATS.Mode != b.file.NATS.Mode || f.NATS.Prefix != b.file.NATS.Prefix || f.Estimator != b.file.Estimator {
		b.log.Warn("what nats, http and estimator say takes effect at the next start only; pools and sources are reloaded")
	}
	if err := b.svc.Reload(ctx, serviceConfig(f)); err != nil {
		b.notReloaded(err)
		return
	}
	for _, p := range b.file.InOrder() {
		if f.Pools[p.Pool] == nil {
			b.log.Warn("a pool is gone: what it had charged is forgotten, so that it begins with a full quota if it comes back", "pool", p.Pool)
		}
	}
	b.file.Pools, b.file.Sources = f.Pools, f.Sources
	b.log.Info("reloaded", "pools", summary(f), "config", f.Hash())
}

// notReloaded says why a configuration was not put in force. In a log of text the
// problems of a file follow as they are, since a line would spoil their carets.
func (b *server) notReloaded(err error) {
	const message = "the configuration was not reloaded, the old one stays in force"
	var bad *config.Error
	if b.cmd.LogFormat == "text" && errors.As(err, &bad) {
		b.log.Error(message, "file", b.cmd.Config)
		_, _ = fmt.Fprintln(b.errors, err)
		return
	}
	b.log.Error(message, append([]any{"file", b.cmd.Config}, cause(err)...)...)
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
