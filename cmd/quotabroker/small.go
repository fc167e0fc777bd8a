package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

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
		return usageError("there is no schema %q; there are %s", c.Name, strings.Join(names, ", "))
	}
	_, err := fmt.Fprintln(s.out, strings.Join(names, "\n"))
	return err
}
