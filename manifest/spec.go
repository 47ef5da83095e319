package manifest

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

type ref struct {
	Name string `yaml:"name"`
}

type templateSpec struct {
	Engine    string   `yaml:"engine"`
	Image     string   `yaml:"image"`
	Init      []string `yaml:"init"`
	Language  string   `yaml:"language"`
	Dir       string   `yaml:"workingDir"`
	Env       []envVar `yaml:"env"`
	Resources struct {
		CPU            quantity `yaml:"cpu"`
		Memory         quantity `yaml:"memory"`
		Disk           quantity `yaml:"disk"`
		Processes      int      `yaml:"processes"`
		DiskRate       rate     `yaml:"diskRate"`
		NetworkInRate  rate     `yaml:"networkInRate"`
		NetworkOutRate rate     `yaml:"networkOutRate"`
	} `yaml:"resources"`
	Volumes       []volume `yaml:"volumes"`
	Mounts        []string `yaml:"mounts"`
	NetworkPolicy network  `yaml:"networkPolicy"`
	Lease         lease    `yaml:"lease"`
}

type rate struct {
	BytesPerSecond      quantity `yaml:"bytesPerSecond"`
	OperationsPerSecond quantity `yaml:"operationsPerSecond"`
	BurstBytes          quantity `yaml:"burstBytes"`
	BurstOperations     quantity `yaml:"burstOperations"`
}

func (r rate) api(field string) (out api.Rate, err error) {
	for _, one := range []struct {
		name string
		q    quantity
		to   *int64
	}{{"bytesPerSecond", r.BytesPerSecond, &out.BytesPerSecond}, {"operationsPerSecond", r.OperationsPerSecond, &out.OperationsPerSecond},
		{"burstBytes", r.BurstBytes, &out.BurstBytes}, {"burstOperations", r.BurstOperations, &out.BurstOperations}} {
		if *one.to, err = one.q.bytes(field + "." + one.name); err != nil {
			return out, err
		}
	}
	return out, nil
}

type envVar struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
}

type volume struct {
	Name       string   `yaml:"name"`
	MountPath  string   `yaml:"mountPath"`
	Size       quantity `yaml:"size"`
	ReadOnly   bool     `yaml:"readOnly"`
	ForkPolicy string   `yaml:"forkPolicy"`
	Source     struct {
		S3 struct {
			Bucket string `yaml:"bucket"`
			Region string `yaml:"region"` // of the store that it came from; ours has one
		} `yaml:"s3"`
		Memory bool `yaml:"memory"`
	} `yaml:"source"`
}

type network struct {
	Egress string   `yaml:"egress"`
	Allow  []string `yaml:"allow"`
}

type lease struct {
	Duration  int64  `yaml:"duration"`
	Extend    int64  `yaml:"extend"`
	OnExpiry  string `yaml:"onExpiry"`
	MaxAge    int64  `yaml:"maxAge"`
	Sleep     int64  `yaml:"sleep"`
	Retention int64  `yaml:"retention"`
}

func (l lease) api() api.Lease {
	return api.Lease{Duration: l.Duration, Extend: l.Extend, OnExpiry: l.OnExpiry, MaxAge: l.MaxAge, Sleep: l.Sleep, Retention: l.Retention}
}

func (s templateSpec) api() (*api.TemplateSpec, error) {
	out := &api.TemplateSpec{Engine: s.Engine, Image: s.Image, Init: s.Init, Language: s.Language, Dir: s.Dir, Mounts: s.Mounts,
		Network: api.NetworkPolicy{Egress: s.NetworkPolicy.Egress, Allow: s.NetworkPolicy.Allow}, Lease: s.Lease.api()}
	var err error
	if out.Env, err = environment(s.Env); err != nil {
		return nil, err
	}
	cpu, err := s.Resources.CPU.float("resources.cpu")
	if err != nil {
		return nil, err
	}
	out.Resources = api.Resources{CPU: cpu, Processes: s.Resources.Processes}
	if out.Resources.Memory, err = s.Resources.Memory.bytes("resources.memory"); err != nil {
		return nil, err
	}
	if out.Resources.Disk, err = s.Resources.Disk.bytes("resources.disk"); err != nil {
		return nil, err
	}
	for _, one := range []struct {
		name string
		r    rate
		to   *api.Rate
	}{{"diskRate", s.Resources.DiskRate, &out.Resources.DiskRate}, {"networkInRate", s.Resources.NetworkInRate, &out.Resources.NetworkInRate},
		{"networkOutRate", s.Resources.NetworkOutRate, &out.Resources.NetworkOutRate}} {
		if *one.to, err = one.r.api("resources." + one.name); err != nil {
			return nil, err
		}
	}
	for _, v := range s.Volumes {
		a := api.Volume{Name: v.Name, Path: v.MountPath, ReadOnly: v.ReadOnly, ForkPolicy: v.ForkPolicy,
			Source: api.VolumeSource{Bucket: v.Source.S3.Bucket, Memory: v.Source.Memory}}
		if a.Size, err = v.Size.bytes("volumes[" + v.Name + "].size"); err != nil {
			return nil, err
		}
		out.Volumes = append(out.Volumes, a)
	}
	return out, nil
}

type poolSpec struct {
	TemplateRef   ref    `yaml:"templateRef"`
	Replicas      *int   `yaml:"replicas"`
	SnapshotAfter string `yaml:"snapshotAfter"`
	MaxSandboxes  int    `yaml:"maxSandboxes"`
}

func (s poolSpec) api() (*api.PoolSpec, error) {
	if s.TemplateRef.Name == "" {
		return nil, &fieldError{0, "spec.templateRef.name: it is missing"}
	}
	if s.SnapshotAfter != "" && s.SnapshotAfter != "Ready" {
		return nil, &fieldError{0, fmt.Sprintf("spec.snapshotAfter: %q isn't known; sandboxes are snapshotted when they are Ready", s.SnapshotAfter)}
	}
	out := &api.PoolSpec{Template: s.TemplateRef.Name, Replicas: 1, MaxSandboxes: s.MaxSandboxes}
	if s.Replicas != nil {
		out.Replicas = *s.Replicas
	}
	return out, nil
}

type claimSpec struct {
	PoolRef     ref      `yaml:"poolRef"`
	TemplateRef ref      `yaml:"templateRef"`
	Env         []envVar `yaml:"env"`
	Secrets     []struct {
		Name      string `yaml:"name"`
		SecretRef struct {
			Name string `yaml:"name"`
			Key  string `yaml:"key"`
		} `yaml:"secretRef"`
		Env  string `yaml:"env"`
		Fork string `yaml:"fork"`
	} `yaml:"secrets"`
	Lease *lease `yaml:"lease"`
}

func (s claimSpec) api() (*api.ClaimSpec, error) {
	if (s.PoolRef.Name == "") == (s.TemplateRef.Name == "") {
		return nil, &fieldError{0, "spec: want one of poolRef and templateRef"}
	}
	out := &api.ClaimSpec{Pool: s.PoolRef.Name, Template: s.TemplateRef.Name}
	var err error
	if out.Env, err = environment(s.Env); err != nil {
		return nil, err
	}
	for _, u := range s.Secrets {
		out.Secrets = append(out.Secrets, api.SecretUse{Name: u.Name, Ref: api.SecretRef{Name: u.SecretRef.Name, Key: u.SecretRef.Key}, Env: u.Env, Fork: u.Fork})
	}
	if s.Lease != nil {
		l := s.Lease.api()
		out.Lease = &l
	}
	return out, nil
}

type forkSpec struct {
	SourceRef ref  `yaml:"sourceRef"`
	Replicas  *int `yaml:"replicas"`
}

func (s forkSpec) api() (*api.ForkSpec, error) {
	if s.SourceRef.Name == "" {
		return nil, &fieldError{0, "spec.sourceRef.name: it is missing"}
	}
	out := &api.ForkSpec{Source: s.SourceRef.Name, Replicas: 1}
	if s.Replicas != nil {
		out.Replicas = *s.Replicas
	}
	return out, nil
}

func environment(list []envVar) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make(map[string]string, len(list))
	for i, v := range list {
		if _, twice := out[v.Name]; twice || v.Name == "" {
			return nil, &fieldError{0, fmt.Sprintf("spec.env[%d].name: %q is empty or there twice", i, v.Name)}
		}
		out[v.Name] = v.Value
	}
	return out, nil
}

// quantity is a number with a unit, as Kubernetes writes it: 500m, 1, 512Mi, 5G.
type quantity string

// UnmarshalYAML takes numbers, too.
func (q *quantity) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return &fieldError{n.Line, fmt.Sprintf("line %d: want a quantity such as 1, 500m, 512Mi or 5Gi", n.Line)}
	}
	*q = quantity(n.Value)
	return nil
}

var units = map[string]*big.Rat{"": big.NewRat(1, 1), "m": big.NewRat(1, 1000), "k": big.NewRat(1e3, 1), "M": big.NewRat(1e6, 1), "G": big.NewRat(1e9, 1),
	"T": big.NewRat(1e12, 1), "P": big.NewRat(1e15, 1), "Ki": big.NewRat(1<<10, 1), "Mi": big.NewRat(1<<20, 1), "Gi": big.NewRat(1<<30, 1),
	"Ti": big.NewRat(1<<40, 1), "Pi": big.NewRat(1<<50, 1)}

func (q quantity) rat(field string) (*big.Rat, error) {
	if q == "" {
		return new(big.Rat), nil
	}
	bad := &fieldError{0, fmt.Sprintf("spec.%s: %q isn't a quantity such as 1, 500m, 512Mi or 5Gi", field, string(q))}
	if len(q) > 32 {
		return nil, bad
	}
	number := strings.TrimRight(string(q), "mkKMGTPi")
	unit, ok := units[string(q)[len(number):]]
	v, isNumber := new(big.Rat), false
	if !strings.ContainsAny(number, "/eExXpP_+-") {
		v, isNumber = v.SetString(number)
	}
	if !ok || !isNumber {
		return nil, bad
	}
	return v.Mul(v, unit), nil
}

func (q quantity) float(field string) (float64, error) {
	v, err := q.rat(field)
	if err != nil {
		return 0, err
	}
	f, _ := v.Float64()
	return f, nil
}

// bytes rounds up, as Kubernetes does.
func (q quantity) bytes(field string) (int64, error) {
	v, err := q.rat(field)
	if err != nil {
		return 0, err
	}
	n := new(big.Int).Add(v.Num(), new(big.Int).Sub(v.Denom(), big.NewInt(1)))
	n.Quo(n, v.Denom())
	if !n.IsInt64() || n.Int64() > math.MaxInt64/2 {
		return 0, &fieldError{0, fmt.Sprintf("spec.%s: %q is too large", field, string(q))}
	}
	return n.Int64(), nil
}

// fields are the names that an object may have, with those of the objects in them.
type fields map[string]fields

func fieldsOf[S any]() fields { return typeFields(reflect.TypeFor[S]()) }

func typeFields(t reflect.Type) fields {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	out := fields{}
	for i := range t.NumField() {
		f := t.Field(i)
		out[f.Tag.Get("yaml")] = typeFields(f.Type)
	}
	return out
}

// known refuses a field that isn't, and says which there are.
func known(n *yaml.Node, f fields, at string) error {
	switch {
	case f == nil:
	case n.Kind == yaml.AliasNode: // what it stands for may hold itself, but f ends
		return known(n.Alias, f, at)
	case n.Kind == yaml.SequenceNode:
		for i, c := range n.Content {
			if err := known(c, f, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			inner, ok := f[k.Value]
			if !ok {
				var names []string
				for name := range f {
					names = append(names, name)
				}
				slices.Sort(names)
				return &fieldError{k.Line, fmt.Sprintf("%s.%s: no such field; there are %s", at, k.Value, strings.Join(names, ", "))}
			}
			if err := known(n.Content[i+1], inner, at+"."+k.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bytes reads a number of bytes as manifests have it: 512Mi, 5G, 1000.
func Bytes(text string) (int64, error) {
	v, err := quantity(text).rat("memory")
	if err != nil || text == "" || !v.IsInt() || !v.Num().IsInt64() || v.Sign() < 0 {
		return 0, errs.Msg(errs.Invalid, "read quantity", text, "want a number of bytes, such as 512Mi or 5G")
	}
	return v.Num().Int64(), nil
}
