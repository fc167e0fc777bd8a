//go:build !race

package bpe

const underRace = false
