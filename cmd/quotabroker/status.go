package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"quotabroker/client"
	"quotabroker/wire"
)

type statusCmd struct {
	connection
	Source string `default:"status" env:"QUOTABROKER_SOURCE" help:"The source to ask as; any may read the status."`
	Format string `name:"format" short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run prints the pool's snapshot.
func (c *statusCmd) Run(ctx context.Context, s *streams) error {
	st, err := call(ctx, &c.connection, c.Source, func(ctx context.Context, cl *client.Client) (wire.Status, error) {
		return cl.Status(ctx)
	})
	if err != nil {
		return err
	}
	if c.Format == "json" {
		return printJSON(s.out, &st)
	}
	printStatus(s.out, &st)
	return nil
}

// standing is a class's part of a table.
type standing struct {
	class   string
	waiting int64
	amounts []wire.ClassAmounts
}

func classesOf(from []wire.ClassExplain) []standing {
	var out []standing
	for _, c := range from {
		out = append(out, standing{c.Class, c.WaitingRequests, c.Amounts})
	}
	return out
}

// printStandings prints a table for every limit: who uses it, and what is whose.
func printStandings(w io.Writer, limits []wire.LimitStatus, classes []standing) {
	for i, l := range limits {
		_, _ = fmt.Fprintf(w, "%s  %d of %d used (%s)%s\n", l.Limit, l.Used, l.Quota, percent(l.Used, l.Quota), margin(l))
		t := table(w)
		_, _ = fmt.Fprintln(t, "  class\tused\tshare\tfloor\treserve\tborrowed\tlent\twaiting\t")
		for _, c := range classes {
			a := c.amounts[i]
			_, _ = fmt.Fprintf(t, "  %s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", c.class, a.Used, a.Share, a.Floor, a.Reserve, a.Borrowed, a.Lent, a.Waiting)
		}
		_ = t.Flush()
		_, _ = fmt.Fprintln(w)
	}
}

func table(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// margin says how the quota comes from what is configured, where it is less.
func margin(l wire.LimitStatus) string {
	if l.Quota >= l.Configured {
		return ""
	}
	return fmt.Sprintf("; the account's %d less a margin of %s", l.Configured, percent(l.Configured-l.Quota, l.Configured))
}

func percent(part, whole int64) string {
	if whole == 0 {
		return "none"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

func printStatus(w io.Writer, st *wire.Status) {
	state := st.Provider.State
	if st.Provider.PausedForMS > 0 {
		state += fmt.Sprintf(" for %s", milliseconds(st.Provider.PausedForMS))
	}
	_, _ = fmt.Fprintf(w, "pool %s  up %s  provider %s  %s in flight  version %s  config %s\n\n", st.Pool, milliseconds(st.UptimeMS).Round(1e9), state,
		leases(st.Leases), st.Version, st.ConfigHash)
	var rows []standing
	for _, c := range st.Classes {
		rows = append(rows, standing{c.Class, c.WaitingRequests, c.Amounts})
	}
	printStandings(w, st.Limits, rows)
	t := table(w)
	_, _ = fmt.Fprintln(t, "  class\tgrants\tdefers\trefused\twaiting\toldest\twait p50\twait p95\twait p99\tin flight\t")
	for _, c := range st.Classes {
		_, _ = fmt.Fprintf(t, "  %s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%d\t\n", c.Class, c.Grants, sum(c.Defers), sum(c.Refusals),
			c.WaitingRequests, milliseconds(c.OldestWaitMS), milliseconds(c.WaitP50MS), milliseconds(c.WaitP95MS), milliseconds(c.WaitP99MS), c.LeasesInFlight)
	}
	_ = t.Flush()
	_, _ = fmt.Fprintln(w, "  oldest is how long the first in the queue has waited; the other waits are of what was granted in the last 5 to 10 minutes")
	for _, c := range st.Classes {
		if s := causes(c.Defers); s != "" {
			_, _ = fmt.Fprintf(w, "  %s deferred: %s\n", c.Class, s)
		}
		if s := causes(c.Refusals); s != "" {
			_, _ = fmt.Fprintf(w, "  %s refused: %s\n", c.Class, s)
		}
	}
	if len(st.Tenants) > 0 {
		_, _ = fmt.Fprintln(w, "\nlargest tenants of the last minutes")
		t := table(w)
		for _, tn := range st.Tenants[:min(len(st.Tenants), 10)] {
			_, _ = fmt.Fprintf(t, "  %s\t%q\t%s\t%d in flight\t\n", tn.Source, tn.Tenant, tokens(tn.Tokens), tn.LeasesInFlight)
		}
		_ = t.Flush()
	}
}

// leases counts them, as "1 lease" or "1 of 2 leases".
func leases(l wire.LeaseStatus) string {
	switch {
	case l.Concurrency > 0:
		return fmt.Sprintf("%d of %d leases", l.InFlight, l.Concurrency)
	case l.InFlight == 1:
		return "1 lease"
	}
	return fmt.Sprintf("%d leases", l.InFlight)
}

func sum(counts map[string]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func causes(counts map[string]uint64) string {
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", cause, counts[cause]))
	}
	return strings.Join(parts, ", ")
}
