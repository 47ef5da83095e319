package volume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
	"agentrun.dev/vfs/hostfs"
	"agentrun.dev/vfs/memfs"
)

// Attribute is set on buckets that were made for a sandbox and end with it; its value is the owner's id.
const Attribute = "agentrun.sandbox"

// Described is set beside Attribute where the owner has labels; its value is the volume's Spec in JSON, as far as it outlives
// a crash of whoever runs the sandbox.
const Described = "agentrun.volume"

// Options say on whose behalf volumes are opened.
type Options struct {
	Store    *bucket.Store // nil: there are no buckets
	Owner    string        // the sandbox's id: 1–40 of a–z, 0–9 and '-'; names the buckets made for it
	UID, GID uint32        // own what has no owner yet

	// Labels are further attributes of buckets that are made for the owner: what is to be known of it after a crash.
	Labels map[string]string
	// Adopt takes up empty buckets that were made for the owner and are there still, as they are.
	Adopt bool
}

// Set is the volumes of one sandbox. Its methods are called by one goroutine at a time.
type Set struct {
	o    Options
	list []*mounted
	keep bool
}

// mounted is one volume of a set.
type mounted struct {
	Spec
	b *backing
}

// backing is a filesystem, perhaps of several sets (Share). The last one closes it.
type backing struct {
	fs     vfs.FS
	bucket *bucket.Bucket // nil unless it is one
	own    bool           // the bucket was made for a sandbox

	mu   sync.Mutex
	refs int
}

// Open opens volumes. After an error nothing stays.
func Open(ctx context.Context, o Options, specs []Spec) (*Set, error) {
	specs, err := normalAll(specs)
	if err != nil {
		return nil, err
	}
	s := &Set{o: o}
	for _, spec := range specs {
		b, err := o.open(ctx, spec)
		if err != nil {
			return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
		s.list = append(s.list, &mounted{spec, b})
	}
	return s, nil
}

// Add opens more volumes, at paths where the set has none, and returns them for mounting. After an error nothing has changed.
func (s *Set) Add(ctx context.Context, specs []Spec) ([]vfs.Mount, error) {
	if _, err := normalAll(append(s.Specs(), specs...)); err != nil {
		return nil, err
	}
	more, err := Open(ctx, s.o, specs)
	if err != nil {
		return nil, err
	}
	s.list = append(s.list, more.list...)
	return more.Mounts(), nil
}

// Drop closes the volumes at some paths, which nobody mounts any more.
func (s *Set) Drop(ctx context.Context, paths ...string) error {
	var all []error
	s.list = slices.DeleteFunc(s.list, func(m *mounted) bool {
		if !slices.Contains(paths, m.Path) {
			return false
		}
		all = append(all, m.b.release(ctx, s.keep))
		return true
	})
	return errors.Join(all...)
}

// SetPolicies changes the fork policies of volumes, by path: what a cut was made with needn't be what its sets are forked with.
func (s *Set) SetPolicies(to map[string]Policy) {
	for _, m := range s.list {
		if p, ok := to[m.Path]; ok {
			m.Policy = p
		}
	}
}

// Normal fills the defaults of specs in, as Open does, and says what is wrong with them.
func Normal(specs []Spec) ([]Spec, error) { return normalAll(specs) }

func (o Options) open(ctx context.Context, s Spec) (*backing, error) {
	switch {
	case s.Host != "":
		fs, err := hostfs.New(s.Host, hostfs.Options{UID: o.UID, GID: o.GID, ReadOnly: s.ReadOnly})
		if err != nil {
			return nil, errs.New(errs.Invalid, "mount", s.Path, err)
		}
		return &backing{fs: fs, refs: 1}, nil
	case s.Bucket != "":
		return o.bucket(ctx, s, s.Bucket, false)
	case s.Base != "":
		return o.fork(ctx, s, s.Base)
	case s.Empty:
		return o.empty(ctx, s)
	}
	return o.memory(s), nil
}

func (o Options) memory(s Spec) *backing {
	m := memfs.Options{Bytes: s.Size, Mode: s.Mode, UID: o.UID, GID: o.GID}
	if s.Root {
		m.UID, m.GID = 0, 0
	}
	return &backing{fs: memfs.New(m), refs: 1}
}

// needStore is the error where a bucket is wanted and no store is there.
func (o Options) needStore(name string) error {
	if o.Store == nil {
		return errs.Msg(errs.Invalid, "mount", name, "there is no store of buckets here")
	}
	return nil
}

func (o Options) bucket(ctx context.Context, s Spec, name string, own bool) (*backing, error) {
	if err := o.needStore(name); err != nil {
		return nil, err
	}
	b, err := o.Store.Bucket(ctx, name)
	if err != nil {
		return nil, err
	}
	fs, err := bucketfs.New(ctx, b, o.bucketfs(s))
	if err != nil {
		return nil, err
	}
	return &backing{fs: fs, bucket: b, own: own, refs: 1}, nil
}

func (o Options) bucketfs(s Spec) bucketfs.Options {
	return bucketfs.Options{UID: o.UID, GID: o.GID, Bytes: s.Size}
}

// fork opens a fork of a bucket that is made for it.
func (o Options) fork(ctx context.Context, s Spec, base string) (*backing, error) {
	if err := o.needStore(base); err != nil {
		return nil, err
	}
	from, at, err := o.Store.Point(ctx, base)
	if err != nil {
		return nil, err
	}
	name := o.name(s.Name)
	if _, err := o.Store.Fork(ctx, from, name, bucket.ForkOptions{At: at, Attributes: o.attributes(s)}); err != nil {
		return nil, err
	}
	return o.made(ctx, s, name)
}

// empty opens an empty bucket that is made for it.
func (o Options) empty(ctx context.Context, s Spec) (*backing, error) {
	if err := o.needStore(s.Name); err != nil {
		return nil, err
	}
	name := o.name(s.Name)
	_, err := o.Store.Create(ctx, name, bucket.CreateOptions{Attributes: o.attributes(s)})
	if o.Adopt && errs.Is(err, errs.Exists) {
		if info, e := o.Store.Info(ctx, name); e == nil && info.Attributes[Attribute] == o.Owner {
			return o.bucket(ctx, s, name, true)
		}
	}
	if err != nil {
		return nil, err
	}
	return o.made(ctx, s, name)
}

// made opens a bucket that was just made, or takes it away again.
func (o Options) made(ctx context.Context, s Spec, name string) (*backing, error) {
	b, err := o.bucket(ctx, s, name, true)
	if err != nil {
		return nil, errors.Join(err, o.Store.Delete(context.WithoutCancel(ctx), name, bucket.DeleteOptions{Force: true}))
	}
	return b, nil
}

// attributes are those of a bucket that is made for a volume.
func (o Options) attributes(s Spec) map[string]string {
	a := map[string]string{Attribute: o.Owner}
	if o.Labels != nil {
		maps.Copy(a, o.Labels)
		text, _ := json.Marshal(Spec{Name: s.Name, Path: s.Path, Policy: s.Policy, ReadOnly: s.ReadOnly, Size: s.Size, Empty: true}) // of strings and numbers
		a[Described] = string(text)
	}
	return a
}

// name of a bucket made for a volume: "sandbox-OWNER-NAME". A name that doesn't fit ends in a hash, which tells it from those that
// begin as it does.
func (o Options) name(volume string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, volume)
	name := strings.TrimRight("sandbox-"+o.Owner+"-"+safe, "-")
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(volume))
	return name[:maxName-7] + "-" + hex.EncodeToString(sum[:3])
}

// maxName is how long a bucket's name can be.
const maxName = 63

// Mounts returns what a vfs.Namespace mounts, in the order of the specs; the root, if it is among them, as the one at "/".
func (s *Set) Mounts() []vfs.Mount {
	out := make([]vfs.Mount, 0, len(s.list))
	for _, m := range s.list {
		v := vfs.Mount{Path: m.Path, FS: m.b.fs, ReadOnly: m.ReadOnly, Source: m.Name, Type: "tmpfs"}
		switch {
		case m.b.bucket != nil:
			v.Source, v.Type = "bucket:"+m.b.bucket.Name(), "bucket"
		case m.Host != "":
			v.Source, v.Type = "host", "hostfs"
		}
		out = append(out, v)
	}
	return out
}

// Bucket returns the bucket that is mounted at a path, nil if none is.
func (s *Set) Bucket(path string) *bucket.Bucket {
	for _, m := range s.list {
		if m.Path == path {
			return m.b.bucket
		}
	}
	return nil
}

// Own is a volume whose bucket was made for the set.
type Own struct {
	Spec
	Bucket *bucket.Bucket
}

// Own returns the buckets that were made for this set, what was written to them made visible.
func (s *Set) Own(ctx context.Context) ([]Own, error) {
	var out []Own
	for _, m := range s.list {
		if m.b.bucket == nil || !m.b.own {
			continue
		}
		if err := m.b.fs.(*bucketfs.FS).Flush(ctx, false); err != nil {
			return nil, err
		}
		out = append(out, Own{m.Spec, m.b.bucket})
	}
	return out, nil
}

// Specs returns what the volumes are, defaults filled in.
func (s *Set) Specs() []Spec {
	out := make([]Spec, len(s.list))
	for i, m := range s.list {
		out[i] = m.Spec
	}
	return out
}

// Keep makes the buckets that were made for this set outlive it, as buckets like any other, and returns their names by path.
func (s *Set) Keep(ctx context.Context) (map[string]string, error) {
	kept := map[string]string{}
	for _, m := range s.list {
		if m.b.bucket == nil || !m.b.own {
			continue
		}
		info, err := s.o.Store.Update(ctx, m.b.bucket.Name(), func(i *bucket.Info) error {
			delete(i.Attributes, Attribute)
			return nil
		})
		if err != nil {
			return kept, err
		}
		kept[m.Path] = info.Name
	}
	s.keep = true
	return kept, nil
}

// Close lets go of the volumes: what was written to buckets is durable then, and buckets made for the sandbox are deleted.
func (s *Set) Close(ctx context.Context) error {
	var all []error
	for _, m := range s.list {
		all = append(all, m.b.release(ctx, s.keep))
	}
	s.list = nil
	return errors.Join(all...)
}

func (b *backing) share() *backing {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refs++
	return b
}

// release gives up one holder's part; the last one closes, and deletes the bucket if it was made for a sandbox.
func (b *backing) release(ctx context.Context, keep bool) error {
	b.mu.Lock()
	b.refs--
	last, own := b.refs == 0, b.own
	b.mu.Unlock()
	if !last {
		return nil
	}
	drop := own && !keep
	if b.bucket == nil {
		if c, ok := b.fs.(io.Closer); ok {
			return c.Close()
		}
		return nil
	}
	fs := b.fs.(*bucketfs.FS)
	var all []error
	if !drop {
		all = append(all, fs.Flush(ctx, true))
	}
	all = append(all, fs.Close(ctx))
	if drop {
		all = []error{b.bucket.Store().Delete(ctx, b.bucket.Name(), bucket.DeleteOptions{Force: true})}
	}
	err := errors.Join(all...)
	if errs.Is(err, errs.NotFound) {
		return nil // the bucket is gone, and with it whatever was to be kept
	}
	return err
}
