package bpe

// The patterns, as published in openai/tiktoken (tiktoken_ext/openai_public.py).
// The functions below are what a backtracking matcher does with them: the first
// alternative that matches counts, and a repetition takes all it can and gives
// back where the rest fails. Every text is all matches, with nothing between.
const (
	cl100kPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// splitter returns where the piece that begins at from ends, for from in text.
// It looks at no rune more than three times over all pieces of a text.
type splitter func(t *classTable, text []byte, from int) int

// splitCL100K is cl100kPattern.
func splitCL100K(t *classTable, text []byte, from int) int {
	c, size := t.at(text, from)
	next := from + size
	switch {
	case c&letters != 0:
		return t.run(text, next, letters)
	case c&number != 0:
		return t.digits(text, next)
	case text[from] == '\'':
		if end := contraction(text, from); end > from {
			return end
		}
	}
	after, size := t.at(text, next)
	switch {
	case after&letters != 0 && c&newline == 0:
		return t.run(text, next+size, letters)
	case c&space == 0:
		return lines(text, t.run(text, next, symbols))
	case text[from] == ' ' && after&symbols != 0:
		return lines(text, t.run(text, next+size, symbols))
	}
	return t.blanks(text, from)
}

// splitO200K is o200kPattern.
func splitO200K(t *classTable, text []byte, from int) int {
	c, size := t.at(text, from)
	next := from + size
	var after class
	switch {
	case c&letters != 0:
		end, _ := t.word(text, from)
		return contraction(text, end)
	case c&number != 0:
		return t.digits(text, next)
	case c&newline == 0:
		after, size = t.at(text, next)
		if after&(letters|mark) == 0 {
			break
		}
		// A mark that leads a word of capitals only stands alone: without it as
		// the leading rune the first alternative finds a small letter, the mark.
		if end, small := t.word(text, next); small || c != mark {
			return contraction(text, end)
		}
	}
	switch {
	case c == mark:
		return contraction(text, next)
	case c&space == 0:
		return linesAndSlashes(text, t.run(text, next, symbols))
	case text[from] == ' ' && after&symbols != 0:
		return linesAndSlashes(text, t.run(text, next+size, symbols))
	}
	return t.blanks(text, from)
}

// word returns where the word of o200k that begins at i ends, for a letter or
// mark there: capitals, then small letters, and what is both on either side. If
// no small letter comes it ends with the last rune that may be one, or is
// capitals only, and small is false.
func (t *classTable) word(text []byte, i int) (end int, small bool) {
	var c class
	size := 0
	for {
		c, size = t.at(text, i)
		if c&head == 0 {
			break
		}
		i += size
		if c&body != 0 {
			end = i
		}
	}
	switch {
	case c&body != 0:
		return t.run(text, i+size, body), true
	case end > 0:
		return end, true
	}
	return i, false
}

// digits returns where up to three numbers end, of which one is passed.
func (t *classTable) digits(text []byte, i int) int {
	for range 2 {
		c, size := t.at(text, i)
		if c&number == 0 {
			break
		}
		i += size
	}
	return i
}

// blanks returns where a piece of white space ends: after its last line break,
// else before its last rune if something follows, which that rune belongs to.
func (t *classTable) blanks(text []byte, from int) int {
	end, last, line := from, from, from
	for {
		c, size := t.at(text, end)
		if c&space == 0 {
			break
		}
		last = end
		end += size
		if c&newline != 0 {
			line = end
		}
	}
	switch {
	case line > from:
		return line
	case end == len(text) || last == from:
		return end
	}
	return last
}

// contraction returns where one of 's 't 're 've 'm 'll 'd at i ends, in small
// or capital letters; i if there is none. No rune outside ASCII has one of these
// letters as its small letter, so that is all the ignored case comes to.
func contraction(text []byte, i int) int {
	if len(text)-i < 2 || text[i] != '\'' {
		return i
	}
	first := text[i+1] | 0x20
	switch first {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		if len(text)-i < 3 {
			return i
		}
		if second := text[i+2] | 0x20; second == 'l' && first == 'l' || second == 'e' && first != 'l' {
			return i + 3
		}
	}
	return i
}

// lines returns where the line breaks at i end.
func lines(text []byte, i int) int {
	for i < len(text) && (text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// linesAndSlashes returns where the line breaks and slashes at i end.
func linesAndSlashes(text []byte, i int) int {
	for i < len(text) && (text[i] == '\n' || text[i] == '\r' || text[i] == '/') {
		i++
	}
	return i
}
