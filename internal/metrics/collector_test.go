package metrics

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"quotabroker/internal/service"
	"quotabroker/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const namesFile = "../../testdata/metrics/names.txt"

// collectorOf shows a snapshot as it stands.
func collectorOf(counts service.Counts, statuses ...wire.Status) *Collector {
	return &Collector{
		statuses: func(context.Context) []wire.Status { return statuses },
		counts:   func() service.Counts { return counts },
		version:  "1.2.3",
	}
}

func histogram(counts ...uint64) service.Histogram {
	h := service.Histogram{Bounds: []time.Duration{time.Millisecond, time.Second}, Counts: []uint64{0, 0}, Sum: time.Second}
	copy(h.Counts, counts)
	h.Count = h.Counts[1]
	return h
}

// full is a snapshot in which every series is there.
func full() (service.Counts, wire.Status) {
	counts := service.Counts{
		Requests:  map[wire.Verb]uint64{wire.VerbAcquire: 9},
		Errors:    map[service.ErrorKey]uint64{{Verb: wire.VerbAcquire, Code: wire.CodeBadRequest}: 2},
		QueueWait: histogram(3, 4),
	}
	status := wire.Status{
		Pool:   "default",
		Limits: []wire.LimitStatus{{Limit: "tokens/60s", Configured: 1000, Quota: 980, Used: 400}},
		Classes: []wire.ClassStatus{{
			Class:   "batch",
			Amounts: []wire.ClassAmounts{{Limit: "tokens/60s", Used: 400, Share: 980, Floor: 100, Borrowed: 20}},
			Defers:  map[string]uint64{"quota": 3}, Refusals: map[string]uint64{"too_large": 1},
			OldestWaitMS:  1500,
			WaitHistogram: wire.Histogram{BoundsMS: []int64{0, 1000}, Counts: []uint64{5, 6}, Count: 7, SumMS: 2500},
		}},
		Provider: wire.ProviderStatus{State: "paused", PausedForMS: 2500, Throttled: 4},
	}
	return counts, status
}

func TestLint(t *testing.T) {
	counts, status := full()
	problems, err := testutil.CollectAndLint(collectorOf(counts, status))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// The names are an interface: dashboards and alerts are built on them.
func TestNames(t *testing.T) {
	counts, status := full()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectorOf(counts, status))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Every metric with its labels, as `go test ./internal/metrics -update` writes them.\n")
	for _, f := range families {
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		fmt.Fprintf(&b, "%s %s {%s}\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(slices.Sorted(maps.Keys(labels)), ","))
	}
	if *update {
		if err := os.WriteFile(namesFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(namesFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("the names have changed (-want +got):\n%s", d)
	}
	if len(families) != len(all) {
		t.Errorf("%d metrics are described, %d are there", len(all), len(families))
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "quotabroker_") {
			t.Errorf("%s has another prefix", f.GetName())
		}
	}
}

func TestValues(t *testing.T) {
	counts, status := full()
	want := `
# HELP quotabroker_class_borrowed What a class uses above its share.
# TYPE quotabroker_class_borrowed gauge
quotabroker_class_borrowed{class="batch",limit="tokens/60s",pool="default"} 20
# HELP quotabroker_oldest_wait_seconds How long the oldest of the waiting requests has waited.
# TYPE quotabroker_oldest_wait_seconds gauge
quotabroker_oldest_wait_seconds{class="batch",pool="default"} 1.5
# HELP quotabroker_provider_state 1 for what the provider lets the account do: ok, paused, probing or exhausted.
# TYPE quotabroker_provider_state gauge
quotabroker_provider_state{pool="default",state="exhausted"} 0
quotabroker_provider_state{pool="default",state="ok"} 0
quotabroker_provider_state{pool="default",state="paused"} 1
quotabroker_provider_state{pool="default",state="probing"} 0
# HELP quotabroker_request_errors_total Error replies, by verb and code. Deferrals and refusals are none.
# TYPE quotabroker_request_errors_total counter
quotabroker_request_errors_total{code="bad_request",verb="acquire"} 2
# HELP quotabroker_wait_seconds How long granted requests had waited since they first asked.
# TYPE quotabroker_wait_seconds histogram
quotabroker_wait_seconds_bucket{class="batch",pool="default",le="0"} 5
quotabroker_wait_seconds_bucket{class="batch",pool="default",le="1"} 6
quotabroker_wait_seconds_bucket{class="batch",pool="default",le="+Inf"} 7
quotabroker_wait_seconds_sum{class="batch",pool="default"} 2.5
quotabroker_wait_seconds_count{class="batch",pool="default"} 7
`
	err := testutil.CollectAndCompare(collectorOf(counts, status), strings.NewReader(want),
		"quotabroker_class_borrowed", "quotabroker_oldest_wait_seconds", "quotabroker_provider_state",
		"quotabroker_request_errors_total", "quotabroker_wait_seconds")
	if err != nil {
		t.Error(err)
	}
}

// OPS-03: whatever a snapshot holds, no sample is negative.
func TestNothingIsNegative(t *testing.T) {
	counts, status := full()
	status.UptimeMS, status.Classes[0].OldestWaitMS, status.Classes[0].Amounts[0].Lent = -1, -1000, -5
	counts.QueueWait.Sum = -time.Second
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectorOf(counts, status))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetGauge().GetValue() < 0 || m.GetCounter().GetValue() < 0 || m.GetHistogram().GetSampleSum() < 0 {
				t.Errorf("%s: %v", f.GetName(), m)
			}
		}
	}
}
