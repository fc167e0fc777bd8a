package metrics

import "github.com/prometheus/client_golang/prometheus"

// all is every description, in the order of this file.
var all []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("quotabroker_"+name, help, labels, nil)
	all = append(all, d)
	return d
}

// The process.
var (
	buildInfo      = describe("build_info", "1, with what was built.", "version", "goversion")
	reloads        = describe("config_reloads_total", "Configurations that were put in force while the broker ran.")
	reloadFailures = describe("config_reload_failures_total", "Configurations that were refused; the old one stayed in force.")
	reloadFailed   = describe("config_reload_failed", "1 if the last reload was refused.")
	panics         = describe("panics_total", "Bugs that were caught.")
)

// Messages, by verb where they had one.
var (
	requests      = describe("requests_total", "Requests that arrived, by verb.", "verb")
	requestErrors = describe("request_errors_total", "Error replies, by verb and code. Deferrals and refusals are none.", "verb", "code")
	queueWait     = describe("queue_wait_seconds", "How long requests were in the broker's own queues before they were decided.")
	decisions     = describe("decisions_total", "Requests and receipts that were decided.")
	groups        = describe("decision_groups_total", "Groups of decisions whose answers left together.")
	stale         = describe("stale_dropped_total", "Asks whose own deadline passed in the broker's own queues: they were not decided.")
	unknownModel  = describe("unknown_model_total", "Requests whose model has no known tokenizer.")
	noReply       = describe("no_reply_total", "Messages without a reply subject: they were dropped.")
	misdirected   = describe("misdirected_total", "Messages whose reply subject is not their source's to name: they were dropped.")
	unpublished   = describe("unpublished_total", "Answers that could not be published.")
	overflows     = describe("overflows_total", "Times that messages came faster than they were read, and some were lost.")
	confirmed     = describe("confirmed_grants_total", "Grants that their producer confirmed.")
	undelivered   = describe("undelivered_grants_total", "Grants that reached nobody, as NATS says, or could not be published. They were taken back.")
)

// A pool.
var (
	leader           = describe("leader", "1 if this instance grants for the pool.", "pool")
	draining         = describe("draining", "1 if the pool is going away: it refuses all that asks.", "pool")
	uptime           = describe("uptime_seconds", "How long this instance has granted for the pool.", "pool")
	limitConfigured  = describe("limit_configured", "A limit as configured, in what it limits.", "pool", "limit")
	limitQuota       = describe("limit_quota", "What is given out of a limit: configured less margin, lowered by what the provider said.", "pool", "limit")
	limitUsed        = describe("limit_used", "What is charged in a limit's window.", "pool", "limit")
	limitLevel       = describe("limit_level", "How far the account ran ahead of its level rate.", "pool", "limit")
	unconfirmed      = describe("unconfirmed_leases", "Leases whose producer has not confirmed yet.", "pool")
	remembered       = describe("remembered_leases", "Leases that ended and are kept for late settlements.", "pool")
	providerState    = describe("provider_state", "1 for what the provider lets the account do: ok, paused, probing or exhausted.", "pool", "state")
	providerPaused   = describe("provider_paused_seconds", "How long the provider's pause still lasts.", "pool")
	providerRefusals = describe("provider_refusals_total", "Refusals of the provider that producers reported.", "pool", "cause")
)

// A class on a limit, in what the limit limits.
var (
	classUsed      = describe("class_used", "What a class has charged in the window.", "pool", "class", "limit")
	classShare     = describe("class_share", "What a class gets under full contention.", "pool", "class", "limit")
	classFloor     = describe("class_floor", "What a class gets within one window whatever others do.", "pool", "class", "limit")
	classReserve   = describe("class_reserve", "The part of the floor that is never lent, as learned.", "pool", "class", "limit")
	classProtected = describe("class_protected", "What borrowers may not touch, in use included.", "pool", "class", "limit")
	classBorrowed  = describe("class_borrowed", "What a class uses above its share.", "pool", "class", "limit")
	classLent      = describe("class_lent", "What others use of a class's share.", "pool", "class", "limit")
)

// A class.
var (
	waitingRequests = describe("waiting_requests", "Requests that wait and count: neither parked nor late.", "pool", "class")
	waitingTokens   = describe("waiting_tokens", "Tokens that those requests want.", "pool", "class")
	parkedRequests  = describe("parked_requests", "Requests that wait for their tenant's own cap.", "pool", "class")
	lateRequests    = describe("late_requests", "Deferred requests that did not come back when they were told to.", "pool", "class")
	oldestWait      = describe("oldest_wait_seconds", "How long the oldest of the waiting requests has waited.", "pool", "class")
	wait            = describe("wait_seconds", "How long granted requests had waited since they first asked.", "pool", "class")
	inFlight        = describe("in_flight_leases", "Leases in flight.", "pool", "class")
	asks            = describe("asks_total", "Acquires, asked again included.", "pool", "class")
	grants          = describe("grants_total", "Leases granted.", "pool", "class")
	deferrals       = describe("defers_total", "Deferrals, by cause.", "pool", "class", "cause")
	refusals        = describe("refusals_total", "Refusals, by cause.", "pool", "class", "cause")
	grantedTokens   = describe("granted_tokens_total", "Tokens charged at grants.", "pool", "class")
	refundedTokens  = describe("refunded_tokens_total", "Tokens given back: granted and not used.", "pool", "class")
	overrunTokens   = describe("overrun_tokens_total", "Tokens used above what was granted.", "pool", "class")
	abandoned       = describe("abandoned_leases_total", "Leases taken back, because the grant reached nobody or was not confirmed.", "pool", "class")
	expired         = describe("expired_leases_total", "Leases that were neither settled nor renewed in time.", "pool", "class")
	cancelled       = describe("cancelled_total", "Waiting requests and leases that their producer took back.", "pool", "class")
	vanished        = describe("vanished_tickets_total", "Deferred requests that never came back.", "pool", "class")
)
