package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// helpCmd is there to be listed: helpFirst makes --help of it.
type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command; all of them without one."`
}

// helpFirst turns "help ask" into "ask --help", and nothing into "--help".
func helpFirst(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(args[1:len(args):len(args)], "--help")
	}
	return args
}

// printHelp prints the help of a command, or of all with the exit codes.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	if ctx.Selected() != nil {
		return nil
	}
	_, err := fmt.Fprint(ctx.Stdout, exitCodes)
	return err
}

// showVersion is a flag that is the version command.
type showVersion bool

// BeforeReset prints the version and ends, before a command is asked for.
func (showVersion) BeforeReset(app *kong.Kong, s *streams) error {
	if err := (versionCmd{}).Run(s); err != nil {
		return err
	}
	app.Exit(0)
	return nil
}
