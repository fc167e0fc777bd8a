package estimator

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sort"
	"unicode/utf8"
)

const (
	windows     = 24   // sampled places of a text that is too long to count
	windowBytes = 1024 // counted at each of them, at most
)

// sampleTokens estimates the tokens of texts from windows at places that follow
// from seed and the texts, but cannot be guessed without the seed: one window in
// each 24th, at a random offset. With e and r a window's exact count and its
// regression, both per byte, and R the regression of everything, V bytes, it
// takes the larger of
//
//	R · Σe/Σr             right where the regression is wrong everywhere by one factor
//	R + V · mean(e-r)     right where it is wrong in some places only
//
// and adds one standard error of the windows, so that it errs high. What a window
// cuts through at either end counts for one token more at the most, which errs
// high as well. It never answers more than one token a byte.
func (v *vocabulary) sampleTokens(texts [][]byte, seed *[32]byte) int64 {
	s := newSampler(texts)
	draw := newStream(seed, texts)
	var es, rs [windows]float64
	var sumE, sumR float64
	stride := s.size / windows
	if stride == 0 {
		return int64(s.size)
	}
	span := min(windowBytes, stride)
	var seen int
	for k := range windows {
		parts := s.window(k*stride+draw.below(stride-span+1), span)
		tokens, bytes := 0, 0
		for _, p := range parts {
			tokens += v.bpe.Count(p.text[p.from:p.to])
			bytes += p.to - p.from
		}
		es[k] = float64(tokens) / float64(max(bytes, 1))
		rs[k] = v.regressWindow(parts) / float64(max(bytes, 1))
		sumE, sumR = sumE+es[k], sumR+rs[k]
		seen += bytes
	}
	total, size := v.regress(texts), float64(s.size)
	estimate := total + size*(sumE-sumR)/windows
	ratio := 1.0
	if sumR > 0 {
		ratio = sumE / sumR
		estimate = max(estimate, total*ratio)
	}
	var squares float64
	for k := range windows {
		d := es[k] - ratio*rs[k]
		squares += d * d
	}
	unseen := max(0, 1-float64(seen)/size)
	estimate += size * math.Sqrt(unseen*squares/(windows*(windows-1)))
	return int64(math.Ceil(min(estimate, size)))
}

// regress estimates texts by the regression alone.
func (v *vocabulary) regress(texts [][]byte) float64 {
	var f features
	classes := v.classes()
	for _, t := range texts {
		f.add(t, classes)
	}
	return f.tokens(v.weights)
}

// part is text[from:to].
type part struct {
	text     []byte
	from, to int
}

// regressWindow is what the parts of a window add to the regressions of their
// texts, so that a window within a run does not count as the beginning of one.
func (v *vocabulary) regressWindow(parts []part) float64 {
	const context = 64
	var before, all features
	classes := v.classes()
	for _, p := range parts {
		from := runeStart(p.text, max(0, p.from-context))
		before.add(p.text[from:p.from], classes)
		all.add(p.text[from:p.to], classes)
	}
	return all.tokens(v.weights) - before.tokens(v.weights)
}

// sampler addresses texts as one line of bytes.
type sampler struct {
	texts [][]byte
	ends  []int // of each text on the line
	size  int
}

func newSampler(texts [][]byte) *sampler {
	s := &sampler{texts: texts, ends: make([]int, len(texts))}
	for i, t := range texts {
		s.size += len(t)
		s.ends[i] = s.size
	}
	return s
}

// window returns the parts of the texts that lie on span bytes of the line from
// at on. Where it begins or ends within a rune it does so after that rune.
func (s *sampler) window(at, span int) (parts []part) {
	i := sort.SearchInts(s.ends, at+1)
	from := at - (s.ends[i] - len(s.texts[i]))
	for ; i < len(s.texts) && span > 0; i++ {
		text := s.texts[i]
		to := min(from+span, len(text))
		span -= to - from
		from, to = runeStart(text, from), runeStart(text, to)
		if from < to {
			parts = append(parts, part{text, from, to})
		}
		from = 0
	}
	return parts
}

// runeStart returns the first place in text from at on that is not within a
// rune, as far as can be told from the three bytes there.
func runeStart(text []byte, at int) int {
	for range utf8.UTFMax - 1 {
		if at >= len(text) || utf8.RuneStart(text[at]) {
			break
		}
		at++
	}
	return at
}

// stream draws numbers that follow from the seed and the texts. It shows itself
// in nothing but the places of windows.
type stream uint64

func newStream(seed *[32]byte, texts [][]byte) *stream {
	h := binary.LittleEndian.Uint64(seed[0:])
	key := binary.LittleEndian.Uint64(seed[8:]) ^ 0x9e3779b97f4a7c15
	fold := func(x uint64) {
		hi, lo := bits.Mul64(h^x, key|1)
		h = hi ^ lo
	}
	for _, t := range texts {
		fold(uint64(len(t)) ^ binary.LittleEndian.Uint64(seed[16:]))
		for ; len(t) >= 8; t = t[8:] {
			fold(binary.LittleEndian.Uint64(t))
		}
		var tail uint64
		for _, c := range t {
			tail = tail<<8 | uint64(c)
		}
		fold(tail)
	}
	fold(binary.LittleEndian.Uint64(seed[24:]))
	s := stream(h)
	return &s
}

// below returns a number in [0, n) for n > 0: splitmix64, whose bias over so
// few values does not matter here.
func (s *stream) below(n int) int {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}
