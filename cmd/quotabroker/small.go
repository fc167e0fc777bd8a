package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"quotabroker/internal/config"
	"quotabroker/wire"
)

// version is set by release builds: -ldflags "-X main.version=1.2.3".
var version = ""

type versionCmd struct{}

// Run prints what this binary is.
func (versionCmd) Run(s *streams) error {
	_, err := fmt.Fprintf(s.out, "quotabroker %s (protocol %s, %s %s/%s)\n", versionOf(), wire.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "0.0.0-dev"
}

type schemaCmd struct {
	Name string `arg:"" optional:"" help:"Message, like acquire.request; without one their names are listed."`
}

// Run prints a schema, or the names of all.
func (c *schemaCmd) Run(s *streams) error {
	var names []string
	for _, schema := range wire.Schemas() {
		if schema.Name == c.Name || schema.ID == c.Name {
			_, err := s.out.Write(schema.JSON)
			return err
		}
		names = append(names, schema.Name)
	}
	if c.Name != "" {
		return &exitError{exitUsage, fmt.Sprintf("there is no schema %q; there are %s", c.Name, strings.Join(names, ", "))}
	}
	_, err := fmt.Fprintln(s.out, strings.Join(names, "\n"))
	return err
}

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Check a file and say everything that is wrong with it."`
	Print configPrintCmd `cmd:"" help:"Print the configuration in force, every default written out; without a file, the defaults."`
}

type configCheckCmd struct {
	File string `arg:"" type:"path" help:"Configuration file."`
}

// Run checks a configuration.
func (c *configCheckCmd) Run(_ context.Context, s *streams) error {
	f, err := config.Load(c.File, environ())
	if err != nil {
		return &exitError{exitUsage, err.Error()}
	}
	warn(s, f)
	_, err = fmt.Fprintf(s.out, "%s is right: %s\n", c.File, summary(f))
	return err
}

type configPrintCmd struct {
	File string `arg:"" optional:"" type:"path" help:"Configuration file."`
	account
}

// Run prints a configuration.
func (c *configPrintCmd) Run(s *streams) error {
	f, err := c.load(c.File)
	if err != nil {
		return err
	}
	warn(s, f)
	return config.Print(s.out, f)
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
