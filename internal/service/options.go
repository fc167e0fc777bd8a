package service

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"

	"quotabroker/broker"
	"quotabroker/wire"
)

// Options describe a [Service]. Conn, Estimate and Config are required.
type Options struct {
	Conn   *nats.Conn // the service's own; whoever made it closes it, after the service
	Config Config

	// Estimate says what a request will cost, and fills in the model where only the
	// body names it. It is called from several goroutines at once.
	Estimate func(Job, *wire.AcquireRequest) (wire.EstimateReply, *wire.Error)
	// Learn is told what a granted call really took; nil: nobody learns. It is
	// called from the loops, so it must be quick.
	Learn func(Lesson)

	Prefix   string // the first token of every subject; "": wire.DefaultPrefix
	Version  string // of the program, a semantic version; "": 0.0.0
	Instance string // what this instance is called in statuses; "": quotabroker
	Epoch    uint64 // of the first pool, larger than any of an earlier start; 0: the time in ms. Each further pool has the next

	MaxRequest int           // largest message that is read, in bytes; 0: 1 MiB
	Stall      time.Duration // a loop that is stuck for so long makes the service unwell; 0: 5 s
	DrainLimit time.Duration // how long a pool that a reload removed may end its leases; 0: 30 s
	Logger     *slog.Logger  // nil: nothing is logged
}

// Config is what [Service.Reload] may change.
type Config struct {
	Pools []broker.Config // at least one, each valid and with a name of its own
	Hash  string          // tells configurations apart, for statuses

	// Inboxes maps a source to what all its reply subjects must begin with,
	// "_INBOX.eval.". NATS lets a requester name any reply subject: without an
	// entry a source could make the broker publish to subjects that are none of
	// its business, so only reply subjects of NATS and of the broker are kept from it.
	Inboxes map[string]string
}

// Job is what an estimate is asked for.
type Job struct {
	Pool   string
	Source string
}

// Lesson is what a settlement teaches about a job.
type Lesson struct {
	Job
	Model      string
	Kind       string
	Estimated  wire.Cost
	InputRatio float64 // that the estimated input was corrected by
	Used       wire.Usage
}

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$`)

func (o *Options) check() error {
	if o.Conn == nil || o.Estimate == nil {
		return errors.New("service: Conn and Estimate are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Prefix == "" {
		o.Prefix = wire.DefaultPrefix
	}
	if o.Instance == "" {
		o.Instance = "quotabroker"
	}
	if !semver.MatchString(o.Version) {
		o.Version = "0.0.0" // what a build without a version is; micro takes no other form
	}
	if o.Epoch == 0 {
		o.Epoch = uint64(time.Now().UnixMilli())
	}
	if o.MaxRequest == 0 {
		o.MaxRequest = 1 << 20
	}
	if o.Stall == 0 {
		o.Stall = 5 * time.Second
	}
	if o.DrainLimit == 0 {
		o.DrainLimit = 30 * time.Second
	}
	return o.Config.check()
}

// check returns everything that keeps a configuration from being put in force.
func (c *Config) check() error {
	if len(c.Pools) == 0 {
		return errors.New("there are no pools")
	}
	var errs []error
	seen := map[string]bool{}
	for i := range c.Pools {
		p := &c.Pools[i]
		if seen[p.Pool] {
			errs = append(errs, fmt.Errorf("pool %s is there twice", p.Pool))
		}
		seen[p.Pool] = true
		for _, problem := range p.Validate() {
			errs = append(errs, fmt.Errorf("pool %s: %w", p.Pool, problem))
		}
	}
	return errors.Join(errs...)
}
