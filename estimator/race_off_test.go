//go:build !race

package estimator

const underRace = false
