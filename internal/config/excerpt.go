package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// excerptWidth is the most characters of a source line that are shown.
const excerptWidth = 100

// excerpt shows a line of the file with a caret under a column, after the line
// before it where that says something. It begins with a newline; it is "" where
// there is no such line.
func excerpt(lines []string, line, column int) string {
	if line < 1 || line > len(lines) {
		return ""
	}
	var b strings.Builder
	if line > 1 && strings.TrimSpace(lines[line-2]) != "" {
		shown, _ := showLine(lines[line-2], column)
		fmt.Fprintf(&b, "\n%6d | %s", line-1, shown)
	}
	shown, caret := showLine(lines[line-1], column)
	fmt.Fprintf(&b, "\n%6d | %s", line, shown)
	fmt.Fprintf(&b, "\n%6s | %s^", "", strings.Repeat(" ", caret))
	return b.String()
}

// showLine returns what of a source line is fit to be shown, and how far into it
// the column stands: secrets masked, one cell a character, the ends cut off so
// that the column can be seen.
func showLine(source string, column int) (shown string, caret int) {
	before, after := around([]rune(strings.TrimRight(source, " \t")), column-1)
	masked := []rune(printable(redact(string(before) + string(after))))
	caret = min(len([]rune(redact(string(before)))), len(masked))
	first := max(0, caret-excerptWidth*3/4)
	last := min(len(masked), first+excerptWidth)
	shown = string(masked[first:last])
	if first > 0 {
		shown = "…" + shown
		caret++
	}
	if last < len(masked) {
		shown += "…"
	}
	return shown, caret - first
}

// around returns what of a line stands near an index, before it and after it:
// far more than is shown, so that no secret is seen because its beginning is cut off.
func around(line []rune, i int) (before, after []rune) {
	const near = 10 * excerptWidth
	i = min(max(i, 0), len(line))
	return line[max(0, i-near):i], line[i:min(len(line), i+near)]
}

// printable replaces what would move a cursor by spaces, one for one.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, s)
}

// secrets are the shapes of what must not be shown, each with what stays of it:
// the value of a key that names a secret, credentials in an address, the seed of
// an nkey, a provider's key.
var secrets = []struct {
	shape *regexp.Regexp
	stays string
}{
	{regexp.MustCompile(`(?i)((?:^|[\s{,"'])(?:pass|password|passwd|passphrase|secret|token|seed|api_?key)["']?\s*[:=]\s*)(?:"[^"]*"?|'[^']*'?|[^\s,}\]]+)`), "${1}***"},
	{regexp.MustCompile(`://[^\s/"']*@`), "://***@"},
	{regexp.MustCompile(`\bS[AUCNOXP][A-Z2-7]{40,}`), "S***"},
	{regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{8,}`), "sk-***"},
}

// redact masks what looks like a secret.
func redact(s string) string {
	for _, secret := range secrets {
		s = secret.shape.ReplaceAllString(s, secret.stays)
	}
	return s
}
