package config

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"quotabroker/wire"
)

// check reports what cannot be honoured although every value could be read, and
// warns of what this version does not honour. It completes the pools with their
// sources.
func (r *report) check(f *File) {
	r.checkNATS(&f.NATS)
	if !r.hasPools(f) {
		if !r.anyUnreadIn("") {
			r.badPath("pools", "there are no pools; write at least pools: {default: {limits: [450k tokens/1m]}}")
		}
		return
	}
	r.checkSources(f)
	f.bindSources()
	r.checkModels(f)
	for _, p := range f.InOrder() {
		r.checkPool(f, p)
	}
}

// hasPools reports whether there are pools beside the one that is there by
// default, without limits.
func (r *report) hasPools(f *File) bool {
	if r.places["pools"] != (place{}) {
		return len(f.Pools) > 0 && !slices.Contains(r.unread, "pools")
	}
	return len(f.pool(DefaultPool).Limits) > 0
}

func (r *report) checkNATS(n *NATS) {
	if r.anyUnread("nats.mode") {
		return
	}
	switch n.Mode {
	case ModeCluster:
		r.badPath("nats.mode", "cluster mode is not in this version; nats.mode must be embedded or external")
	case ModeEmbedded:
		if !onLoopback(n.Listen) {
			r.badPath("nats.listen", "nats.listen is %s, which other machines can reach, and this version has no credentials for sources; listen on loopback, like 127.0.0.1:4222, or use mode external", quote(n.Listen))
		}
	}
	for _, key := range []struct{ name, mode string }{
		{"listen", ModeEmbedded},
		{"name", ModeCluster},
		{"cluster", ModeCluster},
		{"url", ModeExternal},
		{"creds", ModeExternal},
		{"nkey_file", ModeExternal},
		{"tls", ModeExternal},
	} {
		used := key.mode == n.Mode || key.mode == ModeEmbedded && n.Mode == ModeCluster
		if at := join("nats", key.name); !used && r.places[at] != (place{}) {
			r.warn(at, "%s is not used: nats.mode is %s", at, n.Mode)
		}
	}
	if n.StoreDir != "" {
		r.warn("nats.store_dir", "nats.store_dir is not used: this version keeps everything in memory, so a restart begins with an empty window")
	}
	if n.Mode == ModeExternal {
		r.checkExternal(n.External)
	}
}

func (r *report) checkExternal(x External) {
	if x.URL == "" && !r.anyUnreadIn("nats") {
		r.badPath("nats.url", "nats.mode is external, and nats.url is missing; write where the server is, like url: nats://nats.example:4222")
	}
	if x.Creds != "" && x.NkeyFile != "" {
		r.badPath("nats.nkey_file", "nats has both creds and nkey_file; keep one of them")
	}
	if (x.TLS.Cert == "") != (x.TLS.Key == "") && !r.anyUnread("nats.tls") {
		r.badPath("nats.tls", "nats.tls needs cert and key together; one of them is missing")
	}
}

// onLoopback reports whether only this machine can reach an address.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// checkSources drops the default sources that no pool has a class for: whoever
// names classes of his own need not name sources he does not use. Those that are
// in the file must fit.
func (r *report) checkSources(f *File) {
	fits := func(s *Source) bool {
		for _, p := range f.Pools {
			if p.hasClass(s.Class) {
				return true
			}
		}
		return false
	}
	if r.places["sources"] == (place{}) {
		for name, s := range f.Sources {
			if !fits(s) {
				delete(f.Sources, name)
			}
		}
	}
	if r.anyUnread("pools") || r.anyUnread("sources") {
		return
	}
	if len(f.Sources) == 0 {
		r.badPath("sources", "there are no sources; name where work enters and its class, like sources: {api: {class: %s}}", f.InOrder()[0].firstClass())
	}
	for _, name := range sortedKeys(f.Sources) {
		r.checkSource(f, name, fits)
	}
}

func (r *report) checkSource(f *File, name string, fits func(*Source) bool) {
	s, at := f.Sources[name], join("sources", name)
	if !wire.ValidName(name) {
		r.badPath(at, "%s is no name for a source; use 1 to 32 of A-Z, a-z, 0-9, _ and -", quote(name))
	}
	switch {
	case s.Class == "":
		r.badPath(at, "source %s has no class; write one, like %s: {class: %s}", quote(name), name, f.InOrder()[0].firstClass())
	case !fits(s):
		r.badPath(at+".class", "source %s has class %s, and no pool has such a class; %s", quote(name), quote(s.Class), oneOf(s.Class, f.classNames()))
	}
	for _, key := range []struct{ name, value string }{
		{"user", s.User}, {"password_env", s.PasswordEnv}, {"password_file", s.PasswordFile}, {"nkey", s.Nkey},
	} {
		if key.value != "" {
			r.badPath(join(at, key.name), "source %s: %s is a credential, and credentials per source are not in this version; take it out: nothing would check it", name, key.name)
		}
	}
}

// checkModels refuses a pattern that another pool has taken already.
func (r *report) checkModels(f *File) {
	taken := map[string]string{}
	for _, p := range f.InOrder() {
		for i, model := range p.Models {
			at := index(join("pools", p.Pool)+".models", i)
			if by := taken[model]; by != "" && model != "" {
				r.badPath(at, "%s draws on pool %s already; a model draws on one pool", quote(model), by)
			}
			taken[model] = p.Pool
		}
	}
}

func (r *report) checkPool(f *File, p *Pool) {
	at := join("pools", p.Pool)
	if p.Profile != ProfileGeneric {
		r.warn(at+".profile", "profile %s is charged as generic in this version: input plus output, settled both ways", p.Profile)
	}
	if len(p.Models) > 0 {
		r.warn(at+".models", "models is not used by this version: every ask names its pool")
	}
	for _, tenant := range sortedKeys(p.Tenants) {
		if len(tenant) > wire.MaxTextBytes {
			r.badPath(join(at+".tenants", tenant), "the name of a tenant has %d bytes; it may have at most %d", len(tenant), wire.MaxTextBytes)
		}
	}
	if len(p.Limits) == 0 && !r.anyUnreadIn(at) {
		r.badPath(at+".limits", "pool %s has no limits; write what the account may use, like limits: [450k tokens/1m, 5k requests/1m]", quote(p.Pool))
	}
	if len(p.Sources) == 0 && len(f.Sources) > 0 && len(p.Classes) > 0 && !r.anyUnread("") {
		r.badPath(at, "pool %s has no source: no source has one of its classes (%s)", quote(p.Pool), strings.Join(p.classNames(), ", "))
	}
	for i, l := range p.Limits {
		if path := index(at+".limits", i); l.Amount == 0 && !r.anyUnread(path) {
			r.warn(path, "pool %s is closed by its limit of %s: whatever needs any of it is refused with no_quota", quote(p.Pool), formatLimit(l))
		}
	}
	r.checkShares(p)
	for _, problem := range p.Validate() {
		path := join(at, problem.Path)
		if problem.Path == "" {
			path = at
		}
		if under(problem.Path, "sources") || problem.Path == "limits" && len(p.Limits) == 0 {
			continue // said above
		}
		if r.mayFollow(at, path) {
			continue
		}
		message := problem.Message
		if r.find(path) == (place{}) {
			message = path + ": " + message
		}
		r.badPath(path, "%s", message)
	}
}

// checkShares says that a share is missing, and nothing of what follows from it.
func (r *report) checkShares(p *Pool) {
	for _, c := range p.Classes {
		at := join("pools", p.Pool) + ".classes." + c.Name
		if path := at + ".share"; c.Share == 0 && r.places[path] == (place{}) && !r.anyUnreadIn(at) {
			r.cannot(path, r.find(at), "%s: share is missing; write one, like share: 10%%", c.Name)
		}
	}
}

func (p *Pool) classNames() []string {
	var out []string
	for _, c := range p.Classes {
		out = append(out, c.Name)
	}
	return out
}

func (p *Pool) firstClass() string {
	if len(p.Classes) == 0 {
		return "interactive"
	}
	return p.Classes[0].Name
}

// classNames returns the classes of all pools, each once.
func (f *File) classNames() []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range f.InOrder() {
		for _, name := range p.classNames() {
			if !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
		}
	}
	return out
}
