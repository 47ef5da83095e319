package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// Whom Files act for, as Files.As has it.
const (
	AsUser  = ""     // the sandbox's user, as far as permissions let it
	AsRoot  = "root" // root, whom permissions don't stop, and to whom belongs what is made
	ForUser = "for"  // root, but what is made or written belongs to the sandbox's user
)

// FileDetail is what Files.Detail tells of a file.
type FileDetail struct {
	Leads *api.FileInfo     // of a symbolic link: what it leads to in the end, whose Path has no links; nil if that isn't there
	Tags  map[string]string // extended attributes
}

// maxTags bounds the tags of a file.
const maxTags = 1000

// As implements Files.
func (f *files) As(who string) Files {
	g := *f
	g.who = who
	g.cred = vfs.Cred{}
	g.give = nil
	switch who {
	case AsUser:
		g.cred = vfs.Cred{UID: f.user.UID, GID: f.user.GID}
	case ForUser:
		g.give = &vfs.SetAttr{UID: &g.user.UID, GID: &g.user.GID}
	}
	return &g
}

// known refuses names of nobody.
func (f *files) known(op string) error {
	if f.who != AsUser && f.who != AsRoot && f.who != ForUser {
		return errs.Msg(errs.Invalid, op, f.who, "nobody is called so")
	}
	return nil
}

// own gives what was made to whom it is to belong to.
func (f *files) own(ctx context.Context, p string) error {
	if f.give == nil {
		return nil
	}
	return f.ns.SetAttr(ctx, f.cred, "", p, *f.give, false)
}

// Detail implements Files.
func (f *files) Detail(ctx context.Context, paths []string, prefix string) ([]FileDetail, error) {
	const op = "describe"
	if len(paths) > maxList {
		return nil, errs.Msg(errs.Limit, op, "", fmt.Sprintf("want %d paths at most", maxList))
	}
	out := make([]FileDetail, len(paths))
	for i, p := range paths {
		p, err := f.begin(ctx, op, p)
		if err != nil {
			return nil, err
		}
		a, err := f.ns.Lstat(ctx, f.cred, "", p)
		if err == nil && a.Mode.IsSymlink() {
			out[i].Leads = f.leads(ctx, p)
		}
		if err == nil && prefix != "" {
			out[i].Tags = f.tags(ctx, p, prefix)
		}
		if err := ctx.Err(); err != nil {
			return nil, errs.New(errs.Canceled, op, p, err)
		}
	}
	return out, nil
}

// leads describes what a link leads to.
func (f *files) leads(ctx context.Context, p string) *api.FileInfo {
	real, err := f.ns.Realpath(ctx, f.cred, "", p)
	if err != nil || !utf8.ValidString(real) {
		return nil
	}
	a, err := f.ns.Stat(ctx, f.cred, "", real)
	if err != nil {
		return nil
	}
	return infoOf(real, a)
}

// tags are a file's extended attributes whose names begin with a prefix and whose values are texts. Of a filesystem without any
// there are none.
func (f *files) tags(ctx context.Context, p, prefix string) map[string]string {
	names, err := f.ns.ListXattr(ctx, f.cred, "", p, true)
	if err != nil || len(names) > maxTags {
		return nil
	}
	var out map[string]string
	for _, name := range names {
		k, ok := strings.CutPrefix(name, prefix)
		if !ok || k == "" || !utf8.ValidString(k) {
			continue
		}
		if v, err := f.ns.GetXattr(ctx, f.cred, "", p, name, true); err == nil && utf8.Valid(v) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = string(v)
		}
	}
	return out
}

// SetTags implements Files.
func (f *files) SetTags(ctx context.Context, p, prefix string, tags map[string]string) error {
	const op = "tag"
	p, err := f.begin(ctx, op, p)
	switch {
	case err != nil:
		return err
	case prefix == "" || len(tags) > maxTags:
		return errs.Msg(errs.Invalid, op, p, fmt.Sprintf("want a prefix, and %d tags at most", maxTags))
	}
	for k := range f.tags(ctx, p, prefix) {
		if _, ok := tags[k]; ok {
			continue
		}
		if err := f.ns.RemoveXattr(ctx, f.cred, "", p, prefix+k, true); err != nil && vfs.Errno(err) != syscall.ENODATA {
			return fail(op, p, err)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		if err := f.ns.SetXattr(ctx, f.cred, "", p, prefix+k, []byte(tags[k]), 0, true); err != nil {
			return fail(op, p, err)
		}
	}
	return nil
}
