package main

import (
	"context"
	"fmt"
	"strings"

	"quotabroker/internal/config"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Check a file and say everything that is wrong with it."`
	Print configPrintCmd `cmd:"" help:"Print the configuration in force, every default written out; without a file, the defaults for --tpm and --rpm."`
}

type configCheckCmd struct {
	File string `arg:"" type:"path" help:"Configuration file, - for standard input."`
}

// Run checks a configuration.
func (c *configCheckCmd) Run(ctx context.Context, s *streams) error {
	f, err := loadConfig(ctx, s, c.File)
	if err != nil {
		return err
	}
	warn(s, f)
	_, err = fmt.Fprintf(s.out, "%s is right: %s\n", fileName(c.File), summary(f))
	return err
}

type configPrintCmd struct {
	File string `arg:"" optional:"" type:"path" help:"Configuration file, - for standard input."`
	account
}

// Run prints a configuration.
func (c *configPrintCmd) Run(ctx context.Context, s *streams) error {
	f, err := c.effective(ctx, s)
	if err != nil {
		return err
	}
	warn(s, f)
	return config.Print(s.out, f)
}

// effective is the configuration that a broker would have with these arguments.
// Where they say no limit, one stands in, so that the defaults can be read and the
// text be the start of a file.
func (c *configPrintCmd) effective(ctx context.Context, s *streams) (*config.File, error) {
	const standIn = "450k"
	if c.File != "" && c.TPM == "" && c.RPM == "" {
		return loadConfig(ctx, s, c.File)
	}
	f, err := c.load(c.File)
	if err == nil || c.File != "" || c.TPM != "" || c.RPM != "" {
		return f, err
	}
	if f, standErr := (&account{TPM: standIn}).load(""); standErr == nil {
		_, _ = fmt.Fprintf(s.err, "quotabroker: note: no limit is given, so %s tokens a minute stand for your account's; give it with --tpm\n", standIn)
		return f, nil
	}
	return nil, err // the environment's fault
}

// loadConfig reads a configuration from a file, or from standard input.
func loadConfig(ctx context.Context, s *streams, path string) (*config.File, error) {
	data, err := readFile(ctx, path, s.in)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, usageError("%s cannot be read: %v", fileName(path), withoutPath(err))
	}
	f, err := config.Parse(fileName(path), data, environ())
	if err != nil {
		return nil, usageError("%v", err)
	}
	return f, nil
}

// fileName is what messages call a file.
func fileName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

func warn(s *streams, f *config.File) {
	for _, w := range f.Warnings {
		_, _ = fmt.Fprintln(s.err, "quotabroker: note: "+w)
	}
}

// summary says what a configuration comes to in a line.
func summary(f *config.File) string {
	var parts []string
	for _, p := range f.InOrder() {
		var limits, classes []string
		for _, l := range p.Limits {
			limits = append(limits, fmt.Sprintf("%d %s", l.Amount, l))
		}
		for _, c := range p.Classes {
			classes = append(classes, fmt.Sprintf("%s %s", c.Name, c.Share))
		}
		parts = append(parts, fmt.Sprintf("pool %s has %s for %s", p.Pool, strings.Join(limits, " and "), strings.Join(classes, ", ")))
	}
	return strings.Join(parts, "; ")
}
