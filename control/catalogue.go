package control

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// catalogued is what a family of images stands for on the userspace engine, which brings a userland of its own.
type catalogued struct {
	name     string
	language string
	note     string
}

// catalogue lists the families of images that the userspace engine stands in for.
func catalogue() []catalogued {
	unix := "a Unix userland of its own: bash, the GNU tools, git, curl, jq and so on"
	return []catalogued{
		{"python", api.Python, "CPython as WebAssembly over " + unix},
		{"node", api.JavaScript, "a JavaScript interpreter over " + unix},
		{"debian", "", unix}, {"ubuntu", "", unix}, {"alpine", "", unix}, {"busybox", "", unix}, {"bash", "", unix},
	}
}

// bucketImage is the prefix of images that are buckets.
const bucketImage = "bucket:"

// resolve says what an image's name stands for.
func (c *Control) resolve(ctx context.Context, who *access.Caller, s *api.TemplateSpec) (*catalogued, error) {
	const op = "find image"
	if !userspaceEngine(s.Engine) {
		return ociImage(op, s)
	}
	if s.Image == "" {
		return &catalogued{}, nil
	}
	if ref, ok := strings.CutPrefix(s.Image, bucketImage); ok {
		if ref == "" {
			return nil, invalid(op, short(s.Image), "want bucket:NAME or bucket:NAME@SNAPSHOT")
		}
		return &catalogued{}, c.mayUseBucket(ctx, who, ref)
	}
	family, tag := familyOf(s.Image)
	list := catalogue()
	i := slices.IndexFunc(list, func(k catalogued) bool { return k.name == family })
	if i < 0 || strings.ContainsAny(tag, "/ \n") {
		var names []string
		for _, k := range list {
			names = append(names, k.name)
		}
		return nil, errs.Msg(errs.NotFound, op, short(s.Image), "there is no image of this name in the catalogue: it has "+strings.Join(names, ", ")+" and bucket:NAME").
			WithHint("leave the image out for the engine's own userland, or start from a bucket: bucket:NAME[@SNAPSHOT]")
	}
	found := list[i]
	found.note = "image " + s.Image + " stands for the userspace engine's userland: " + found.note
	return &found, nil
}

// familyOf is the name of an image in its registry, where that is Docker's, and its tag.
func familyOf(image string) (family, tag string) {
	for _, prefix := range []string{"docker.io/", "library/"} {
		image = strings.TrimPrefix(image, prefix)
	}
	image, _, _ = strings.Cut(image, "@")
	family, tag, _ = strings.Cut(image, ":")
	return family, tag
}

// maxImage is how many bytes the name of an OCI image has at most.
const maxImage = 512

// ociImage is the image of an engine whose roots are images: which of them there are, its nodes know. Of those that are known for a language, that
// is the sandboxes'.
func ociImage(op string, s *api.TemplateSpec) (*catalogued, error) {
	if strings.HasPrefix(s.Image, bucketImage) {
		return nil, invalid(op, short(s.Image), "a bucket is the root of userspace sandboxes only; those of %s are made of OCI images, such as python:3.12-slim", s.Engine)
	}
	if len(s.Image) > maxImage || strings.ContainsFunc(s.Image, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, invalid(op, short(s.Image), "an image's name has at most %d bytes, and no spaces", maxImage)
	}
	family, _ := familyOf(s.Image)
	for _, k := range catalogue() {
		if k.name == family {
			return &catalogued{language: k.language}, nil
		}
	}
	return &catalogued{}, nil
}

// mayUseBucket asks whether the caller may build on a bucket (NAME or NAME@SNAPSHOT) and whether there is one.
func (c *Control) mayUseBucket(ctx context.Context, who *access.Caller, ref string) error {
	name, _, _ := strings.Cut(ref, "@")
	if err := c.allow(ctx, who, access.BucketUse, access.Thing{Kind: "bucket", ID: name}); err != nil {
		return err
	}
	if c.o.Store == nil {
		return errs.Msg(errs.Unsupported, "find bucket", name, "this service has no buckets")
	}
	_, _, err := c.o.Store.Point(ctx, ref)
	return err
}

// workspace is where commands start.
const workspace = "/workspace"

// buildTimeout bounds a build.
const buildTimeout = 30 * time.Minute

// plan says how an image of a template is built.
func (c *Control) plan(t *api.Template) node.Build {
	s := &t.Spec
	spec := node.Spec{Dir: s.Dir, Env: environ(s.Env), Limits: engine.Limits{Memory: s.Resources.Memory, Processes: s.Resources.Processes, Written: s.Resources.Disk}}
	atWork := false
	if !userspaceEngine(s.Engine) {
		spec.Engine, spec.Image, spec.Limits.VCPUs = s.Engine, s.Image, int(math.Ceil(s.Resources.CPU))
		spec.Limits.Disk, spec.Limits.NetworkIn, spec.Limits.NetworkOut = rateOf(s.Resources.DiskRate), rateOf(s.Resources.NetworkInRate), rateOf(s.Resources.NetworkOutRate)
	} else if ref, ok := strings.CutPrefix(s.Image, bucketImage); ok {
		spec.Volumes = append(spec.Volumes, volume.Spec{Name: "root", Path: "/", Base: ref, Policy: volume.Snapshot})
		atWork = true // the bucket brings its own
	}
	for _, v := range s.Volumes {
		spec.Volumes = append(spec.Volumes, volumeSpec(v))
		atWork = atWork || v.Path == workspace || v.Path == "" && v.Name == "workspace"
	}
	if !atWork {
		spec.Volumes = append(spec.Volumes, volume.Spec{Name: "workspace", Path: workspace, Empty: true, Policy: volume.Snapshot})
	}
	return node.Build{Image: imageOf(t.Name, t.Version), Spec: spec, Init: s.Init, Network: c.o.BuildNetwork, Language: s.Language, Timeout: buildTimeout}
}

// volumeSpec translates a volume of a template.
func volumeSpec(v api.Volume) volume.Spec {
	out := volume.Spec{Name: v.Name, Path: v.Path, Policy: volume.Policy(v.ForkPolicy), ReadOnly: v.ReadOnly, Size: v.Size}
	if out.Path == "" {
		out.Path = "/" + v.Name
	}
	if out.Policy == "" {
		out.Policy = volume.Snapshot
		if v.ReadOnly {
			out.Policy = volume.Share
		}
	}
	switch {
	case v.Source.Memory:
	case v.Source.Bucket == "":
		out.Empty = true
	case out.Policy == volume.Share:
		out.Bucket = v.Source.Bucket
	default:
		out.Base = v.Source.Bucket
	}
	return out
}

// environ returns variables as NAME=VALUE, in order of name.
func environ(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}
