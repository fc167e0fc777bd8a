// Package accuracy measures estimates against what providers counted: recorded
// requests with the usage that came back.
package accuracy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Pair is one recorded request.
type Pair struct {
	Provider string          // "openai"
	API      string          // "chat.completions"
	Model    string          // that was asked for
	Request  json.RawMessage // as it was sent
	Tools    bool            // it has tools
	Media    bool            // it has images, audio or files
	Input    int64           // tokens that the provider counted, cached ones included
}

// record is a pair as it is written.
type record struct {
	Provider string          `json:"provider"`
	API      string          `json:"api"`
	Model    string          `json:"model"`
	Request  json.RawMessage `json:"request"`
	Prompt   *int64          `json:"prompt_tokens"`
	Tools    bool            `json:"has_tools"`
	Media    bool            `json:"has_media"`
	Usage    struct {
		// Anthropic's prompt_tokens are without these.
		CacheWrite int64 `json:"cache_creation_input_tokens"`
		CacheRead  int64 `json:"cache_read_input_tokens"`
	} `json:"usage"`
}

// longestLine is the largest pair that is read.
const longestLine = 64 << 20

// Read reads pairs as JSON lines: provider, api, model, request, prompt_tokens, usage
// as the provider returned it, has_tools and has_media. Other fields are ignored. The
// error names the line.
func Read(r io.Reader) ([]Pair, error) {
	var out []Pair
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		p, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, p)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errors.New("there are no pairs in it; each line must be like " + example)
	}
	return out, nil
}

const example = `{"provider":"openai","api":"chat.completions","model":"gpt-4o","request":{…},"prompt_tokens":12}`

func parse(line []byte) (Pair, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return Pair{}, fmt.Errorf("%w; it must be like %s", err, example)
	}
	switch {
	case len(r.Request) == 0 || r.Request[0] != '{':
		return Pair{}, errors.New("request is not there; it must be the body that was sent")
	case r.Prompt == nil:
		return Pair{}, errors.New("prompt_tokens is not there; it must be the input tokens that the provider counted")
	case *r.Prompt < 0:
		return Pair{}, fmt.Errorf("prompt_tokens is %d; it must be 0 or more", *r.Prompt)
	}
	p := Pair{
		Provider: r.Provider, API: r.API, Model: r.Model, Request: bytes.Clone(r.Request),
		Tools: r.Tools, Media: r.Media, Input: *r.Prompt,
	}
	if r.Provider == "anthropic" {
		p.Input += r.Usage.CacheWrite + r.Usage.CacheRead
	}
	return p, nil
}
