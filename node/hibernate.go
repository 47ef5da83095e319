package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// asleep is what specFile holds.
type asleep struct {
	Spec   Spec   `json:"spec"`
	Parent string `json:"parent,omitempty"`
	Index  int    `json:"index,omitempty"`
}

// canSleep fails where sandboxes can't.
func (n *Node) canSleep(op, id string) error {
	if n.o.Dir == "" {
		return errs.Msg(errs.Unsupported, op, id, "this node has no place for sleeping sandboxes")
	}
	return checkID(id)
}

// Hibernate saves a sandbox to disk, files and running processes, and ends it here. When it returns, what it saved is
// durable; after an error the sandbox goes on. Resume wakes it up. Forks that it made of itself must have ended.
func (s *Sandbox) Hibernate(ctx context.Context) error {
	if err := s.n.canSleep("hibernate", s.id); err != nil {
		return err
	}
	if len(s.family.of(s.id)) > 0 {
		return errs.Msg(errs.Unsupported, "hibernate", s.id, "forks that it made of itself are running; end them first")
	}
	s.mu.Lock()
	err := s.living()
	if err == nil {
		err = s.save(ctx)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.End(ctx)
}

// save writes the sandbox's folder. The lock is held.
func (s *Sandbox) save(ctx context.Context) (err error) {
	short, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	image, cut, err := engine.Capture(short, s.in, s.volumes, s.id+"-cut", engine.FreezeOptions{})
	if err != nil {
		return err
	}
	end := context.WithoutCancel(ctx)
	defer func() {
		err = errors.Join(err, image.Close())
		if err == nil {
			err = cut.Close(end)
		} else {
			err = errors.Join(err, cut.Discard(end))
		}
	}()
	dir := s.n.sleeping(s.id)
	tmp := dir + making
	if err := os.RemoveAll(tmp); err != nil {
		return failed("hibernate", s.id, err)
	}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return failed("hibernate", s.id, err)
	}
	defer os.RemoveAll(tmp) // is gone when all went well
	about := asleep{Spec: s.spec}
	if s.origin != nil {
		about.Parent, about.Index = s.origin.parent, s.origin.index
	}
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	err = errors.Join(
		writeFile(filepath.Join(tmp, specFile), func(w io.Writer) error { _, err := w.Write(text); return err }),
		writeFile(filepath.Join(tmp, imageFile), func(w io.Writer) error { return image.Save(ctx, w, cut.Mounts()) }),
		writeFile(filepath.Join(tmp, volumeFile), cut.Save),
		syncDir(tmp))
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return failed("hibernate", s.id, err)
	}
	return syncDir(s.n.o.Dir)
}

// Resume wakes a sandbox up: its processes go on where they were. It is errs.NotFound if none of this id sleeps here. After
// an error it sleeps on.
func (n *Node) Resume(ctx context.Context, id string) (*Sandbox, error) {
	if err := n.canSleep("resume", id); err != nil {
		return nil, err
	}
	dir := n.sleeping(id)
	text, err := os.ReadFile(filepath.Join(dir, specFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.Msg(errs.NotFound, "resume", id, "no sandbox of this id sleeps here")
	} else if err != nil {
		return nil, failed("resume", id, err)
	}
	var about asleep
	if err := json.Unmarshal(text, &about); err != nil {
		return nil, errs.New(errs.Corrupt, "resume", id, err)
	}
	s, err := n.sandbox(about.Spec, newFamily())
	if err != nil {
		return nil, err
	}
	if about.Parent != "" {
		s.origin = &origin{about.Parent, about.Index}
	}
	if err := n.admit(1); err != nil {
		return nil, err
	}
	defer n.admitted(1)
	if _, err := n.Get(id); err == nil {
		return nil, errs.Msg(errs.Exists, "resume", id, "it is awake")
	}
	cut, err := n.wake(ctx, s, dir)
	if err != nil {
		return nil, err
	}
	if err := n.add(s); err != nil {
		return nil, errors.Join(err, s.drop(context.WithoutCancel(ctx)), cut.Close(ctx))
	}
	// From here on it is awake; what is left of its sleep is Sweep's to find, should this fail.
	if err := errors.Join(os.RemoveAll(dir), cut.Discard(context.WithoutCancel(ctx))); err != nil {
		n.o.Log.Error("clean up after resume", "sandbox", id, "err", err)
	}
	return s, nil
}

// wake starts s from its folder. The cut is left to the caller unless there is an error.
func (n *Node) wake(ctx context.Context, s *Sandbox, dir string) (cut *volume.Cut, err error) {
	o := volume.Options{Store: n.o.Store, Owner: s.id, UID: n.o.UID, GID: n.o.GID}
	err = readFile(filepath.Join(dir, volumeFile), func(r io.Reader) error {
		cut, err = volume.Load(ctx, o, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cut.Close(context.WithoutCancel(ctx)))
		}
	}()
	var image engine.Image
	err = readFile(filepath.Join(dir, imageFile), func(r io.Reader) error {
		image, err = n.o.Engine.Load(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	children, err := engine.StartAll(ctx, image, cut, []engine.Identity{{ID: s.id, Hostname: s.spec.Hostname, Services: s.services()}})
	if err != nil {
		return nil, err
	}
	s.in, s.volumes = children[0].Instance, children[0].Volumes
	return cut, nil
}

// Sleeping lists the ids of sandboxes that hibernate here, and is empty on a node where they can't.
func (n *Node) Sleeping() ([]string, error) {
	if n.o.Dir == "" {
		return nil, nil
	}
	list, err := os.ReadDir(n.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, failed("list sleeping sandboxes", "", err)
	}
	var ids []string
	for _, e := range list {
		if e.IsDir() && !strings.HasSuffix(e.Name(), making) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// Sweep deletes what a former node of this store and folder left behind when it crashed: buckets made for sandboxes that
// neither run nor sleep. It is called before the first sandbox is made, and only where no other node makes sandboxes in
// the same store. It returns how many buckets it deleted.
func (n *Node) Sweep(ctx context.Context) (deleted int, err error) {
	ids, err := n.Sleeping()
	if err != nil {
		return 0, err
	}
	keep := map[string]bool{}
	for _, id := range ids {
		keep[id+"-cut"] = true
	}
	for _, s := range n.List() {
		keep[s.id] = true
	}
	if n.o.Dir != "" {
		if half, err := filepath.Glob(filepath.Join(n.o.Dir, "*"+making)); err == nil {
			for _, dir := range half {
				if err := os.RemoveAll(dir); err != nil {
					return 0, failed("sweep", "", err)
				}
			}
		}
	}
	if n.o.Store == nil {
		return 0, nil
	}
	var names []string
	err = n.o.Store.List(ctx, func(i *bucket.Info) error {
		if owner := i.Attributes[volume.Attribute]; owner != "" && !keep[owner] {
			names = append(names, i.Name)
		}
		return nil
	})
	if err != nil {
		return 0, err
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

// writeFile writes a file that is durable when it returns.
func writeFile(path string, f func(io.Writer) error) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return failed("hibernate", "", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriterSize(file, 1<<20)
	if err := f(w); err != nil {
		return err
	}
	if err := errors.Join(w.Flush(), file.Sync()); err != nil {
		return failed("hibernate", "", err)
	}
	return nil
}

func readFile(path string, f func(io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return failed("resume", "", err)
	}
	defer file.Close()
	return f(bufio.NewReaderSize(file, 1<<20))
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
	return errs.New(errs.Other, op, id, err)
}
