package demodata

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"quotabroker/testdata"
)

// Prompt is one task of a public evaluation.
type Prompt struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// InputTokens is the o200k_base count of Text alone, without a chat's framing.
	InputTokens int64 `json:"input_tokens"`
	// ReferenceOutputTokens is the o200k_base count of the evaluation's own answer.
	ReferenceOutputTokens int64 `json:"reference_output_tokens"`
}

// HumanEval returns the 164 programming tasks of HumanEval (MIT licence).
func HumanEval() ([]Prompt, error) { return embeddedPrompts("prompts/humaneval.jsonl") }

// GSM8K returns the first 600 word problems of the GSM8K test set (MIT licence).
func GSM8K() ([]Prompt, error) { return embeddedPrompts("prompts/gsm8k.jsonl") }

func embeddedPrompts(path string) ([]Prompt, error) {
	data, err := testdata.Files.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("demodata: %w", err)
	}
	return ParsePrompts(path, bytes.NewReader(data))
}

// maxPromptBytes bounds a line of a prompt file.
const maxPromptBytes = 16 << 20

// ParsePrompts reads one JSON object a line, with exactly the fields of [Prompt].
// Name is what errors call the file.
func ParsePrompts(name string, r io.Reader) ([]Prompt, error) {
	var prompts []Prompt
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxPromptBytes)
	for n := 1; lines.Scan(); n++ {
		p, err := parsePrompt(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("demodata: %s:%d: %w", name, n, err)
		}
		prompts = append(prompts, p)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("demodata: %s:%d: %w", name, len(prompts)+1, err)
	}
	return prompts, nil
}

func parsePrompt(line []byte) (Prompt, error) {
	var p Prompt
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	switch err := d.Decode(&p); {
	case err != nil:
		return p, err
	case p.ID == "" || p.Text == "":
		return p, fmt.Errorf("id and text must not be empty")
	case p.InputTokens < 1 || p.ReferenceOutputTokens < 1:
		return p, fmt.Errorf("%s has input_tokens %d and reference_output_tokens %d; both must be at least 1", p.ID, p.InputTokens, p.ReferenceOutputTokens)
	}
	return p, nil
}
