// Package bpe counts the tokens that tiktoken's cl100k_base and o200k_base make
// of a text. Only the number is wanted, never the tokens, and that is what makes
// it quick.
//
// # Invariants
//
//   - The count is tiktoken-go's, for any bytes: each byte that is no UTF-8 is
//     U+FFFD, and special tokens are text.
//   - Time is n·log n in the longest piece and linear in the rest.
//   - Counting allocates nothing once its scratch memory has grown.
//   - The answer follows from the text alone, and so does the work it is said to
//     be. Vocabularies are embedded and load once, on first use.
//
// # How it works
//
// A text is split into pieces by a pattern, written out by hand in split.go. A
// piece that is a token counts one. Any other is merged: of all pairs of
// neighbours that make a token, the one of lowest rank, leftmost first, becomes
// one, until there is none. The lowest is kept by a tree (lowest.go), so that a
// long piece takes n·log n; what two neighbours make is asked of a memo before
// the vocabulary, since a text asks for the same pairs over and over.
package bpe
