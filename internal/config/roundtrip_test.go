package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"quotabroker/broker"
	"quotabroker/classes"
)

// same checks that what a configuration prints means the same configuration.
func same(t testing.TB, f *File) {
	t.Helper()
	text := printed(t, f)
	again, err := Parse("printed.yaml", []byte(text), nil)
	if err != nil {
		t.Fatalf("what is printed does not load: %v\n%s", err, text)
	}
	if diff := cmp.Diff(effective(f), effective(again)); diff != "" {
		t.Fatalf("what is printed means something else: %s\n%s", diff, text)
	}
	if f.Hash() != again.Hash() {
		t.Fatalf("equal configurations have hashes %s and %s", f.Hash(), again.Hash())
	}
}

func TestPrintParse(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := Default()
		f.Pools, f.Sources = map[string]*Pool{}, map[string]*Source{}
		drawNATS(r, &f.NATS)
		f.HTTP.Listen = drawAddress(r)
		f.Estimator = Estimator{drawAmount(r), classes.Portion(rapid.IntRange(1, 100).Draw(r, "quantile")) * classes.Percent, rapid.SampledFrom([]string{"o200k_base", "cl100k_base"}).Draw(r, "encoding"), drawAmount(r)}
		models := map[string]bool{}
		for range rapid.IntRange(1, 3).Draw(r, "pools") {
			p := f.pool(drawName(r))
			if p.Order == len(f.Pools)-1 {
				drawPool(r, p, models)
			}
		}
		for _, p := range f.Pools {
			for _, c := range p.Classes {
				f.Sources[drawName(r)] = &Source{Class: c.Name}
			}
			// A source of its own, so that no later draw takes away the last one.
			f.Sources["p"+fmt.Sprint(p.Order)] = &Source{Class: p.Classes[0].Name}
		}
		f.bindSources()
		same(t, f)
	})
}

func drawNATS(r *rapid.T, n *NATS) {
	n.StoreDir = rapid.SampledFrom([]string{"", "./data", "/var/lib/quota broker", "a: b #c", "null", "~", "-", "...", "{", "Ünïcode"}).Draw(r, "store_dir")
	n.Prefix = drawName(r)
	n.Listen = "localhost:" + fmt.Sprint(rapid.IntRange(0, 65535).Draw(r, "port"))
	if rapid.Bool().Draw(r, "external") {
		n.Mode = ModeExternal
		n.External.URL = "nats://a:4222,tls://b.example"
		n.External.Creds = rapid.StringMatching(`[ -~]*[a-z"'\\:#]`).Draw(r, "creds")
		n.External.TLS = TLS{CA: "ca.pem", Cert: "c.pem", Key: "k.pem"}
		n.Cluster.Routes = []string{drawAddress(r)}
	}
}

func drawPool(r *rapid.T, p *Pool, models map[string]bool) {
	p.Profile = rapid.SampledFrom(profiles).Draw(r, "profile")
	for _, m := range rapid.SliceOfN(rapid.StringMatching(`[a-z0-9/ .:-]{1,20}\*?`), 0, 3).Draw(r, "models") {
		if !models[m] {
			models[m] = true
			p.Models = append(p.Models, m)
		}
	}
	p.Limits = drawLimits(r, 1)
	p.TenantLimits = drawLimits(r, 0)
	p.Margin = drawPortion(r, 0, 50*classes.Percent)
	p.Guard = drawDuration(r, 0, time.Minute)
	p.Concurrency = rapid.IntRange(0, 1_000_000).Draw(r, "concurrency")
	p.MaxTTL = drawDuration(r, time.Second, 24*time.Hour)
	p.LeaseTTL = drawDuration(r, time.Second, p.MaxTTL)
	p.Confirm = drawDuration(r, 10*time.Millisecond, time.Minute)
	p.MaxDefer = drawDuration(r, 100*time.Millisecond, time.Hour)
	p.Claim = drawDuration(r, 10*time.Millisecond, time.Minute)
	p.Grace = drawDuration(r, p.Claim, time.Hour)
	p.Near = drawDuration(r, time.Second, time.Minute)
	p.HalfLife = drawDuration(r, time.Second, 24*time.Hour)
	p.Ageing = drawDuration(r, time.Millisecond, time.Hour)
	p.Buckets = rapid.IntRange(6, 600).Draw(r, "buckets")
	drawClasses(r, p)
	if rapid.Bool().Draw(r, "tiers") {
		drawTiers(r, p)
	}
}

func drawLimits(r *rapid.T, least int) []classes.Limit {
	var out []classes.Limit
	seen := map[string]bool{}
	for range rapid.IntRange(least, 5).Draw(r, "limits") {
		l := classes.Limit{
			Metric: rapid.SampledFrom([]classes.Metric{classes.Tokens, classes.InputTokens, classes.OutputTokens, classes.Requests}).Draw(r, "metric"),
			Amount: drawAmount(r),
			Span:   drawDuration(r, time.Second, 31*24*time.Hour),
		}
		if !seen[l.String()] {
			seen[l.String()] = true
			out = append(out, l)
		}
	}
	return out
}

func drawClasses(r *rapid.T, p *Pool) {
	p.Classes = nil
	left := classes.Whole
	for i := range rapid.IntRange(1, 6).Draw(r, "classes") {
		c := classes.Class{
			Name: fmt.Sprintf("%.28s%d", drawName(r), i), Share: drawPortion(r, 1, left/2), MaxWaiting: rapid.IntRange(1, 1_000_000).Draw(r, "max_waiting"),
			Pace: drawDuration(r, 0, time.Minute), Book: drawDuration(r, 0, time.Minute),
			MaxWait: drawDuration(r, 0, 24*time.Hour), AgeAfter: drawDuration(r, 0, time.Hour), MaxWaitingTokens: drawAmount(r),
		}
		left -= c.Share
		p.Classes = append(p.Classes, c)
	}
	p.Classes[0].Share += left
	for i := range p.Classes {
		c := &p.Classes[i]
		c.Floor = drawPortion(r, 0, c.Share)
		c.ReserveMax = drawPortion(r, 0, c.Floor)
		c.ReserveMin = drawPortion(r, 0, c.ReserveMax)
	}
}

func drawTiers(r *rapid.T, p *Pool) {
	p.Concurrency = max(1, p.Concurrency)
	share := drawPortion(r, 0, classes.Whole)
	p.TenantShare, p.Tiers = &share, nil // a name that is drawn twice is one pool
	for i := range rapid.IntRange(1, 8).Draw(r, "tiers") {
		share := drawPortion(r, 0, classes.Whole)
		p.Tiers = append(p.Tiers, broker.Tier{
			Name: fmt.Sprintf("%.30s%d", drawName(r), i), Base: rapid.Int64Range(0, 1_000_000).Draw(r, "base"),
			MaxWait: drawDuration(r, 0, 24*time.Hour), TenantShare: &share,
		})
	}
	p.Tenants = map[string]string{broker.DefaultTenant: p.Tiers[0].Name}
	for _, tenant := range rapid.SliceOfN(rapid.StringN(0, 60, 256), 0, 5).Draw(r, "tenants") {
		p.Tenants[tenant] = p.Tiers[len(p.Tiers)-1].Name
	}
}

func drawName(r *rapid.T) string { return rapid.StringMatching(`[A-Za-z0-9_-]{1,32}`).Draw(r, "name") }

func drawAddress(r *rapid.T) string {
	return rapid.SampledFrom([]string{"127.0.0.1:0", "[::1]:8180", ":80", "localhost:65535", "a-b.example:1"}).Draw(r, "address")
}

// drawAmount draws round amounts as often as others.
func drawAmount(r *rapid.T) int64 {
	n := rapid.Int64Range(0, classes.MaxAmount).Draw(r, "amount")
	round := rapid.SampledFrom([]int64{1, 100, 1000, 100_000, 1_000_000}).Draw(r, "round")
	return n / round * round
}

func drawPortion(r *rapid.T, low, high classes.Portion) classes.Portion {
	return classes.Portion(rapid.Int64Range(int64(low), int64(high)).Draw(r, "portion"))
}

func drawDuration(r *rapid.T, low, high time.Duration) time.Duration {
	d := time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(r, "duration"))
	round := rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(r, "round")
	return max(low, d.Truncate(round))
}

var expected = regexp.MustCompile(`(?m)^----$`)

// FuzzParse: whatever file and environment say, Parse ends with an error that can
// be shown or with a file that the broker takes and that survives Print.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"*.yaml", "*.txt"} {
		files, err := filepath.Glob(filepath.Join("../../testdata/config", pattern))
		if err != nil || len(files) == 0 {
			f.Fatal("there is no test data", err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			for _, part := range strings.Split(string(data), "\nparse") {
				_, input, _ := strings.Cut(expected.Split(part, 2)[0], "\n")
				f.Add([]byte(input), "QUOTABROKER_POOLS__DEFAULT__LIMITS=[1k tokens/1m]\nQUOTABROKER_HTTP__LISTEN=127.0.0.1:1")
				f.Add([]byte(input), "")
			}
		}
	}
	f.Add([]byte("http:\n  \xff: é\r\n"), "QUOTABROKER___\x88=\xff")
	f.Fuzz(func(t *testing.T, data []byte, env string) {
		holds(t, data, strings.Split(env, "\n"))
	})
}

// holds checks what must hold of any input: an error that can be shown, or a
// file that the broker takes and that survives Print.
func holds(t testing.TB, data []byte, env []string) {
	t.Helper()
	file, err := Parse("f.yaml", data, env)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) || len(e.Problems) == 0 || !utf8.ValidString(err.Error()) || strings.Contains(err.Error(), "%!") {
			t.Fatalf("not an error to show: %#v", err)
		}
		return
	}
	for _, p := range file.Pools {
		if problems := p.Validate(); len(problems) > 0 {
			t.Fatalf("the broker does not take it: %v", problems)
		}
	}
	same(t, file)
}

// TestAnyKeys puts real keys and values, right and wrong, anywhere.
func TestAnyKeys(t *testing.T) {
	root := keysOf(Default())
	rapid.Check(t, func(r *rapid.T) {
		var b strings.Builder
		writeBlock(&b, drawTree(r, root, 0), 0)
		env := []string{EnvPrefix + "POOLS__DEFAULT__LIMITS=[450k tokens/1m]"}
		for range rapid.IntRange(0, 3).Draw(r, "variables") {
			words := rapid.SliceOfN(rapid.SampledFrom(words), 1, 4).Draw(r, "path")
			env = append(env, EnvPrefix+strings.ToUpper(strings.Join(words, levels))+"="+drawText(r))
		}
		holds(t, []byte(b.String()), env)
	})
}

// words are keys, names and values of a file, and some that are none.
var words = strings.Fields(`nats http estimator pools sources gateway default interactive batch api classes limits
	margin tiers tenants share floor reserve book pace listen mode external embedded url class premium base
	1s 5m 0 10 1000 250k 70% 0.2% 1%..10% 127.0.0.1:0 nats://a:1 null ~ true [] {} - junk é`)

func drawText(r *rapid.T) string {
	return rapid.OneOf(rapid.SampledFrom(words), rapid.SampledFrom([]string{"1k tokens/1m", "5 requests/1h", "[1k tokens/1m]", "{class: batch}", "", "a: b", "[a, {b: c}"})).Draw(r, "text")
}

// drawTree draws a tree that follows the keys for the most part.
func drawTree(r *rapid.T, v value, depth int) *node {
	if rapid.IntRange(0, 9).Draw(r, "stray") == 0 || depth > 6 {
		return newScalar(drawText(r))
	}
	out := &node{kind: mapping, flow: depth > 0 && rapid.Bool().Draw(r, "flow")}
	switch u := unwrap(v).(type) {
	case section:
		for _, f := range u.fields {
			if rapid.IntRange(0, 2).Draw(r, "key") == 0 {
				out.put(f.key, place{}, drawTree(r, f.value, depth+1))
			}
		}
	case named:
		for _, name := range append(u.names(), "batch", "interactive") {
			if rapid.Bool().Draw(r, "name") {
				out.put(name, place{}, drawTree(r, u.entry(name), depth+1))
			}
		}
	default:
		if n := v.show(); n != nil && n.kind == scalar {
			return n
		}
		return &node{kind: list, items: []*node{newScalar(drawText(r))}}
	}
	return out
}
