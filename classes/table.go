package classes

import (
	"fmt"
	"time"

	"quotabroker/wire"
)

// MaxClasses is the most classes a table may have, MaxLimits the most limits:
// both are loops on the path of every grant.
const (
	MaxClasses = 16
	MaxLimits  = 8
)

// Class is one class of work as the operator described it. The order of a table
// is the order of urgency: the first class is the most urgent.
type Class struct {
	Name  string
	Share Portion // of every limit under full contention; shares sum to the whole
	Floor Portion // what the class gets within one window whatever others do; at most Share

	// ReserveMin and ReserveMax bound the part of the floor that is never lent.
	// It starts at half of ReserveMax, rises by what was missing when the class had to wait
	// below its floor, and falls towards ReserveMin with a half-life. Equal
	// bounds fix it. At most Floor.
	ReserveMin, ReserveMax Portion

	// Pace is how many seconds of the account's level rate a borrower may run
	// ahead. 0: the class is never paced.
	Pace time.Duration
	// Book is how far ahead a deferral is kept against later asks of the class.
	// 0: nothing is booked.
	Book time.Duration
	// MaxWait is the longest a job may wait for its grant; one that would wait
	// longer is refused at once. 0: it waits for ever.
	MaxWait time.Duration
	// AgeAfter is how long a head waits before it goes before every class that
	// is above its floor. 0: never.
	AgeAfter time.Duration

	MaxWaiting       int   // most tickets held; 0: the default of 10 000
	MaxWaitingTokens int64 // most tokens of waiting tickets; 0: no bound
}

// DefaultMaxWaiting is the most tickets of a class that does not say otherwise.
const DefaultMaxWaiting = 10_000

// DefaultClasses returns the three classes of a pool that names none.
func DefaultClasses() []Class {
	const quarter = 15 * time.Second
	return []Class{
		{
			Name: "interactive", Share: 70 * Percent, Floor: 70 * Percent,
			ReserveMin: 1 * Percent, ReserveMax: 10 * Percent,
			Book: time.Second, MaxWait: 5 * time.Second,
		},
		{
			Name: "background", Share: 20 * Percent, Floor: 10 * Percent,
			ReserveMin: Percent / 5, ReserveMax: 2 * Percent,
			Book: 3 * time.Second, Pace: 1500 * time.Millisecond, AgeAfter: quarter,
		},
		{
			Name: "batch", Share: 10 * Percent, Floor: 5 * Percent,
			Book: 3 * time.Second, Pace: 1500 * time.Millisecond, AgeAfter: quarter,
		},
	}
}

// DefaultSources returns the sources of a file that names none: where work
// enters, and the class that follows from it.
func DefaultSources() map[string]string {
	return map[string]string{"api": "interactive", "scheduler": "background", "eval": "batch"}
}

// Problem is one thing wrong with a configuration. Path leads to the key at
// fault, from the pool down: "classes.batch.floor". Message is a whole sentence.
type Problem struct {
	Path    string
	Message string
}

// Error returns the path and the sentence.
func (p Problem) Error() string { return p.Path + ": " + p.Message }

// ValidateClasses returns everything that keeps a class table from being
// honoured; none means that every guarantee can be kept.
func ValidateClasses(table []Class) []Problem {
	var out []Problem
	bad := func(path, format string, args ...any) {
		out = append(out, Problem{"classes" + path, fmt.Sprintf(format, args...)})
	}
	if len(table) == 0 {
		bad("", "there are no classes; a pool needs at least one")
		return out
	}
	if len(table) > MaxClasses {
		bad("", "there are %d classes; a pool may have at most %d", len(table), MaxClasses)
	}
	var shares, floors Portion
	seen := map[string]bool{}
	for _, c := range table {
		at := "." + c.Name
		if !wire.ValidName(c.Name) {
			bad(at, "%q is no name for a class; use 1 to 32 of A-Z, a-z, 0-9, _ and -", c.Name)
		}
		if seen[c.Name] {
			bad(at, "class %s is there twice", c.Name)
		}
		seen[c.Name] = true
		out = append(out, validateClass(c)...)
		shares += c.Share
		floors += c.Floor
	}
	if shares != Whole {
		bad("", "the shares sum to %s; they must sum to 100%%", shares)
	}
	if floors > Whole {
		bad("", "the floors sum to %s; more than 100%% cannot be guaranteed", floors)
	}
	return out
}

func validateClass(c Class) []Problem {
	var out []Problem
	bad := func(key, format string, args ...any) {
		out = append(out, Problem{"classes." + c.Name + "." + key, c.Name + ": " + fmt.Sprintf(format, args...)})
	}
	if c.Share <= 0 || c.Share > Whole {
		bad("share", "share is %s; it must be above 0%% and at most 100%%", c.Share)
	}
	if c.Floor < 0 {
		bad("floor", "floor is %s; it must be 0%% or more", c.Floor)
	}
	if c.Floor > c.Share {
		bad("floor", "floor %s is over its share %s; a floor is the guaranteed part of a share", c.Floor, c.Share)
	}
	if c.ReserveMin < 0 || c.ReserveMin > c.ReserveMax {
		bad("reserve", "reserve is %s..%s; it must be a range from low to high", c.ReserveMin, c.ReserveMax)
	}
	if c.ReserveMax > c.Floor {
		bad("reserve", "reserve %s is over the floor %s; the reserve is a part of the floor", c.ReserveMax, c.Floor)
	}
	for _, d := range []struct {
		key  string
		d    time.Duration
		most time.Duration
	}{
		{"pace", c.Pace, time.Minute},
		{"book", c.Book, time.Minute},
		{"max_wait", c.MaxWait, 24 * time.Hour},
		{"age_after", c.AgeAfter, time.Hour},
	} {
		if d.d < 0 || d.d > d.most {
			bad(d.key, "%s is %s; it must be between 0s and %s", d.key, d.d, d.most)
		}
	}
	if c.MaxWaiting < 0 {
		bad("max_waiting", "max_waiting is %d; it must be 1 or more", c.MaxWaiting)
	}
	if c.MaxWaitingTokens < 0 {
		bad("max_waiting_tokens", "max_waiting_tokens is %d; it must be 0 or more", c.MaxWaitingTokens)
	}
	return out
}
