package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration: where it was written,
// and a sentence that says what and what would be right.
type Problem struct {
	Line, Column int    // from 1, in characters; 0 where no line is at fault
	Variable     string // of the environment, where that is at fault
	Message      string
}

// Error is everything that is wrong with a configuration, in the order of the
// file. It has at least one problem.
type Error struct {
	Name     string // of the file, as it was given
	Problems []Problem

	lines []string // of the file
}

// maxShown is the most problems an error shows: nobody mends more at once.
const maxShown = 20

// Error shows each problem with its place and its source line, with a caret
// under the column, up to 20 of them.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == maxShown {
			b.WriteString("\n" + e.more())
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.located(e.Name))
		b.WriteString(excerpt(e.lines, p.Line, p.Column))
	}
	return b.String()
}

// Sentences returns each problem after its place, without its source line, as far
// as Error shows them.
func (e *Error) Sentences() []string {
	var out []string
	for i, p := range e.Problems {
		if i == maxShown {
			return append(out, e.more())
		}
		out = append(out, p.located(e.Name))
	}
	return out
}

func (e *Error) more() string { return fmt.Sprintf("and %d more", len(e.Problems)-maxShown) }

// located returns the problem in one line, after its place.
func (p Problem) located(name string) string {
	switch {
	case p.Variable != "":
		return quote(p.Variable) + ": " + p.Message
	case p.Line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", name, p.Line, p.Column, p.Message)
	case name != "":
		return name + ": " + p.Message
	}
	return p.Message
}

// report gathers what is to be said while a configuration is read.
type report struct {
	problems []Problem
	said     map[Problem]bool
	warnings []Problem
	places   map[string]place
	unread   []string // paths of what could not be read, and so has its default
}

func newReport() *report { return &report{said: map[Problem]bool{}} }

// bad notes a problem at a place, once.
func (r *report) bad(at place, format string, args ...any) {
	p := problemAt(at, format, args...)
	if !r.said[p] {
		r.said[p] = true
		r.problems = append(r.problems, p)
	}
}

// badPath notes a problem of the value at a path, which may be absent: then it
// is shown at the nearest thing above it that was written.
func (r *report) badPath(path, format string, args ...any) {
	r.bad(r.find(path), format, args...)
}

// warn notes something that is not wrong but will not do what it seems to.
func (r *report) warn(path, format string, args ...any) {
	r.warnings = append(r.warnings, problemAt(r.find(path), format, args...))
}

// cannot notes that the value at a path could not be read.
func (r *report) cannot(path string, at place, format string, args ...any) {
	r.unread = append(r.unread, path)
	r.bad(at, format, args...)
}

// anyUnread reports whether something at or below a path could not be read, so
// that what follows from it is not worth saying.
func (r *report) anyUnread(path string) bool {
	return slices.ContainsFunc(r.unread, func(p string) bool { return under(p, path) })
}

// anyUnreadIn reports whether something directly below a path could not be read:
// what seems to be missing there may only be misspelt.
func (r *report) anyUnreadIn(path string) bool {
	return slices.ContainsFunc(r.unread, func(p string) bool { return p == path || parent(p) == path })
}

// find returns where a path was written, or the nearest thing above it.
func (r *report) find(path string) place {
	for path != "" {
		if at, ok := r.places[path]; ok && at != (place{}) {
			return at
		}
		path = parent(path)
	}
	return place{}
}

// err returns what was gathered as an error, nil where nothing is wrong.
func (r *report) err(name string, data []byte) error {
	if len(r.problems) == 0 {
		return nil
	}
	sortProblems(r.problems)
	return &Error{Name: name, Problems: r.problems, lines: strings.Split(string(data), "\n")}
}

// warned returns the warnings, one line each.
func (r *report) warned(name string) []string {
	sortProblems(r.warnings)
	var out []string
	for _, w := range r.warnings {
		out = append(out, w.located(name))
	}
	return out
}

func problemAt(at place, format string, args ...any) Problem {
	return Problem{at.line, at.column, at.variable, printable(redact(fmt.Sprintf(format, args...)))}
}

// sortProblems orders by line, then what has none: variables, then the rest.
func sortProblems(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Variable, b.Variable),
		)
	})
}

func rank(p Problem) int {
	switch {
	case p.Line > 0:
		return 0
	case p.Variable != "":
		return 1
	}
	return 2
}
