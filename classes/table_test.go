package classes

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestDefaultClassesAreValid(t *testing.T) {
	if problems := ValidateClasses(DefaultClasses()); len(problems) > 0 {
		t.Errorf("the default table: %v", problems)
	}
	for source, class := range DefaultSources() {
		found := false
		for _, c := range DefaultClasses() {
			found = found || c.Name == class
		}
		if !found {
			t.Errorf("source %s has class %s, which the default table lacks", source, class)
		}
	}
}

func TestValidateClasses(t *testing.T) {
	edit := func(f func(table []Class)) []Class {
		table := DefaultClasses()
		f(table)
		return table
	}
	many := make([]Class, MaxClasses+1)
	for i := range many {
		many[i] = Class{Name: fmt.Sprintf("c%d", i), Share: 1}
	}
	many[0].Share = Whole - MaxClasses
	for _, tc := range []struct {
		name  string
		table []Class
		want  []string // "path: part of the sentence"
	}{
		{"none", nil, []string{"classes: no classes"}},
		{"too many", many, []string{"classes: at most 16"}},
		{"shares above the whole", edit(func(c []Class) { c[1].Share = 21 * Percent }), []string{"classes: the shares sum to 101%"}},
		{"shares below the whole", edit(func(c []Class) { c[2].Share, c[2].Floor = 9*Percent, 0 }), []string{"classes: the shares sum to 99%"}},
		{"a share of nothing", edit(func(c []Class) { c[0].Share, c[2].Share, c[2].Floor = 80*Percent, 0, 0 }), []string{"classes.batch.share: above 0%"}},
		{"floor over share", edit(func(c []Class) { c[2].Floor = 10*Percent + 1 }), []string{"classes.batch.floor: over its share"}},
		{"a negative floor", edit(func(c []Class) { c[2].Floor = -Percent }), []string{"classes.batch.floor: floor is -1%; it must be 0% or more", "classes.batch.reserve: over the floor"}},
		{"reserve over floor", edit(func(c []Class) { c[1].ReserveMax = 10*Percent + 1 }), []string{"classes.background.reserve: over the floor"}},
		{"reserve from high to low", edit(func(c []Class) { c[0].ReserveMin = 11 * Percent }), []string{"classes.interactive.reserve: from low to high"}},
		{"the same name", edit(func(c []Class) { c[1].Name = "batch" }), []string{"classes.batch: there twice"}},
		{"a name that is none", edit(func(c []Class) { c[1].Name = "a b" }), []string{"classes.a b: no name"}},
		{"durations", edit(func(c []Class) {
			c[1].Pace, c[1].Book, c[1].MaxWait, c[1].AgeAfter = -1, time.Hour, 25*time.Hour, 2*time.Hour
		}), []string{"classes.background.pace: between", "classes.background.book: between", "classes.background.max_wait: between", "classes.background.age_after: between"}},
		{"queue bounds", edit(func(c []Class) { c[1].MaxWaiting, c[1].MaxWaitingTokens = -1, -1 }), []string{"classes.background.max_waiting: 1 or more", "classes.background.max_waiting_tokens: 0 or more"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			problems := ValidateClasses(tc.table)
			if len(problems) != len(tc.want) {
				t.Fatalf("%d problems, want %d: %v", len(problems), len(tc.want), problems)
			}
			for i, want := range tc.want {
				path, sentence, _ := strings.Cut(want, ": ")
				if p := problems[i]; p.Path != path || !strings.Contains(p.Message, sentence) {
					t.Errorf("problem %d is %q, want %q with %q", i, p.Error(), path, sentence)
				}
			}
		})
	}
}
