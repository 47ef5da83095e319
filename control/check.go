package control

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/egress"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// Bounds of what is declared; exceeding one is errs.Invalid, or errs.TooLarge for sizes.
const (
	maxInit     = 100
	maxLine     = 64 << 10
	maxVolumes  = 30
	maxEnv      = api.MaxArgs // bytes of names and values together
	maxLabels   = 64
	maxSecrets  = 100
	maxRules    = 1000
	maxSeconds  = 10 * 365 * 24 * 3600
	maxText     = 1024 // bytes of a name that isn't a label
	maxMemory   = 1 << 42
	maxLabelLen = 256
)

// allow asks whether the caller may.
func (c *Control) allow(ctx context.Context, who *access.Caller, v access.Verb, t access.Thing) error {
	return c.o.Guard.Check(ctx, who, v, t)
}

func ownerOf(who *access.Caller) string {
	if who == nil {
		return ""
	}
	return who.Principal.Name
}

func invalid(op, thing, format string, a ...any) error {
	return errs.Msg(errs.Invalid, op, thing, fmt.Sprintf(format, a...))
}

// checkName holds names to DNS labels.
func checkName(op, kind, name string) error {
	ok := len(name) >= 1 && len(name) <= 63 && name[0] != '-' && name[len(name)-1] != '-'
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}
	if !ok {
		return invalid(op, short(name), "the name of a %s is 1 to 63 of a-z, 0-9 and '-', with no '-' at either end", kind)
	}
	return nil
}

// checkSandboxName also refuses what could be taken for an id.
func checkSandboxName(op, name string) error {
	if err := checkName(op, "sandbox", name); err != nil {
		return err
	}
	if _, err := uuid.Parse(name); err == nil {
		return invalid(op, name, "the name of a sandbox mustn't look like an id")
	}
	return nil
}

func short(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

func checkLabels(op string, l api.Labels) error {
	if len(l) > maxLabels {
		return invalid(op, "", "more than %d labels", maxLabels)
	}
	for k, v := range l {
		if k == "" || len(k) > maxLabelLen || len(v) > maxLabelLen || strings.ContainsAny(k, "=\x00\n") || strings.ContainsAny(v, "\x00\n") {
			return invalid(op, short(k), "a label's name is 1 to %d bytes without '=', its value at most as long; neither has line breaks", maxLabelLen)
		}
	}
	return nil
}

func checkEnv(op string, env map[string]string) error {
	n := 0
	for k, v := range env {
		if !envName(k) {
			return invalid(op, short(k), "the name of a variable is letters, digits and '_', and doesn't begin with a digit")
		}
		if strings.ContainsRune(v, 0) {
			return invalid(op, k, "the value has a zero byte")
		}
		n += len(k) + len(v) + 2
	}
	if n > maxEnv {
		return errs.Msg(errs.TooLarge, op, "environment", fmt.Sprintf("%d bytes exceed the limit of %d", n, maxEnv))
	}
	return nil
}

func envName(k string) bool {
	for i := range len(k) {
		c := k[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return k != ""
}

func checkLease(op string, l *api.Lease) error {
	if l == nil {
		return nil
	}
	for name, v := range map[string]int64{"duration": l.Duration, "extend": l.Extend, "maxAge": l.MaxAge, "sleep": l.Sleep, "retention": l.Retention} {
		if v < 0 || v > maxSeconds {
			return invalid(op, "lease", "%s is %d seconds: want 0 to %d", name, v, maxSeconds)
		}
	}
	if l.OnExpiry != "" && l.OnExpiry != api.Hibernate && l.OnExpiry != api.End {
		return invalid(op, "lease", "onExpiry is %q: want %s or %s", short(l.OnExpiry), api.Hibernate, api.End)
	}
	switch l.Mode {
	case "", api.Sliding, api.Fixed:
	default:
		return invalid(op, "lease", "mode is %q: want %s or %s", short(l.Mode), api.Sliding, api.Fixed)
	}
	switch l.Wake {
	case "", api.WakeOnUse, api.WakeOnResume:
	default:
		return invalid(op, "lease", "wake is %q: want %s or %s", short(l.Wake), api.WakeOnUse, api.WakeOnResume)
	}
	return nil
}

func checkVisibility(op, v string) error {
	switch v {
	case "", api.Private, api.Team, api.All:
		return nil
	}
	return invalid(op, "visibility", "%q: want %s, %s or %s", short(v), api.Private, api.Team, api.All)
}

// rules are a policy's, as package egress has them.
func rules(p api.NetworkPolicy) []string {
	if p.Egress != "allow" {
		return p.Allow
	}
	out := append([]string{"*"}, p.Allow...)
	for _, r := range p.Deny {
		out = append(out, "!"+r)
	}
	return out
}

func checkNetwork(op string, p api.NetworkPolicy) error {
	if p.Egress != "" && p.Egress != "deny" && p.Egress != "allow" {
		return invalid(op, "network", "egress is %q: want deny or allow", short(p.Egress))
	}
	if len(p.Allow)+len(p.Deny) > maxRules {
		return invalid(op, "network", "more than %d rules", maxRules)
	}
	for _, r := range append(slices.Clone(p.Allow), p.Deny...) {
		if strings.HasPrefix(strings.TrimSpace(r), "!") {
			return invalid(op, "network", "%q isn't a rule", short(r))
		}
		if _, err := egress.Parse([]string{r}); err != nil {
			return err
		}
	}
	return nil
}

// within is errs.Denied unless a policy allows nothing that another doesn't.
func within(op string, child, parent api.NetworkPolicy) error {
	c, err := egress.Parse(rules(child))
	if err != nil {
		return err
	}
	p, err := egress.Parse(rules(parent))
	if err != nil {
		return err
	}
	if rule, ok := p.Covers(c); !ok {
		return errs.Msg(errs.Denied, op, rule, "the network policy of what it comes from doesn't allow that").
			WithHint("a sandbox may connect to what its template and its parent may, or less")
	}
	return nil
}

func checkSecrets(op string, list []api.SecretUse) error {
	if len(list) > maxSecrets {
		return invalid(op, "secrets", "more than %d", maxSecrets)
	}
	return access.CheckUses(list)
}

// checkSpec refuses what no node could build.
func checkSpec(op string, s *api.TemplateSpec) error {
	switch s.Engine {
	case "", api.Userspace, api.OCI, api.MicroVM:
	default:
		return invalid(op, "engine", "%q: want %s, %s or %s", short(s.Engine), api.Userspace, api.OCI, api.MicroVM)
	}
	switch s.Language {
	case "", api.Shell, api.Python, api.JavaScript:
	default:
		return invalid(op, "language", "%q: want %s, %s or %s", short(s.Language), api.Shell, api.Python, api.JavaScript)
	}
	if len(s.Init) > maxInit {
		return invalid(op, "init", "more than %d lines", maxInit)
	}
	for _, l := range s.Init {
		if len(l) > maxLine || strings.ContainsRune(l, 0) {
			return invalid(op, "init", "a line has a zero byte or more than %d bytes", maxLine)
		}
	}
	if s.Dir != "" && (!path.IsAbs(s.Dir) || strings.ContainsRune(s.Dir, 0) || len(s.Dir) > 4096) {
		return invalid(op, "dir", "%q isn't an absolute path", short(s.Dir))
	}
	r := s.Resources
	if r.CPU < 0 || r.CPU > 1024 || r.Memory < 0 || r.Memory > maxMemory || r.Disk < 0 || r.Processes < 0 || r.Processes > 1<<22 {
		return invalid(op, "resources", "out of range")
	}
	if err := errorsFirst(checkRates(op, s), checkMachine(op, s)); err != nil {
		return err
	}
	for _, m := range s.Mounts {
		if m != "private" && m != "shared" && m != "public" {
			return invalid(op, "mounts", "%q: want private, shared or public", short(m))
		}
	}
	for _, err := range []error{checkEnv(op, s.Env), checkNetwork(op, s.Network), checkLease(op, &s.Lease), checkVolumes(op, s.Volumes)} {
		if err != nil {
			return err
		}
	}
	return nil
}

// What a virtual machine can be, as package engine/microvm has it.
const (
	minMachine        = 64 << 20
	maxMachine        = 64 << 30
	maxMachineCPUs    = 32
	maxMachineVolumes = 8
)

// checkMachine refuses what no machine could be before one is built.
func checkMachine(op string, s *api.TemplateSpec) error {
	if s.Engine != api.MicroVM {
		return nil
	}
	r := s.Resources
	switch {
	case r.Memory != 0 && (r.Memory < minMachine || r.Memory > maxMachine):
		return invalid(op, "resources.memory", "%d bytes: a microVM has 64Mi to 64Gi of memory, or the node's default without", r.Memory)
	case r.CPU > maxMachineCPUs:
		return invalid(op, "resources.cpu", "%g: a microVM has at most %d processors", r.CPU, maxMachineCPUs)
	}
	volumes := len(s.Volumes) + len(s.Mounts)
	if !slices.ContainsFunc(s.Volumes, func(v api.Volume) bool {
		return path.Clean(v.Path) == workspace || v.Path == "" && v.Name == "workspace"
	}) {
		volumes++ // see plan
	}
	if volumes > maxMachineVolumes {
		return errs.Msg(errs.Limit, op, "volumes", fmt.Sprintf("a microVM has at most %d volumes, mounts and the one at %s among them; these are %d", maxMachineVolumes, workspace, volumes)).
			WithHint("directories of one volume take no more room than one")
	}
	return nil
}

// Bounds of a rate. What is slower couldn't do a single read within what others wait for.
const (
	minBytesRate = 4 << 10
	maxRate      = 1 << 40
)

// checkRates refuses rates that can't be, and those of the engine that every service has: other engines are their nodes' to judge.
func checkRates(op string, s *api.TemplateSpec) error {
	for _, one := range []struct {
		name string
		r    api.Rate
	}{{"diskRate", s.Resources.DiskRate}, {"networkInRate", s.Resources.NetworkInRate}, {"networkOutRate", s.Resources.NetworkOutRate}} {
		at := func(field string) string { return "resources." + one.name + "." + field }
		for _, f := range []struct {
			name     string
			v, least int64
		}{{"bytesPerSecond", one.r.BytesPerSecond, minBytesRate}, {"operationsPerSecond", one.r.OperationsPerSecond, 1},
			{"burstBytes", one.r.BurstBytes, 1}, {"burstOperations", one.r.BurstOperations, 1}} {
			if f.v != 0 && (f.v < f.least || f.v > maxRate) {
				return invalid(op, at(f.name), "%d: want %d to %d, or 0 for no bound", f.v, f.least, int64(maxRate))
			}
		}
		if one.r.BurstBytes > 0 && one.r.BytesPerSecond == 0 {
			return invalid(op, at("burstBytes"), "a burst is of a bound that it goes beyond: set bytesPerSecond, too")
		}
		if one.r.BurstOperations > 0 && one.r.OperationsPerSecond == 0 {
			return invalid(op, at("burstOperations"), "a burst is of a bound that it goes beyond: set operationsPerSecond, too")
		}
	}
	if rated(s.Resources) && userspaceEngine(s.Engine) {
		return errs.Msg(errs.Unsupported, op, "resources", "the engine userspace doesn't bound what disks and networks do in a time; microvm does").
			WithHint("engine: microvm, or leave diskRate, networkInRate and networkOutRate out")
	}
	return nil
}

func rated(r api.Resources) bool {
	return r.DiskRate != api.Rate{} || r.NetworkInRate != api.Rate{} || r.NetworkOutRate != api.Rate{}
}

func rateOf(r api.Rate) engine.Rate {
	return engine.Rate{Bytes: r.BytesPerSecond, Ops: r.OperationsPerSecond, BurstBytes: r.BurstBytes, BurstOps: r.BurstOperations}
}

func checkVolumes(op string, list []api.Volume) error {
	if len(list) > maxVolumes {
		return invalid(op, "volumes", "more than %d", maxVolumes)
	}
	paths, names := map[string]bool{}, map[string]bool{}
	for _, v := range list {
		if err := checkName(op, "volume", v.Name); err != nil {
			return err
		}
		p := v.Path
		if p == "" {
			p = "/" + v.Name
		}
		if !path.IsAbs(p) || strings.ContainsRune(p, 0) || len(p) > 4096 {
			return invalid(op, v.Name, "the path %q isn't absolute", short(p))
		}
		p = path.Clean(p)
		if paths[p] || names[v.Name] {
			return invalid(op, v.Name, "another volume has the same name or path")
		}
		paths[p], names[v.Name] = true, true
		switch v.ForkPolicy {
		case "", api.Fresh, api.Share, api.SnapshotPolicy, api.Clone:
		default:
			return invalid(op, v.Name, "the fork policy %q: want Fresh, Share, Snapshot or Clone", short(v.ForkPolicy))
		}
		if v.Size < 0 || v.Source.Bucket != "" && v.Source.Memory || len(v.Source.Bucket) > maxText {
			return invalid(op, v.Name, "a size isn't negative, and a source is a bucket or memory, not both")
		}
	}
	return nil
}
