package mockprovider

import "strings"

// fillerTokens are what answers are made of: each is one token in o200k_base and in
// cl100k_base, and so is the first without its space.
var fillerTokens = [...]string{
	" The", " night", " run", " asks", " for", " what", " it", " needs", " and", " waits", " until", " there",
	" is", " room", " so", " the", " day", " is", " never", " slow", " and", " no", " one", " has",
	" to", " stand", " in", " line", " while", " the", " rest", " of", " the", " quota", " lies", " idle",
}

// fillerToken returns token i of every answer.
func fillerToken(i int64) string {
	if i == 0 {
		return fillerTokens[0][1:]
	}
	return fillerTokens[i%int64(len(fillerTokens))]
}

// fillerText returns the first n tokens.
func fillerText(n int64) string {
	var b strings.Builder
	b.Grow(int(5 * n))
	for i := range n {
		b.WriteString(fillerToken(i))
	}
	return b.String()
}
