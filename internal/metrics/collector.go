package metrics

import (
	"context"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabroker/internal/service"
	"quotabroker/wire"
)

// scrapeTime is how long the pools may take to give their snapshots.
const scrapeTime = 2 * time.Second

// Collector is a [prometheus.Collector] over the snapshots of a service.
type Collector struct {
	statuses func(context.Context) []wire.Status
	counts   func() service.Counts
	version  string
}

// NewCollector returns the collector of a service of this version.
func NewCollector(s *service.Service, version string) *Collector {
	return &Collector{statuses: s.Statuses, counts: s.Counts, version: version}
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range all {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	s := scrape{out}
	s.gauge(buildInfo, 1, c.version, runtime.Version())
	counts := c.counts()
	s.shell(&counts)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	for _, status := range c.statuses(ctx) {
		s.pool(&status)
		for i := range status.Classes {
			s.class(status.Pool, &status.Classes[i])
		}
	}
}

// scrape writes the samples of one scrape.
type scrape struct{ out chan<- prometheus.Metric }

func (s scrape) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, max(v, 0), labels...)
}

func (s scrape) amount(d *prometheus.Desc, v int64, labels ...string) {
	s.gauge(d, float64(v), labels...)
}

func (s scrape) millis(d *prometheus.Desc, v int64, labels ...string) {
	s.gauge(d, float64(v)/1000, labels...)
}

func (s scrape) truth(d *prometheus.Desc, is bool, labels ...string) {
	v := 0.0
	if is {
		v = 1
	}
	s.gauge(d, v, labels...)
}

func (s scrape) count(d *prometheus.Desc, v uint64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func (s scrape) shell(c *service.Counts) {
	for _, v := range wire.Verbs() {
		s.count(requests, c.Requests[v], string(v))
	}
	for key, n := range c.Errors {
		s.count(requestErrors, n, string(key.Verb), string(key.Code))
	}
	buckets := map[float64]uint64{}
	for i, bound := range c.QueueWait.Bounds {
		buckets[bound.Seconds()] = c.QueueWait.Counts[i]
	}
	s.out <- prometheus.MustNewConstHistogram(queueWait, c.QueueWait.Count, max(0, c.QueueWait.Sum.Seconds()), buckets)
	s.count(confirmed, c.Confirmed)
	s.count(undelivered, c.Abandoned)
	s.count(stale, c.StaleDropped)
	s.count(unknownModel, c.UnknownModels)
	s.count(noReply, c.NoReply)
	s.count(misdirected, c.Misdirected)
	s.count(unpublished, c.Unpublished)
	s.count(overflows, c.Overflows)
	s.count(panics, c.Panics)
	s.count(groups, c.Groups)
	s.count(decisions, c.Decisions)
	s.count(reloads, c.Reloads)
	s.count(reloadFailures, c.ReloadsFailed)
	s.truth(reloadFailed, c.ReloadFailed)
}

func (s scrape) pool(p *wire.Status) {
	s.truth(leader, true, p.Pool)
	s.truth(draining, p.Draining, p.Pool)
	s.millis(uptime, p.UptimeMS, p.Pool)
	for _, l := range p.Limits {
		s.amount(limitConfigured, l.Configured, p.Pool, l.Limit)
		s.amount(limitQuota, l.Quota, p.Pool, l.Limit)
		s.amount(limitUsed, l.Used, p.Pool, l.Limit)
		s.amount(limitLevel, l.Level, p.Pool, l.Limit)
	}
	s.amount(unconfirmed, p.Leases.Unconfirmed, p.Pool)
	s.amount(remembered, p.Leases.Remembered, p.Pool)
	for _, state := range providerStates {
		s.truth(providerState, p.Provider.State == state, p.Pool, state)
	}
	s.millis(providerPaused, p.Provider.PausedForMS, p.Pool)
	s.count(providerRefusals, p.Provider.Throttled, p.Pool, "throttled")
	s.count(providerRefusals, p.Provider.Overloaded, p.Pool, "overloaded")
	s.count(providerRefusals, p.Provider.Exhausted, p.Pool, "exhausted")
}

func (s scrape) class(pool string, c *wire.ClassStatus) {
	for _, a := range c.Amounts {
		s.amount(classUsed, a.Used, pool, c.Class, a.Limit)
		s.amount(classShare, a.Share, pool, c.Class, a.Limit)
		s.amount(classFloor, a.Floor, pool, c.Class, a.Limit)
		s.amount(classReserve, a.Reserve, pool, c.Class, a.Limit)
		s.amount(classProtected, a.Protected, pool, c.Class, a.Limit)
		s.amount(classBorrowed, a.Borrowed, pool, c.Class, a.Limit)
		s.amount(classLent, a.Lent, pool, c.Class, a.Limit)
	}
	s.amount(waitingRequests, c.WaitingRequests, pool, c.Class)
	s.amount(waitingTokens, c.WaitingTokens, pool, c.Class)
	s.amount(parkedRequests, c.ParkedRequests, pool, c.Class)
	s.amount(lateRequests, c.LateRequests, pool, c.Class)
	s.millis(oldestWait, c.OldestWaitMS, pool, c.Class)
	s.amount(inFlight, c.LeasesInFlight, pool, c.Class)
	s.count(asks, c.Asks, pool, c.Class)
	s.count(grants, c.Grants, pool, c.Class)
	for cause := wire.CauseNone + 1; int(cause) < wire.NumCauses; cause++ {
		if n := c.Defers[cause.String()]; n > 0 || defers(cause) {
			s.count(deferrals, n, pool, c.Class, cause.String())
		}
		if n := c.Refusals[cause.String()]; n > 0 || !defers(cause) || cause == wire.CauseTenantLimit {
			s.count(refusals, n, pool, c.Class, cause.String())
		}
	}
	s.count(grantedTokens, c.GrantedTokens, pool, c.Class)
	s.count(refundedTokens, c.RefundedTokens, pool, c.Class)
	s.count(overrunTokens, c.OverrunTokens, pool, c.Class)
	s.count(abandoned, c.Abandoned, pool, c.Class)
	s.count(expired, c.Expired, pool, c.Class)
	s.count(cancelled, c.Cancelled, pool, c.Class)
	s.count(vanished, c.Vanished, pool, c.Class)
	buckets := map[float64]uint64{}
	for i, bound := range c.WaitHistogram.BoundsMS {
		buckets[float64(bound)/1000] = c.WaitHistogram.Counts[i]
	}
	s.out <- prometheus.MustNewConstHistogram(wait, c.WaitHistogram.Count, float64(c.WaitHistogram.SumMS)/1000, buckets, pool, c.Class)
}

// defers reports whether a cause stands on deferrals, so that its series is there
// before it first happens, as a rate needs it.
func defers(c wire.Cause) bool { return c <= wire.CauseProviderPause }

var providerStates = [...]string{"ok", "paused", "probing", "exhausted"}
