package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// buildTimeout bounds builds that say nothing shorter.
const buildTimeout = time.Hour

// maxImageName is how many bytes an image's name has at most.
const maxImageName = 128

// savedImage is what specFile of an image holds.
type savedImage struct {
	Format   int                      `json:"format,omitempty"` // as asleep has it
	Build    Build                    `json:"build"`
	Cut      string                   `json:"cut"`                // whose buckets hold the volumes
	Policies map[string]volume.Policy `json:"policies,omitempty"` // by path, where the image's own are others
	Built    time.Time                `json:"built"`

	// Of one that Capture made:
	Captured string            `json:"captured,omitempty"` // id of the sandbox
	Base     string            `json:"base,omitempty"`     // the image that the sandbox came from at first
	Mounted  []string          `json:"mounted,omitempty"`  // paths of volumes that its claim brought
	Kept     map[string]string `json:"kept,omitempty"`     // the buckets that stay, by path
}

// image is one that Local has loaded. What is on disk has no interpreter running, so that it outlives changes of them; what
// sandboxes start from has the session of its language begun.
type image struct {
	name string

	mu     sync.Mutex
	about  savedImage
	disk   *volume.Cut  // the cut that is on disk
	warm   engine.Image // nil: not loaded
	cut    *volume.Cut  // of warm; disk itself where nothing had to be begun
	users  int
	closed bool
}

// use lends an image that is loaded, until done is called. One that Capture made is loaded no longer than it is used: there may be
// many of them, each with a sandbox's memory.
func (l *local) use(ctx context.Context, name string) (im *image, done func(), err error) {
	for {
		if im, err = l.image(ctx, name); err != nil {
			return nil, nil, err
		}
		im.mu.Lock()
		ok := !im.closed
		if ok {
			im.users++
		}
		im.mu.Unlock()
		if ok {
			return im, func() { l.unuse(im) }, nil
		}
	}
}

// unuse ends a use.
func (l *local) unuse(im *image) {
	l.mu.Lock()
	im.mu.Lock()
	defer im.mu.Unlock()
	im.users--
	dropped, unload := im.closed, im.about.Captured != "" && l.n.o.Dir != ""
	if im.users == 0 && !dropped && unload {
		im.closed = true
		if l.images[im.name] == im {
			delete(l.images, im.name)
		}
	}
	l.mu.Unlock()
	end := context.Background()
	switch {
	case im.users > 0:
	case dropped:
		l.log(im.name, im.discard(end))
	case unload:
		l.log(im.name, errors.Join(im.warm.Close(), im.disk.Close(end)))
		im.warm, im.cut, im.disk = nil, nil, nil
	}
}

func (l *local) log(image string, err error) {
	if err != nil {
		l.n.o.Log.Error("let go of an image", "image", image, "err", err)
	}
}

// drop lets go of the image once nobody uses it. Its buckets are deleted.
func (im *image) drop(ctx context.Context) error {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.closed = true
	if im.users > 0 {
		return nil
	}
	return im.discard(ctx)
}

// discard closes all. The lock is held.
func (im *image) discard(ctx context.Context) error {
	var all []error
	if im.warm != nil {
		all = append(all, im.warm.Close())
	}
	if im.cut != nil && im.cut != im.disk {
		all = append(all, im.cut.Discard(ctx))
	}
	if im.disk != nil {
		all = append(all, im.disk.Discard(ctx))
	}
	im.warm, im.cut, im.disk = nil, nil, nil
	return errors.Join(all...)
}

// policies are those that a sandbox's volumes have other than the image's, without volumes that replace the image's.
func (im *image) policies(instead ...volume.Spec) map[string]volume.Policy {
	out := maps.Clone(im.about.Policies)
	for _, v := range instead {
		delete(out, v.Path)
	}
	return out
}

func (n *Node) imageDir(name string) string { return filepath.Join(n.o.Dir, imagesDir, name) }

// checkImage lets names through that folders can have.
func checkImage(name string) error {
	ok := name != "" && len(name) <= maxImageName && name[0] != '.' && !strings.HasSuffix(name, making)
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '@')
	}
	if !ok {
		return errs.Msg(errs.Invalid, "image", name, "an image's name is 1 to 128 of a-z, 0-9, '-', '.' and '@'")
	}
	return nil
}

// Build implements Host. An image of the same name and description is there already then; of another one, it is errs.Exists.
func (l *local) Build(ctx context.Context, b Build, log io.Writer) error {
	if err := checkImage(b.Image); err != nil {
		return err
	}
	if _, err := languageOf(b.Language); err != nil {
		return err
	}
	unlock, err := l.lock(ctx, "image "+b.Image)
	if err != nil {
		return err
	}
	defer unlock()
	about, err := l.imageAbout(b.Image)
	if err == nil {
		if have, want := about.Build.text(), b.text(); about.Captured != "" || !bytes.Equal(have, want) {
			return errs.Msg(errs.Exists, "build", b.Image, "there is an image of this name, of another description")
		}
		return nil
	} else if !errs.Is(err, errs.NotFound) {
		return err
	}
	if b.Timeout <= 0 {
		b.Timeout = buildTimeout
	}
	short, cancel := context.WithTimeoutCause(ctx, b.Timeout, errs.Msg(errs.Invalid, "build", b.Image, fmt.Sprintf("it took longer than %v", b.Timeout)))
	defer cancel()
	im, err := l.build(short, b, log)
	if err != nil {
		if cause := context.Cause(short); cause != nil && ctx.Err() == nil {
			return cause
		}
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.images[b.Image] = im
	return nil
}

// text is what makes a build another one.
func (b Build) text() []byte {
	b.Timeout, b.Network = 0, nil
	text, _ := json.Marshal(b) // of strings and numbers
	return text
}

// build makes an image.
func (l *local) build(ctx context.Context, b Build, log io.Writer) (im *image, err error) {
	specs, policies, err := imageVolumes(b.Spec.Volumes)
	if err != nil {
		return nil, err
	}
	spec := b.Spec
	spec.ID, spec.Volumes, spec.Network, spec.Lease = newID(), specs, b.Network, 0
	if e, err := l.n.engine(spec.Engine); err == nil && engine.Lacks(e, engine.Network) {
		spec.Network = nil // init lines can't connect: there is nothing that rules could allow
	}
	s, err := l.n.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	end := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, s.End(end)) }()
	for i, line := range b.Init {
		if err := s.initLine(ctx, i, line, log); err != nil {
			return nil, err
		}
	}
	if len(b.Init) > 0 {
		// The start directory is the user's: so is what init left there.
		if _, err := s.initRun(ctx, `chown -R "$(stat -c %u:%g .)" . 2>/dev/null; true`, log); err != nil {
			return nil, err
		}
	}
	hash := sha256.Sum256([]byte(b.Image + "\n" + s.id))
	about := savedImage{Format: formatOf(&b.Spec), Build: b, Cut: "image-" + hex.EncodeToString(hash[:8]), Policies: policies, Built: time.Now().UTC()}
	s.mu.Lock()
	defer s.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, s.freezeTimeout())
	defer cancel()
	cold, cut, err := s.capture(short, about.Cut, engine.FreezeOptions{})
	if err != nil {
		return nil, err
	}
	im = &image{name: b.Image, about: about, disk: cut, warm: cold, cut: cut}
	dir := l.n.imageDir(b.Image)
	if l.n.o.Dir != "" {
		err = l.n.saveFolder(ctx, dir, about, cold, cut)
	}
	if err == nil {
		if err = l.n.warm(ctx, im); err != nil && l.n.o.Dir != "" {
			err = errors.Join(err, removeFolder(dir))
		}
	}
	if err != nil {
		return nil, errors.Join(err, im.drop(end))
	}
	return im, nil
}

// imageVolumes are the volumes of the sandbox that an image is made of, and the policies of those made of the image: volumes
// that forks share, or have empty, begin in each sandbox with what the template put into them.
func imageVolumes(given []volume.Spec) (specs []volume.Spec, policies map[string]volume.Policy, err error) {
	if specs, err = volume.Normal(given); err != nil {
		return nil, nil, err
	}
	policies = map[string]volume.Policy{}
	for i, v := range specs {
		if v.Bucket == "" && v.Host == "" && (v.Policy == volume.Share || v.Policy == volume.Fresh) {
			policies[v.Path], specs[i].Policy = v.Policy, volume.Snapshot
		}
	}
	return specs, policies, nil
}

// initLine runs a line of a template's init.
func (s *Sandbox) initLine(ctx context.Context, i int, line string, log io.Writer) error {
	if log != nil {
		fmt.Fprintf(log, "$ %s\n", line)
	}
	status, err := s.initRun(ctx, line, log)
	switch {
	case errs.Is(err, errs.Limit):
		return errs.New(errs.Invalid, "build", fmt.Sprintf("init line %d", i+1), err)
	case err != nil:
		return err
	case status != 0:
		return errs.Msg(errs.Invalid, "build", fmt.Sprintf("init line %d", i+1), fmt.Sprintf("%q ended with status %d", shorten(line), status))
	}
	return nil
}

func (s *Sandbox) initRun(ctx context.Context, line string, log io.Writer) (status int, err error) {
	out := &atOnce{w: log}
	args := []string{"bash", "-c", line}
	if !s.lacks(engine.Images) {
		args = []string{"sh", "-c", `command -v bash >/dev/null && exec bash -c "$0"; exec sh -c "$0"`, line} // not every image has one
	}
	p, err := s.Exec(ctx, engine.Cmd{Args: args, Root: true, Stdout: out, Stderr: out, Keep: true})
	if err != nil {
		return 0, err
	}
	return p.Wait(ctx)
}

// shorten cuts what stands in an error.
func shorten(line string) string {
	if line, _, more := strings.Cut(line, "\n"); more || len(line) > 200 {
		return strings.ToValidUTF8(line[:min(len(line), 200)], "") + " …"
	}
	return line
}

// atOnce lets several streams write to one writer.
type atOnce struct {
	mu sync.Mutex
	w  io.Writer
}

func (a *atOnce) Write(b []byte) (int, error) {
	if a.w == nil {
		return len(b), nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.w.Write(b)
}

// warm begins the session of the image's language: in a sandbox made of it, which is captured again.
func (n *Node) warm(ctx context.Context, im *image) (err error) {
	if l := im.about.Build.Language; l == "" || l == api.Shell {
		return nil
	}
	spec := im.about.Build.Spec
	spec.ID, spec.Volumes, spec.Network, spec.Lease = newID(), nil, nil, 0
	s, err := n.sandbox(spec, newFamily())
	if err != nil {
		return err
	}
	child, err := engine.Start(ctx, im.warm, im.disk, engine.Identity{ID: s.id, Hostname: spec.Hostname, Services: s.services()})
	if err != nil {
		return err
	}
	s.in, s.volumes = child.Instance, child.Volumes
	close(s.ready)
	end := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, s.drop(end)) }()
	if err := s.begins(ctx, im.about.Build.Language); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, s.freezeTimeout())
	defer cancel()
	warm, cut, err := s.capture(short, "warm-"+s.id[19:], engine.FreezeOptions{})
	if err != nil {
		return err
	}
	cold := im.warm
	im.warm, im.cut = warm, cut
	return cold.Close()
}

// imageAbout reads what an image is.
func (l *local) imageAbout(name string) (about savedImage, err error) {
	l.mu.Lock()
	im := l.images[name]
	l.mu.Unlock()
	if im != nil {
		return im.about, nil
	}
	none := errs.Msg(errs.NotFound, "find image", name, "this node has no image of this name")
	if checkImage(name) != nil || l.n.o.Dir == "" {
		return about, none
	}
	if err = l.n.readAbout(l.n.imageDir(name), &about); errors.Is(err, fs.ErrNotExist) {
		return about, none
	}
	return about, err
}

// image returns one that is loaded, or loads it.
func (l *local) image(ctx context.Context, name string) (*image, error) {
	find := func() *image {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.images[name]
	}
	if im := find(); im != nil {
		return im, nil
	}
	unlock, err := l.lock(ctx, "image "+name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if im := find(); im != nil { // somebody else did
		return im, nil
	}
	about, err := l.imageAbout(name)
	if err != nil {
		return nil, err
	}
	im := &image{name: name, about: about}
	if im.warm, im.disk, err = l.n.loadFolder(ctx, l.n.imageDir(name), about.Build.Spec.Engine); err != nil {
		return nil, fmt.Errorf("load image %s: %w", name, err)
	}
	im.cut = im.disk
	if err := l.n.warm(ctx, im); err != nil {
		end := context.WithoutCancel(ctx) // what is on disk stays
		return nil, errors.Join(err, im.warm.Close(), im.disk.Close(end))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.images[name] = im
	return im, nil
}

// Images implements Host.
func (l *local) Images(context.Context) ([]string, error) {
	names, err := l.n.folders(imagesDir)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.images {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// DropImage implements Host.
func (l *local) DropImage(ctx context.Context, name string) error {
	unlock, err := l.lock(ctx, "image "+name)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := l.imageAbout(name); errs.Is(err, errs.NotFound) {
		return nil
	} else if err != nil {
		return err
	}
	l.mu.Lock()
	im := l.images[name]
	delete(l.images, name)
	l.mu.Unlock()
	if im == nil { // for its buckets
		im = &image{name: name}
		if err := l.n.loadCut(ctx, l.n.imageDir(name), &im.disk); err != nil {
			return err
		}
	}
	if l.n.o.Dir != "" {
		err = removeFolder(l.n.imageDir(name))
	}
	return errors.Join(err, im.drop(ctx))
}
