package config

// nearest returns the word that a misspelt one was most likely meant to be, ""
// where none is near: at most a third of its letters wrong, missing, too many or
// swapped with their neighbours.
func nearest(word string, words []string) string {
	if len(word) > 64 {
		return ""
	}
	best, found := max(1, len(word)/3)+1, ""
	for _, w := range words {
		if d := distance(word, w); d < best {
			best, found = d, w
		}
	}
	return found
}

// distance counts the letters to insert, delete, replace or swap with a
// neighbour to make b of a.
func distance(a, b string) int {
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, old, row = old, row, older
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := old[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, old[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
