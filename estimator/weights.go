package estimator

// weights are tokens per unit of each feature, in the order of the features.
type weights [numFeatures]float64

// tokens is the regression: the weighted sum of the features.
func (f *features) tokens(w *weights) (sum float64) {
	for i, weight := range w {
		sum += float64(f[i]) * weight
	}
	return sum
}

// weightsOf is written by "go test ./estimator -run Weights -update": a
// non-negative ridge fit of relative errors over half of texts.jsonl.
var weightsOf = [numEncodings]weights{
	CL100K: {
		// words and ASCII
		1.002, 0.056, 0.450, 0.421, 0.327, 1.127, 1.314, 0.574, 0.191, 0.650, 0.096, 0.939, 0.218, 1.087, 0.427, 0.026, 1.000, 0.653, 0.229, 0.501,
		// Latin
		1.688, 3.954, 1.342, 4.000,
		// Greek
		0.560, 3.418, 3.000, 4.000,
		// Semitic
		0.969, 1.974, 3.000, 4.000,
		// Indic
		0.909, 1.941, 3.637, 4.000,
		// Hangul
		1.000, 2.000, 3.000, 4.000,
		// kana
		1.000, 2.000, 3.000, 4.000,
		// Han
		0.871, 2.086, 3.439, 4.000,
		// symbols
		0.954, 1.880, 3.000, 4.000,
		// marks
		0.250, 1.971, 3.000, 4.000,
		// emoji
		1.000, 2.000, 3.000, 4.000,
		// rare
		1.000, 2.000, 3.000, 4.000,
	},
	O200K: {
		// words and ASCII
		0.993, 0.060, 0.450, 0.494, 0.354, 1.146, 1.311, 0.568, 0.201, 0.650, 0.108, 0.955, 0.218, 1.060, 0.457, 0.035, 1.000, 0.519, 0.075, 0.502,
		// Latin
		1.077, 2.281, 3.000, 4.000,
		// Greek
		0.373, 2.000, 3.000, 4.000,
		// Semitic
		0.453, 2.000, 3.000, 4.000,
		// Indic
		0.418, 1.970, 3.000, 4.000,
		// Hangul
		1.000, 2.000, 3.000, 4.000,
		// kana
		1.000, 2.000, 3.000, 4.000,
		// Han
		0.860, 2.167, 2.999, 4.000,
		// symbols
		0.250, 1.900, 3.000, 4.000,
		// marks
		0.250, 1.968, 3.000, 4.000,
		// emoji
		1.000, 2.000, 3.000, 4.000,
		// rare
		1.000, 2.000, 3.000, 4.000,
	},
}
