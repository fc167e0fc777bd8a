package estimator

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sort"
	"unicode/utf8"
)

const (
	windows     = 12    // sampled places of a text that is too long to count
	windowBytes = 1024  // counted at each of them, at most
	windowWork  = 7_500 // the same in work
	alignBytes  = 128   // how far a window looks for a boundary to begin at
)

// sampleTokens estimates the tokens of texts from windows at places that follow
// from seed and the texts, but cannot be guessed without the seed: one window in
// each twelfth, at a random offset. With e and r a window's exact count and its
// regression, both per byte, and R the regression of everything, V bytes, it
// takes the larger of
//
//	R · Σe/Σr             right where the regression is wrong everywhere by one factor
//	R + V · mean(e-r)     right where it is wrong in some places only
//
// and adds one standard error of the windows, so that it errs high. It never
// answers more than one token a byte.
func (v *vocabulary) sampleTokens(texts [][]byte, seed *[32]byte) (tokens int64, work int) {
	s := newSampler(texts)
	draw := newStream(seed, texts)
	var es, rs [windows]float64
	var sumE, sumR float64
	stride := s.size / windows
	span := min(windowBytes, stride)
	var seen int
	for k := range windows {
		parts, cost := s.window(k*stride+draw.below(stride-span+1), span)
		bytes := 0
		for _, p := range parts {
			n, _ := v.countAll(p.text[p.from:p.to])
			es[k] += float64(n)
			rs[k] += v.regressPart(p)
			bytes += p.to - p.from
		}
		es[k] /= float64(max(bytes, 1))
		rs[k] /= float64(max(bytes, 1))
		sumE, sumR = sumE+es[k], sumR+rs[k]
		seen, work = seen+bytes, work+cost
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
	return int64(math.Ceil(min(estimate, size))), work
}

// regress estimates texts by the regression alone.
func (v *vocabulary) regress(texts [][]byte) float64 {
	var f features
	for _, t := range texts {
		f.add(t, v.classes)
	}
	return f.tokens(v.weights)
}

// part is text[from:to].
type part struct {
	text     []byte
	from, to int
}

// regressPart is what a part adds to the regression of its text, so that a
// window within a run does not count as the beginning of one.
func (v *vocabulary) regressPart(p part) float64 {
	const context = 64
	from := max(0, p.from-context)
	for from < p.from && !utf8.RuneStart(p.text[from]) {
		from++
	}
	var before, all features
	before.add(p.text[from:p.from], v.classes)
	all.add(p.text[from:p.to], v.classes)
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
// at on, or fewer where they would be too much work. The beginning is moved on
// to the next boundary where one is near.
func (s *sampler) window(at, span int) (parts []part, work int) {
	i := sort.SearchInts(s.ends, at+1)
	from := at - (s.ends[i] - len(s.texts[i]))
	for ; i < len(s.texts) && span > 0 && work < windowWork-callWork; i++ {
		text := s.texts[i]
		from = align(text, from)
		n, cost := prefix(text[from:], span, windowWork-callWork-work)
		if n > 0 {
			parts = append(parts, part{text, from, from + n})
			span, work = span-n, work+cost+callWork
		}
		if from+n < len(text) {
			break
		}
		from = 0
	}
	return parts, work
}

// align moves a place in text on to the next boundary, or to the next rune if
// there is no boundary near.
func align(text []byte, at int) int {
	if at == 0 {
		return 0
	}
	for back := 1; back < utf8.UTFMax && at < len(text) && !utf8.RuneStart(text[at]); back++ {
		at++
	}
	if n, _ := stretch(text[at:min(at+alignBytes, len(text))]); n < alignBytes {
		at += n
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
