package config

import (
	"cmp"
	"maps"
	"slices"

	"quotabroker/broker"
	"quotabroker/classes"
	"quotabroker/wire"
)

// File is a whole configuration. One that came from [Parse], [Load] or
// [ForLimits] is valid; treat it as read-only.
type File struct {
	NATS      NATS
	HTTP      HTTP
	Estimator Estimator
	Pools     map[string]*Pool
	Sources   map[string]*Source // where work enters

	// Warnings are sentences, each after its place, about what was read but will
	// not do what it seems to. They are no part of the effective configuration.
	Warnings []string
}

// The modes of NATS.Mode.
const (
	ModeEmbedded = "embedded" // a server inside the process
	ModeCluster  = "cluster"  // one of several such servers; not in this version
	ModeExternal = "external" // a server that runs elsewhere
)

// defaultListen is where the embedded server listens.
const defaultListen = "127.0.0.1:4222"

// NATS says where the broker answers.
type NATS struct {
	Mode     string // ModeEmbedded or ModeExternal
	Listen   string // embedded: host:port, on loopback; port 0 is any free one
	StoreDir string // "" keeps everything in memory, as this version always does
	Prefix   string // the first token of every subject
	Name     string // cluster: of this node
	External External
	Cluster  Cluster
}

// External is a NATS server that runs elsewhere, and how to be let in. It names
// files; no secret stands in it.
type External struct {
	URL      string // of the servers, with commas; required in mode external
	Creds    string // file; "": none. At most one of Creds and NkeyFile
	NkeyFile string // file; "": none
	TLS      TLS
}

// TLS names the files of a TLS connection.
type TLS struct {
	CA   string // "": the system's
	Cert string // "": none; together with Key
	Key  string
}

// Cluster is how the servers of several brokers find each other. This version
// reads it and refuses to run it.
type Cluster struct {
	Name       string
	Listen     string
	Routes     []string
	SecretFile string
}

// HTTP says where metrics and health are served.
type HTTP struct {
	Listen string // host:port; port 0 is any free one
}

// Estimator says what the estimator takes where it knows nothing better.
type Estimator struct {
	DefaultOutput    int64           // output tokens of a request without a limit, before anything was learned
	OutputQuantile   classes.Portion // part of past outputs that is reserved for, once learned; whole per cents
	FallbackEncoding string          // for models that are not known: o200k_base or cl100k_base
	ImageTokens      int64           // input tokens of an image that says nothing of its size
}

// Pool is one account's quota as the file describes it.
type Pool struct {
	broker.Config // with the sources whose class the pool has

	Order   int      // of the pool in the file, from 0
	Models  []string // that draw on it; with a * at the end: all that begin so. This version has no use for them
	Profile string   // how the provider charges; this version charges all as generic
}

// Source is one place where work enters. The credentials name what the source
// shows to be let in; this version refuses a file that has any.
type Source struct {
	Class        string
	User         string
	PasswordEnv  string // the variable that holds the password
	PasswordFile string // the file that holds the password
	Nkey         string // a public key
}

// ProfileGeneric charges input plus output, settled both ways. It is the profile
// that this version charges every pool by.
const ProfileGeneric = "generic"

// profiles are those a pool may name.
var profiles = []string{ProfileGeneric, "openai", "azure", "anthropic", "gemini", "bedrock", "groq", "mistral"}

// DefaultPool is the name of the pool that a configuration without a file has.
const DefaultPool = "default"

// Default returns the configuration of an empty file: every key at its default,
// and one pool, default. It is not valid, since the pool has no limits yet.
func Default() *File {
	f := &File{
		NATS:      NATS{Mode: ModeEmbedded, Listen: defaultListen, Prefix: wire.DefaultPrefix},
		HTTP:      HTTP{Listen: "127.0.0.1:8180"},
		Estimator: Estimator{DefaultOutput: 1024, OutputQuantile: 85 * classes.Percent, FallbackEncoding: "o200k_base", ImageTokens: 1100},
		Pools:     map[string]*Pool{},
		Sources:   map[string]*Source{},
	}
	f.pool(DefaultPool)
	for name, class := range classes.DefaultSources() {
		f.Sources[name] = &Source{Class: class}
	}
	f.bindSources()
	return f
}

// pool returns a pool of the file, made with its defaults where it is not there.
func (f *File) pool(name string) *Pool {
	if p := f.Pools[name]; p != nil {
		return p
	}
	p := &Pool{Config: broker.DefaultConfig(), Order: len(f.Pools), Profile: ProfileGeneric}
	p.Pool = name
	p.Sources = map[string]string{}
	for i := range p.Classes {
		p.Classes[i].MaxWaiting = classes.DefaultMaxWaiting
	}
	f.Pools[name] = p
	return p
}

// source returns a source of the file, made where it is not there.
func (f *File) source(name string) *Source {
	if f.Sources[name] == nil {
		f.Sources[name] = &Source{}
	}
	return f.Sources[name]
}

// InOrder returns the pools in the order of the file.
func (f *File) InOrder() []*Pool {
	return slices.SortedFunc(maps.Values(f.Pools), func(a, b *Pool) int { return cmp.Compare(a.Order, b.Order) })
}

// bindSources gives every pool the sources whose class it has.
func (f *File) bindSources() {
	for _, p := range f.Pools {
		clear(p.Sources)
		for name, s := range f.Sources {
			if p.hasClass(s.Class) {
				p.Sources[name] = s.Class
			}
		}
	}
}

func (p *Pool) hasClass(name string) bool {
	return slices.ContainsFunc(p.Classes, func(c classes.Class) bool { return c.Name == name })
}
