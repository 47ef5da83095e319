package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/bucket"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// What a folder of a sleeping sandbox holds. It is there as a whole or not at all: it is made under another name.
const (
	specFile   = "spec.json"
	imageFile  = "image"
	volumeFile = "volumes"
	making     = ".new" // ends the name of a folder that isn't complete
)

// Folders of Options.Dir.
const (
	sleepingDir = "sleeping"
	imagesDir   = "images"
)

// asleep is what specFile holds.
type asleep struct {
	Format int    `json:"format,omitempty"` // of what saveFolder writes; formatOwn when 0
	Spec   Spec   `json:"spec"`
	Parent string `json:"parent,omitempty"`
	Index  int    `json:"index,omitempty"`

	Hosted  bool              `json:"hosted,omitempty"`
	Epoch   uint64            `json:"epoch,omitempty"`
	Claimed bool              `json:"claimed,omitempty"`
	Image   string            `json:"image,omitempty"`  // that it came from at first
	Cut     string            `json:"cut"`              // whose buckets hold the volumes
	Shared  []string          `json:"shared,omitempty"` // buckets that were made for it, or what it is a fork of, and are shared
	Bases   map[string]string `json:"bases,omitempty"`
	Mounted []string          `json:"mounted,omitempty"` // paths of volumes that a claim brought
	Since   time.Time         `json:"since"`
}

// nap is what is known of a sleeping sandbox without opening its folder.
type nap struct {
	hosted, claimed bool
	epoch           uint64
	cut             string
	shared          []string
	since           time.Time
	crashed         *crashed // its node crashed while it ran: there is no folder
}

func (a *asleep) nap() nap {
	return nap{hosted: a.Hosted, claimed: a.Claimed, epoch: a.Epoch, cut: a.Cut, shared: a.Shared, since: a.Since}
}

// sleeping is the folder of a sandbox that hibernates.
func (n *Node) sleeping(id string) string { return filepath.Join(n.o.Dir, sleepingDir, id) }

// canSleep fails where sandboxes can't.
func (n *Node) canSleep(op, id string) error {
	if n.o.Dir == "" {
		return errs.Msg(errs.Unsupported, op, id, "this node has no place for sleeping sandboxes")
	}
	return checkID(id)
}

// Hibernate saves a sandbox to disk, files and running processes, and ends it here. When it returns, what it saved is
// durable; after an error the sandbox goes on. Resume wakes it up. Forks that it made of itself must have ended.
func (s *Sandbox) Hibernate(ctx context.Context) error { return s.hibernate(ctx, false) }

// hibernate is Hibernate; with kill, what can't be saved is lost instead.
func (s *Sandbox) hibernate(ctx context.Context, kill bool) error {
	if err := s.n.canSleep("hibernate", s.id); err != nil {
		return err
	}
	for _, child := range s.family.of(s.id) {
		if !kill {
			return errs.Msg(errs.Unsupported, "hibernate", s.id, "forks that it made of itself are running; end them first")
		}
		if err := child.End(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	err := s.living()
	if err == nil {
		err = s.save(ctx, kill)
	}
	s.asleep = err == nil
	s.napping.Store(s.asleep)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	// It sleeps. What goes wrong with the rest of the one that ran is Sweep's to find.
	s.EndSoon(ctx)
	return nil
}

// save writes the sandbox's folder. The lock is held.
func (s *Sandbox) save(ctx context.Context, kill bool) (err error) {
	short, cancel := context.WithTimeout(ctx, s.freezeTimeout())
	defer cancel()
	end := context.WithoutCancel(ctx)
	if err := s.keepBases(ctx); err != nil {
		return err
	}
	// The cut of an earlier sleep may still be there, should its deletion have failed.
	about := asleep{Format: formatOf(&s.spec), Spec: s.spec, Hosted: s.hosted, Image: s.image, Epoch: s.epoch, Claimed: s.claimed.Load(), Bases: s.bases, Mounted: s.mounted, Since: time.Now().UTC(), Cut: s.id + "-" + newID()[32:]}
	image, cut, err := s.captureAll(short, about.Cut, engine.FreezeOptions{Kill: kill})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, image.Close())
		if err == nil {
			err = cut.Close(end)
		} else {
			err = errors.Join(err, cut.Discard(end))
		}
	}()
	if s.origin != nil {
		about.Parent, about.Index = s.origin.parent, s.origin.index
	}
	about.Shared = append(slices.Clone(s.shared), cut.Lasting()...)
	if err := s.n.saveFolder(ctx, s.n.sleeping(s.id), about, image, cut); err != nil {
		return err
	}
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	if s.n.slept != nil {
		s.n.slept[s.id] = about.nap()
	}
	return nil
}

// saveFolder writes a folder of a sandbox or image: all of it, durable, or nothing.
func (n *Node) saveFolder(ctx context.Context, dir string, about any, image engine.Image, cut *volume.Cut) error {
	tmp := dir + making
	if err := os.RemoveAll(tmp); err != nil {
		return failed("save", "", err)
	}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return failed("save", "", err)
	}
	defer os.RemoveAll(tmp) // is gone when all went well
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	err = errors.Join(
		n.writeFile(filepath.Join(tmp, specFile), func(w io.Writer) error { _, err := w.Write(text); return err }),
		n.writeFile(filepath.Join(tmp, imageFile), func(w io.Writer) error { return image.Save(ctx, w, cut.Mounts()) }),
		n.writeFile(filepath.Join(tmp, volumeFile), cut.Save),
		syncDir(tmp))
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return failed("save", "", err)
	}
	return errors.Join(syncDir(filepath.Dir(dir)), syncDir(n.o.Dir))
}

// readAbout reads a folder's specFile; fs.ErrNotExist is in the chain if there is no folder.
func (n *Node) readAbout(dir string, about any) error {
	return n.readFile(filepath.Join(dir, specFile), func(r io.Reader) error {
		text, err := io.ReadAll(r)
		var head struct{ Format int }
		if err == nil {
			err = json.Unmarshal(text, &head)
		}
		if err == nil && head.Format > formatEngines {
			return errs.Msg(errs.Unsupported, "read", "", fmt.Sprintf("it was written by a newer version: its format is %d, this one knows %d and older", head.Format, formatEngines))
		}
		if err == nil {
			err = json.Unmarshal(text, about)
		}
		if err != nil {
			return errs.New(errs.Corrupt, "read", "", err)
		}
		return nil
	})
}

// keepBases forks what the sandbox's volumes began as into buckets of their own: the forks that go to sleep don't know it any more.
// The lock is held.
func (s *Sandbox) keepBases(ctx context.Context) error {
	if !s.hosted {
		return nil
	}
	own, err := s.volumes.Own(ctx)
	if err != nil {
		return err
	}
	for _, v := range own {
		if s.bases[v.Path] != "" {
			continue
		}
		info, err := s.n.o.Store.Info(ctx, v.Bucket.Name())
		if err != nil {
			return err
		}
		name := strings.TrimRight(("base-" + strings.TrimPrefix(info.Name, "sandbox-"))[:min(len(info.Name)-3, 63)], "-")
		about := map[string]string{volume.Attribute: s.id + basesOf, baseOf: v.Path}
		if info.Parent == nil { // it began empty
			_, err = s.n.o.Store.Create(ctx, name, bucket.CreateOptions{Attributes: about})
		} else {
			_, err = s.n.o.Store.Fork(ctx, info.Name, name, bucket.ForkOptions{At: info.Parent.Snapshot, Attributes: about})
		}
		if err != nil && !errs.Is(err, errs.Exists) { // of a hibernation that failed
			return err
		}
		if s.bases == nil {
			s.bases = map[string]string{}
		}
		s.bases[v.Path] = name
	}
	return nil
}

// basesOf ends the owner's name of buckets that hold what a sandbox began as; their attribute baseOf tells the volume's path.
const (
	basesOf = "-bases"
	baseOf  = "agentrun.base"
)

// deleteBuckets deletes buckets, by whatever they are the values of.
func (n *Node) deleteBuckets(ctx context.Context, names map[string]string) error {
	var all []error
	if n.broken {
		names = nil
	}
	for _, name := range names {
		if err := n.o.Store.Delete(ctx, name, bucket.DeleteOptions{Force: true}); err != nil && !errs.Is(err, errs.NotFound) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Resume wakes a sandbox up: its processes go on where they were. It is errs.NotFound if none of this id sleeps here. After
// an error it sleeps on.
func (n *Node) Resume(ctx context.Context, id string) (*Sandbox, error) {
	return n.resume(ctx, id, 0, nil)
}

// resume is Resume under an epoch and with a claim, where there is one.
func (n *Node) resume(ctx context.Context, id string, epoch uint64, claim *Claim) (*Sandbox, error) {
	if err := n.canSleep("resume", id); err != nil {
		return nil, err
	}
	dir := n.sleeping(id)
	var about asleep
	if err := n.readAbout(dir, &about); errors.Is(err, fs.ErrNotExist) {
		return nil, errs.Msg(errs.NotFound, "resume", id, "no sandbox of this id sleeps here")
	} else if err != nil {
		return nil, err
	}
	s, err := n.sandbox(about.Spec, newFamily())
	if err != nil {
		return nil, err
	}
	s.bases, s.shared, s.mounted, s.epoch, s.image = about.Bases, about.Shared, about.Mounted, epoch, about.Image
	s.claimed.Store(about.Claimed)
	if about.Parent != "" {
		s.origin = &origin{parent: about.Parent, index: about.Index}
	}
	if s.hosted = about.Hosted; s.hosted {
		if claim == nil {
			claim = &Claim{}
		}
		was := s.claimed.Load()
		if err := s.take(claim); err != nil {
			return nil, err
		}
		s.claimed.Store(was || len(claim.Env)+len(claim.Network)+len(claim.Volumes) > 0)
	}
	if err := n.admit(1); err != nil {
		return nil, err
	}
	defer n.admitted(1)
	if _, err := n.Get(id); err == nil {
		return nil, errs.Msg(errs.Exists, "resume", id, "it is awake")
	}
	cut, err := n.wake(ctx, s, dir, claim)
	if err != nil {
		return nil, err
	}
	s.begin(ctx)
	s.before.Memory = 0 // what was on the disk it shares with nobody
	if err := n.add(s); err != nil {
		s.asleep = true // still
		return nil, errors.Join(err, s.drop(context.WithoutCancel(ctx)), cut.Close(ctx))
	}
	// From here on it is awake; what is left of its sleep is Sweep's to find, should this fail.
	if err := errors.Join(n.wakeUp(id), cut.Discard(context.WithoutCancel(ctx))); err != nil {
		n.o.Log.Error("clean up after resume", "sandbox", id, "err", err)
	}
	return s, nil
}

// wakeUp deletes the folder of a sandbox that doesn't sleep any more.
func (n *Node) wakeUp(id string) error {
	n.mu.Lock()
	delete(n.slept, id)
	n.mu.Unlock()
	return removeFolder(n.sleeping(id))
}

// removeFolder deletes a folder of a sandbox or image: as a whole, for whoever looks after a crash.
func removeFolder(dir string) error {
	tmp := dir + making
	if err := os.RemoveAll(tmp); err != nil {
		return failed("delete", "", err)
	}
	if err := os.Rename(dir, tmp); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return failed("delete", "", err)
	}
	err := syncDir(filepath.Dir(dir))
	if e := os.RemoveAll(tmp); e != nil {
		err = errors.Join(err, failed("delete", "", e))
	}
	return err
}

// wake starts s from its folder. The cut is left to the caller unless there is an error.
func (n *Node) wake(ctx context.Context, s *Sandbox, dir string, claim *Claim) (_ *volume.Cut, err error) {
	image, cut, err := n.loadFolder(ctx, dir, s.spec.Engine)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cut.Close(context.WithoutCancel(ctx)))
		}
	}()
	defer func() { err = errors.Join(err, image.Close()) }()
	var instead, more []volume.Spec
	if claim != nil {
		instead, more = overlay(cut.Specs(), claim.Volumes)
	}
	child, err := engine.Start(ctx, image, cut, engine.Identity{ID: s.id, Hostname: s.spec.Hostname, Services: s.services(), Labels: s.labels()}, instead...)
	if err != nil {
		return nil, err
	}
	if err := mountMore(ctx, child.Instance, child.Volumes, more); err != nil {
		return nil, errors.Join(err, child.End(context.WithoutCancel(ctx)))
	}
	s.in, s.volumes = child.Instance, child.Volumes
	return cut, nil
}

// loadFolder reads what saveFolder wrote, of the engine that saved it.
func (n *Node) loadFolder(ctx context.Context, dir, saver string) (image engine.Image, cut *volume.Cut, err error) {
	e, err := n.engine(saver)
	if err != nil {
		return nil, nil, err
	}
	if err := n.loadCut(ctx, dir, &cut); err != nil {
		return nil, nil, err
	}
	err = n.readFile(filepath.Join(dir, imageFile), func(r io.Reader) error {
		image, err = e.Load(ctx, r)
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, cut.Close(context.WithoutCancel(ctx)))
	}
	return image, cut, nil
}

// loadCut reads the volumes of a folder.
func (n *Node) loadCut(ctx context.Context, dir string, cut **volume.Cut) error {
	return n.readFile(filepath.Join(dir, volumeFile), func(r io.Reader) (err error) {
		*cut, err = volume.Load(ctx, volume.Options{Store: n.o.Store, UID: n.o.UID, GID: n.o.GID}, r)
		return err
	})
}

// Sleeping lists the ids of sandboxes that hibernate here, in order, and is empty on a node where they can't.
func (n *Node) Sleeping() ([]string, error) {
	naps, err := n.naps()
	return slices.Sorted(maps.Keys(naps)), err
}

// naps returns what is known of the sandboxes that hibernate here. Dir is looked at once.
func (n *Node) naps() (map[string]nap, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.slept != nil {
		return maps.Clone(n.slept), nil
	}
	found := map[string]nap{}
	ids, err := n.folders(sleepingDir)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		var about asleep
		if err := n.readAbout(n.sleeping(id), &about); err != nil {
			n.o.Log.Error("a sandbox that sleeps can't be read", "sandbox", id, "err", err)
			n.broken = true
			continue
		}
		found[id] = about.nap()
	}
	n.slept = found
	return maps.Clone(found), nil
}

// folders lists the complete folders in a folder of Dir.
func (n *Node) folders(in string) ([]string, error) {
	if n.o.Dir == "" {
		return nil, nil
	}
	list, err := os.ReadDir(filepath.Join(n.o.Dir, in))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, failed("list", in, err)
	}
	var names []string
	for _, e := range list {
		if e.IsDir() && !strings.HasSuffix(e.Name(), making) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Sweep deletes what a former node of this store and folder left behind when it crashed: buckets made for sandboxes that
// neither run nor sleep, and for images that there aren't. Sandboxes that a Host started are taken for asleep: what their durable
// volumes hold is there, everything else is as their image has it when they wake up. It is called before the first sandbox is made, and only where no other
// node makes sandboxes in the same store. While a folder of a sandbox or image can't be read, no bucket is deleted. It returns
// how many it deleted.
func (n *Node) Sweep(ctx context.Context) (deleted int, err error) {
	keep, err := n.owners()
	if err != nil {
		return 0, err
	}
	for _, in := range []string{sleepingDir, imagesDir} {
		half, err := filepath.Glob(filepath.Join(n.o.Dir, in, "*"+making))
		if n.o.Dir == "" || err != nil {
			continue
		}
		for _, dir := range half {
			if err := os.RemoveAll(dir); err != nil {
				return 0, failed("sweep", "", err)
			}
		}
	}
	if n.o.Store == nil {
		return 0, nil
	}
	if n.broken {
		n.o.Log.Error("no bucket is deleted: they may belong to what can't be read")
	}
	var names []string
	lost := map[string]*crashed{}
	err = n.o.Store.List(ctx, func(i *bucket.Info) error {
		owner := i.Attributes[volume.Attribute]
		switch image := i.Attributes[imageLabel]; {
		case owner == "" || keep[owner] || keep[bucketName+i.Name]:
		case image != "" && keep[imageLabel+image] && !keep[owner+folderOf]:
			lost[owner] = lost[owner].with(i)
		default:
			names = append(names, i.Name)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	// Of a sandbox that is there still, what it began as is, too.
	names, err = n.adoptBases(ctx, names, lost)
	if err != nil {
		return 0, err
	}
	n.mu.Lock()
	for id, c := range lost {
		n.slept[id] = nap{hosted: true, claimed: true, epoch: c.epoch, crashed: c}
	}
	n.mu.Unlock()
	if n.broken {
		names = nil
	}
	for _, name := range names {
		if err := n.o.Store.Delete(ctx, name, bucket.DeleteOptions{Force: true}); err != nil && !errs.Is(err, errs.NotFound) {
			return deleted, err
		}
		deleted++
		n.o.Log.Info("deleted a bucket that a crash left behind", "bucket", name)
	}
	return deleted, nil
}

// folderOf ends, in what owners returns, the id of a sandbox that has a folder. It was saved, or is waking up: nobody was told that it runs, so what
// the folder holds is what counts.
const folderOf = " folder"

// bucketName comes before the name of a bucket in what owners returns.
const bucketName = "bucket "

// owners are the names in whose attribute buckets stay.
func (n *Node) owners() (map[string]bool, error) {
	keep := map[string]bool{}
	naps, err := n.naps()
	if err != nil {
		return nil, err
	}
	for id, x := range naps {
		keep[x.cut], keep[id+basesOf] = true, true
		if x.crashed != nil {
			keep[id] = true
		} else {
			keep[id+folderOf] = true
		}
		for _, name := range x.shared {
			keep[bucketName+name] = true
		}
	}
	for _, s := range n.List() {
		keep[s.id], keep[s.id+basesOf] = true, true
	}
	images, err := n.folders(imagesDir)
	if err != nil {
		return nil, err
	}
	for _, name := range images {
		var about savedImage
		if err := n.readAbout(n.imageDir(name), &about); err != nil {
			n.o.Log.Error("an image can't be read", "image", name, "err", err)
			n.broken = true
			continue
		}
		keep[about.Cut], keep[imageLabel+name] = true, true
	}
	return keep, nil
}

// writeFile writes a file that is durable when it returns, sealed if the node seals.
func (n *Node) writeFile(path string, f func(io.Writer) error) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return failed("hibernate", "", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var to io.Writer = file
	var seal *sealer
	if n.o.Seal != nil {
		seal = newSealer(n.o.Seal, file)
		to = seal
	}
	w := bufio.NewWriterSize(to, 1<<20)
	if err := f(w); err != nil {
		return err
	}
	err = w.Flush()
	if seal != nil {
		err = errors.Join(err, seal.end())
	}
	if err := errors.Join(err, file.Sync()); err != nil {
		return failed("hibernate", "", err)
	}
	return nil
}

func (n *Node) readFile(path string, f func(io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return failed("resume", "", err)
	}
	defer file.Close()
	var from io.Reader = bufio.NewReaderSize(file, 1<<20)
	if n.o.Seal != nil {
		from = newOpener(n.o.Seal, from)
	}
	return f(from)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return failed("hibernate", "", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return failed("hibernate", "", err)
	}
	return nil
}

// failed words an error of the host's files without their path, which is nobody's business who asks for a sandbox.
func failed(op, id string, err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	if errors.Is(err, syscall.ENOSPC) {
		return errs.New(errs.NoSpace, op, id, err)
	}
	return errs.New(errs.Other, op, id, err)
}
