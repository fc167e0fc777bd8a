package client

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	"quotabroker/wire"
)

// failure settles an error response, and leaves its body as it was.
func failure(resp *http.Response) Settlement {
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	resp.Body = &restored{Reader: io.MultiReader(bytes.NewReader(head), &rest{resp.Body, err}), Closer: resp.Body}
	s := Failed(resp.StatusCode, retryAfter(resp.Header, time.Now()))
	if resp.StatusCode == http.StatusPaymentRequired || saysOutOfMoney(head) {
		s.Outcome = wire.OutcomeExhausted
	}
	return s
}

// restored is a body whose beginning has been read and is given again.
type restored struct {
	io.Reader
	io.Closer
}

// rest is what follows: the error that the beginning ended with, or more.
type rest struct {
	body io.Reader
	err  error
}

func (r *rest) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return r.body.Read(p)
}

// retryAfter is how long a response says to wait; 0 where it does not. now is
// taken for a date in the response where that gives no time of its own.
func retryAfter(h http.Header, now time.Time) time.Duration {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if ms, err := strconv.ParseFloat(h.Get(name), 64); err == nil && ms > 0 {
			return span(ms, time.Millisecond)
		}
	}
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return span(seconds, time.Second)
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // the provider's clock is not ours
	}
	return max(until.Sub(now), 0)
}

// span is n units; what is no sensible wait is 0.
func span(n float64, unit time.Duration) time.Duration {
	if !(n > 0) { // NaN as well
		return 0
	}
	const most = wire.MaxDurationMS * time.Millisecond
	if n >= float64(most)/float64(unit) {
		return most
	}
	return time.Duration(n * float64(unit))
}
