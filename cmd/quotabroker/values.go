package main

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"quotabroker/wire"
)

// values read what stands after a flag. A value that is wrong is one sentence with
// the flag, the value and what would be right. A negative number is a value too,
// while the parser alone would take -1 for a flag and not say what --speed may be.
func values() []kong.Option {
	return []kong.Option{
		kong.KindMapper(reflect.String, value("a text", func(s string) (string, error) { return s, nil })),
		kong.KindMapper(reflect.Int, value("a whole number, like 64", clipped)),
		kong.KindMapper(reflect.Int64, value(fmt.Sprintf("a whole number between 0 and %d", int64(wire.MaxTokens)), func(s string) (int64, error) {
			return strconv.ParseInt(s, 10, 64)
		})), // all of them count tokens
		kong.KindMapper(reflect.Float64, value("a number, like 15", func(s string) (float64, error) {
			return strconv.ParseFloat(s, 64)
		})),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), value("a duration with its unit, like 90s or 1m30s", time.ParseDuration)),
	}
}

// value makes a mapper of what parses a value, which must be as right says.
func value[T any](right string, parse func(string) (T, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if t := ctx.Scan.Peek(); negative.MatchString(t.String()) {
			text = ctx.Scan.Pop().String()
		} else if err := ctx.Scan.PopValueInto("", &text); err != nil { // nothing, or the next flag
			return usageError("%s has no value; it must be %s", nameOf(ctx.Value), right)
		}
		v, err := parse(text)
		if err != nil {
			return usageError("%s is %q; it must be %s", nameOf(ctx.Value), text, right)
		}
		target.Set(reflect.ValueOf(v).Convert(target.Type()))
		return nil
	}
}

// clipped reads a whole number. One that fits nowhere is the largest: the command
// has the bounds and says them.
func clipped(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if errors.Is(err, strconv.ErrRange) {
		err = nil
	}
	return n, err
}

// nameOf is how the command line names a value.
func nameOf(v *kong.Value) string {
	if v.Flag != nil {
		return "--" + v.Name
	}
	return fmt.Sprintf("<%s>", v.Name)
}

var negative = regexp.MustCompile(`^-[.]?[0-9]`)
