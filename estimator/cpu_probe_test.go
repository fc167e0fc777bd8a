package estimator

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"
)

func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(0, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
func TestCPUProbe(t *testing.T) {
	Warm()
	est := newEstimator(t, nil)
	h := hostile(1 << 20)
	h["prose"] = strings.Repeat("The quick brown fox jumps over the lazy dog, and nobody minds. ", 1<<20/63)
	texts := loadTexts(t)
	var sb strings.Builder
	for sb.Len() < 1<<20 {
		for _, x := range texts {
			sb.WriteString(x.Text)
		}
	}
	h["mixed real"] = sb.String()[:1<<20]
	var ks []string
	for k := range h {
		ks = append(ks, k)
	}
	sort.Strings(ks)
	pr := strings.Repeat("The quick brown fox jumps over the lazy dog, and nobody minds. ", 260)
	m := func(f func()) (time.Duration, time.Duration) {
		f()
		c := time.Hour
		w := c
		for i := 0; i < 4; i++ {
			c0, t0 := cpu(), time.Now()
			f()
			f()
			f()
			w = min(w, time.Since(t0)/3)
			c = min(c, (cpu()-c0)/3)
		}
		return c, w
	}
	c, w := m(func() { vocabularies[CL100K]().encode([]byte(pr)) })
	fmt.Printf("CPU prose16K cl encode cpu %v wall %v  %.2f MB/s\n", c, w, float64(len(pr))/c.Seconds()/1e6)
	c, w = m(func() { vocabularies[O200K]().encode([]byte(pr)) })
	fmt.Printf("CPU prose16K o2 encode cpu %v wall %v  %.2f MB/s\n", c, w, float64(len(pr))/c.Seconds()/1e6)
	for _, k := range ks {
		c1, _ := m(func() { est.Count(CL100K, h[k]) })
		c2, w2 := m(func() { est.Count(O200K, h[k]) })
		fmt.Printf("CPU 1MiB %-16s cl %v o2 %v (wall %v)\n", k, c1.Round(100*time.Microsecond), c2.Round(100*time.Microsecond), w2.Round(100*time.Microsecond))
	}
	for name, body := range map[string]string{
		"messages":      `{"model":"gpt-4o","messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"a b"},`, 1<<20/32), ",") + `]}`,
		"tokens":        `{"model":"text-embedding-3-small","input":[` + strings.TrimSuffix(strings.Repeat(`1,`, 1<<19), ",") + `]}`,
		"braces":        `{"model":"gpt-4o","messages":[` + strings.TrimSuffix(strings.Repeat(`{},`, 1<<20/3), ",") + `]}`,
		"strings":       `{"model":"text-embedding-3-small","input":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 1<<18), ",") + `]}`,
		"escapes":       `{"model":"gpt-4o","input":"` + strings.Repeat(`\u00e9`, 1<<20/6) + `"}`,
		"keys":          `{"model":"gpt-4o","messages":[{` + strings.TrimSuffix(strings.Repeat(`"content":"",`, 1<<20/13), ",") + `}]}`,
		"unknown parts": `{"model":"gpt-4o","messages":[{"content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"x"},`, 1<<20/13), ",") + `]}]}`,
		"arrays":        `{"model":"gpt-4o","input":"a","x":[` + strings.TrimSuffix(strings.Repeat(`[],`, 1<<20/3), ",") + `]}`,
		"tools":         `{"model":"gpt-4o","input":"a","tools":[` + strings.TrimSuffix(strings.Repeat(`{"a":[1]},`, 1<<20/10), ",") + `]}`,
	} {
		c, w := m(func() {
			if _, err := est.Estimate(Input{Body: json.RawMessage(body)}); err != nil {
				panic(err)
			}
		})
		fmt.Printf("CPU body 1MiB %-16s cpu %v wall %v\n", name, c.Round(100*time.Microsecond), w.Round(100*time.Microsecond))
	}
	fmt.Println("CPU done")
}
