package mockprovider

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
)

type embeddingsBody struct {
	common
	Input          embeddingInput `json:"input"`
	Dimensions     int            `json:"dimensions"` // 0: defaultDimensions
	EncodingFormat string         `json:"encoding_format"`
}

// embeddingInput is a string, a list of strings, a list of token ids, or a list of
// such lists.
type embeddingInput struct {
	texts  []string
	tokens []int64 // lengths of the inputs given as token ids
}

// UnmarshalJSON accepts the four forms.
func (in *embeddingInput) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		in.texts = []string{one}
		return nil
	}
	if json.Unmarshal(data, &in.texts) == nil {
		return nil
	}
	in.texts = nil
	var ids []int64
	if json.Unmarshal(data, &ids) == nil {
		in.tokens = []int64{int64(len(ids))}
		return nil
	}
	var lists [][]int64
	if err := json.Unmarshal(data, &lists); err != nil {
		return fmt.Errorf("input is neither text nor token ids: %w", err)
	}
	for _, l := range lists {
		in.tokens = append(in.tokens, int64(len(l)))
	}
	return nil
}

func (s *Server) parseEmbeddings(body []byte) (*Request, *apiError) {
	var b embeddingsBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, badJSON(err)
	}
	inputs := len(b.Input.texts) + len(b.Input.tokens)
	if inputs == 0 {
		return nil, badParam("input", "Missing required parameter: 'input'.")
	}
	if b.Dimensions < 0 || b.Dimensions > maxDimensions {
		return nil, badParam("dimensions", fmt.Sprintf("Invalid 'dimensions': expected a value from 1 to %d, but got %d instead.", maxDimensions, b.Dimensions))
	}
	c := s.counting(Embeddings)
	c.ask.Messages = int64(inputs)
	for _, t := range b.Input.texts {
		c.text(t)
	}
	for _, n := range b.Input.tokens {
		c.ask.InputTokens += n
		c.ask.TextChars += 4 * n
	}
	r, bad := s.request(b.common, c, nil, "")
	if bad != nil {
		return nil, bad
	}
	r.Stream, r.outputTokens = false, 0
	r.inputs, r.dimensions, r.base64 = inputs, b.Dimensions, b.EncodingFormat == "base64"
	if r.dimensions == 0 {
		r.dimensions = defaultDimensions
	}
	return r, nil
}

// embeddingVector is a unit vector: the same for every input.
func embeddingVector(dimensions int) []float32 {
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = float32(1 / math.Sqrt(float64(dimensions)))
	}
	return v
}

func encodeVector(v []float32) string {
	raw := make([]byte, 0, 4*len(v))
	for _, f := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// answerEmbeddings writes one vector an input. There is no output to wait for but
// the first token's delay.
func (x *exchange) answerEmbeddings(w http.ResponseWriter) error {
	if err := x.waitFor(0); err != nil {
		return err
	}
	x.end(nil)
	type item struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	vector := embeddingVector(x.req.dimensions)
	var embedding any = vector
	if x.req.base64 {
		embedding = encodeVector(vector)
	}
	data := make([]item, x.req.inputs)
	for i := range data {
		data[i] = item{Object: "embedding", Index: i, Embedding: embedding}
	}
	return writeJSON(w, http.StatusOK, map[string]any{
		"object": "list", "model": x.req.Model, "data": data,
		"usage": map[string]int64{"prompt_tokens": x.req.Ask.InputTokens, "total_tokens": x.req.Ask.InputTokens},
	})
}
