package demodata

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"

	"quotabroker/testdata"
)

// Arrival is one recorded request.
type Arrival struct {
	ArrivalMS    int64 // since the trace's origin; never before the arrival above it
	InputTokens  int64
	OutputTokens int64
}

// AzureConversation returns 19 366 requests of a chat service at Azure, 58 minutes
// on 2023-11-16: steady, 5.5 a second, 453 k tokens a minute on average. CC-BY-4.0.
func AzureConversation() ([]Arrival, error) { return embeddedArrivals("traces/azure_conv.csv") }

// AzureCode returns 8 819 requests of a code completion service at Azure in the
// same hour: bursts of up to 67 in a second, short answers, 320 k tokens a minute
// on average and 1.3 M in the worst. CC-BY-4.0.
func AzureCode() ([]Arrival, error) { return embeddedArrivals("traces/azure_code.csv") }

// CodingAgents returns 631 calls of coding agents at work on SWE-bench, 50 minutes:
// few and large, 35 k tokens in the median, 471 k tokens a minute on average.
// CDLA-Permissive-2.0.
func CodingAgents() ([]Arrival, error) { return embeddedArrivals("traces/exgentic_agents.csv") }

func embeddedArrivals(path string) ([]Arrival, error) {
	data, err := testdata.Files.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("demodata: %w", err)
	}
	return ParseArrivals(path, bytes.NewReader(data))
}

// arrivalColumns must come first in a trace; what follows them is not read.
var arrivalColumns = [3]string{"arrival_ms", "input_tokens", "output_tokens"}

// ParseArrivals reads a CSV trace: a header that begins with arrival_ms,
// input_tokens and output_tokens, then rows in order of arrival. Name is what
// errors call the file.
func ParseArrivals(name string, r io.Reader) ([]Arrival, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	fail := func(err error) ([]Arrival, error) {
		line, _ := rows.FieldPos(0)
		return nil, fmt.Errorf("demodata: %s:%d: %w", name, line, err)
	}
	head, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("demodata: %s: no header: %w", name, err)
	}
	if len(head) < len(arrivalColumns) || [3]string(head[:3]) != arrivalColumns {
		return fail(fmt.Errorf("the header is %q; it must begin with %q", head, arrivalColumns))
	}
	var arrivals []Arrival
	for lastMS := int64(0); ; {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return arrivals, nil
		}
		if err != nil {
			return nil, fmt.Errorf("demodata: %s: %w", name, err)
		}
		a, err := parseArrival(row)
		if err != nil {
			return fail(err)
		}
		if a.ArrivalMS < lastMS {
			return fail(fmt.Errorf("arrival_ms is %d, before the %d above it", a.ArrivalMS, lastMS))
		}
		lastMS = a.ArrivalMS
		arrivals = append(arrivals, a)
	}
}

func parseArrival(row []string) (Arrival, error) {
	var v [3]int64
	for i, column := range arrivalColumns {
		n, err := strconv.ParseInt(row[i], 10, 64)
		if err != nil || n < 0 {
			return Arrival{}, fmt.Errorf("%s is %q; it must be a whole number, 0 or more", column, row[i])
		}
		v[i] = n
	}
	return Arrival{ArrivalMS: v[0], InputTokens: v[1], OutputTokens: v[2]}, nil
}
