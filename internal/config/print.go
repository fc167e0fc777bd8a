package config

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Print writes the effective configuration as a file that [Parse] reads back to
// an equal one. It names variables and files and holds no secret.
func Print(w io.Writer, f *File) error {
	_, err := io.WriteString(w, f.text())
	return err
}

// Hash returns twelve hexadecimal digits that are equal for two configurations
// of one version with equal effect, and differ for others.
func (f *File) Hash() string {
	sum := sha256.Sum256([]byte(f.text()))
	return hex.EncodeToString(sum[:6])
}

func (f *File) text() string {
	var b strings.Builder
	writeBlock(&b, keysOf(f).show(), 0)
	return b.String()
}

// writeBlock writes a mapping, a key a line.
func writeBlock(b *strings.Builder, n *node, indent int) {
	for _, e := range n.entries {
		b.WriteString(strings.Repeat("  ", indent))
		b.WriteString(plain(e.key))
		b.WriteByte(':')
		if e.value.kind == mapping && !e.value.flow && len(e.value.entries) > 0 {
			b.WriteByte('\n')
			writeBlock(b, e.value, indent+1)
			continue
		}
		b.WriteByte(' ')
		writeFlow(b, e.value)
		b.WriteByte('\n')
	}
}

// writeFlow writes a value on one line.
func writeFlow(b *strings.Builder, n *node) {
	switch n.kind {
	case scalar:
		b.WriteString(plain(n.text))
	case list:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteString(", ")
			}
			writeFlow(b, item)
		}
		b.WriteByte(']')
	case null, mapping:
		b.WriteByte('{')
		for i, e := range n.entries {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(plain(e.key))
			b.WriteString(": ")
			writeFlow(b, e.value)
		}
		b.WriteByte('}')
	}
}

// bare is text that YAML takes as it stands, wherever it stands.
var bare = regexp.MustCompile(`^(\./)?[A-Za-z0-9_/][A-Za-z0-9_./%-]*( [A-Za-z0-9_./%-]+)*$`)

// hostPort is an address to listen on, which needs no quotes either.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*:[0-9]+$`)

// plain returns text as YAML: in quotes where it needs them.
func plain(text string) string {
	if strings.EqualFold(text, "null") || !bare.MatchString(text) && !hostPort.MatchString(text) {
		return strconv.Quote(text)
	}
	return text
}
