package estimator

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"math"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite weights.go and the golden files")

// priors is what a feature weighs where the training texts say little about it.
// They err high: a rune counts what it takes alone, a letter deep in a run what
// random letters take.
func priors() (w weights) {
	copy(w[:], []float64{
		fWord: 1, fLetterLate: 0.1, fLetterDeep: 0.45, fCamel: 0.8, fCapitals: 0.4,
		fDigits: 1, fSpaceDigit: 1, fPunct: 0.9, fPunctMore: 0.4, fPunctDeep: 0.65, fPunctSame: 0.15,
		fNewline: 1, fPunctLine: 0.5, fIndent: 1, fSpaceMore: 0.5, fSpaceSame: 0.04,
		fControl: 1, fVowelEnd: 0.5, fForeignWord: 0.3, fForeignDeep: 0.5,
	})
	for i := int(fRune); i < numFeatures; i++ {
		w[i] = float64(1 + (i-int(fRune))%groupWidth)
	}
	return w
}

// fit returns the weights that minimise the squared relative error over the
// texts plus a hundredth of the squared relative distance from the priors, none
// below its least: coordinate descent.
func fit(xs []features, ys []float64) weights {
	const ridge = 0.01
	prior := priors()
	w := prior
	res := make([]float64, len(xs)) // relative error of each text
	for i := range xs {
		res[i] = xs[i].tokens(&w)/ys[i] - 1
	}
	for range 2000 {
		moved := 0.0
		for j := range w {
			pull := ridge / (prior[j] * prior[j])
			num, den := pull*(w[j]-prior[j]), pull
			for i := range xs {
				if n := xs[i][j]; n != 0 {
					x := float64(n) / ys[i]
					num += x * res[i]
					den += x * x
				}
			}
			next := math.Max(w[j]-num/den, least(feature(j))*prior[j])
			delta := next - w[j]
			if delta == 0 {
				continue
			}
			for i := range xs {
				res[i] += float64(xs[i][j]) / ys[i] * delta
			}
			w[j] = next
			moved = math.Max(moved, math.Abs(delta))
		}
		if moved < 1e-6 {
			break
		}
	}
	return w
}

// least is the lower bound of a weight, in parts of its prior. Deep runs, which
// the training texts hardly have, are not to become cheap by them.
func least(f feature) float64 {
	if f == fLetterDeep || f == fPunctDeep || f == fForeignDeep {
		return 1
	}
	return 0.25
}

// TestWeightsAreFitted keeps weights.go what fit makes of the even texts of
// texts.jsonl.
func TestWeightsAreFitted(t *testing.T) {
	texts := loadTexts(t)
	var fitted [numEncodings]weights
	for e := CL100K; e < numEncodings; e++ {
		v := vocabularies[e]()
		var xs []features
		var ys []float64
		for i := 0; i < len(texts); i += 2 {
			xs = append(xs, v.featuresOf(texts[i].Text))
			ys = append(ys, float64(texts[i].count(e)))
		}
		fitted[e] = fit(xs, ys)
	}
	if *update {
		if err := os.WriteFile("weights.go", weightsSource(&fitted), 0o644); err != nil {
			t.Fatal(err)
		}
		weightsOf = fitted
	}
	for e := CL100K; e < numEncodings; e++ {
		for j, w := range weightsOf[e] {
			if math.Abs(w-fitted[e][j]) > 0.002 {
				t.Errorf("%s: feature %d weighs %.3f, the fit says %.3f (rewrite with -update)", e, j, w, fitted[e][j])
			}
		}
	}
}

func weightsSource(fitted *[numEncodings]weights) []byte {
	groups := [numGroups]string{"Latin", "Greek", "Semitic", "Indic", "Hangul", "kana", "Han", "symbols", "marks", "emoji", "rare"}
	var b bytes.Buffer
	b.WriteString(weightsHead)
	for e, name := range []string{CL100K: "CL100K", O200K: "O200K"} {
		if name == "" {
			continue
		}
		fmt.Fprintf(&b, "%s: {\n// words and ASCII\n", name)
		for j, w := range fitted[e] {
			if rest := j - int(fRune); rest >= 0 && rest%groupWidth == 0 {
				fmt.Fprintf(&b, "\n// %s\n", groups[rest/groupWidth])
			}
			fmt.Fprintf(&b, "%.3f,", w)
		}
		b.WriteString("\n},\n")
	}
	b.WriteString("}\n")
	src, err := format.Source(b.Bytes())
	if err != nil {
		panic(err)
	}
	return src
}

const weightsHead = `package estimator

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
`
