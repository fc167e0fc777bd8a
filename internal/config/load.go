package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"quotabroker/classes"
)

// Load reads the configuration of a file, overridden by the variables of env, in
// the form of [os.Environ]. What is wrong with the configuration is an [*Error].
func Load(path string, env []string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(path, data, env)
}

// Parse reads a configuration from the text of a file, overridden by the
// variables of env. name is what messages call the file. What is wrong is an
// [*Error]; without one, the broker takes every pool as it is.
func Parse(name string, data []byte, env []string) (*File, error) {
	data = normalise(data)
	r := newReport()
	var f *File
	if root := readYAML(r, data); root != nil {
		overlay(r, root, overrides(r, env))
		f = r.file(root)
	}
	return r.result(f, name, data)
}

// ForLimits returns the configuration of a broker that has no file: one pool,
// default, with the given limits, and all else at its default or as env
// overrides it. The limits given here go before those of env.
func ForLimits(limits []classes.Limit, env []string) (*File, error) {
	r := newReport()
	root := &node{}
	overlay(r, root, overrides(r, env))
	f := r.file(root, limits...)
	return r.result(f, "", nil)
}

// normalise makes lines end in \n alone and drops the mark that some editors put
// in front, so that lines and columns are counted as the operator sees them.
func normalise(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
}

// file gives a tree its meaning and checks it.
func (r *report) file(root *node, limits ...classes.Limit) *File {
	f := Default()
	r.places = places(root)
	keysOf(f).read(r, spot{"", "the file"}, root)
	if len(limits) > 0 {
		f.pool(DefaultPool).Limits = limits
	}
	r.check(f)
	return f
}

func (r *report) result(f *File, name string, data []byte) (*File, error) {
	if err := r.err(name, data); err != nil {
		return nil, err
	}
	f.Warnings = r.warned(name)
	return f, nil
}
