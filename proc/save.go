package proc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"syscall"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// A saved image is a magic number with the format's version, sections, and the SHA-256 of all that. A section is its
// length (8 bytes, big-endian) and content: the image as JSON, then for each program's state its kind and its data.
const imageMagic = "AgentRun image 1\n"

// Limits of what LoadImage takes.
const (
	maxImage = 1 << 30 // bytes of the image without the states
	maxState = 8 << 30 // bytes of one program's state
	maxKind  = 256
	maxProcs = 1 << 16
	maxFd    = 1 << 16
	maxTable = 1 << 22 // descriptors of all processes, with the gaps between them
)

// Save writes the image; errs.Unsupported if a program's state is no Saver. lasting completes the description of each open file
// so that it holds wherever the image is loaded: Lasting of a namespace of the same moment. nil leaves them as they are. A file
// that it doesn't find any more, as one of /proc may be, is dead in what is loaded; a done context is errs.Canceled.
func (im *Image) Save(w io.Writer, lasting func(vfs.OpenFile) (vfs.OpenFile, error)) error {
	meta := im.image
	meta.Files = append([]fileImage(nil), im.Files...)
	for i := range meta.Files {
		f := &meta.Files[i]
		if f.Kind != fileVFS || lasting == nil {
			continue
		}
		open, err := lasting(f.Open)
		switch {
		case err == nil:
			f.Open = open
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			return errs.New(errs.Canceled, "save image", f.Path, err)
		case errors.Is(err, syscall.EFBIG):
			return errs.New(errs.TooLarge, "save image", f.Path, err)
		default:
			f.Kind = fileDead
		}
	}
	return im.save(w, meta)
}

func (im *Image) save(w io.Writer, meta image) error {
	im.mu.RLock()
	defer im.mu.RUnlock()
	if im.closed {
		return errs.Msg(errs.Unavailable, "save image", "", "the image is closed")
	}
	text, err := json.Marshal(&meta)
	if err != nil {
		return errs.New(errs.Other, "save image", "", err)
	}
	h := sha256.New()
	out := io.MultiWriter(w, h)
	if _, err := io.WriteString(out, imageMagic); err != nil {
		return errs.New(errs.Other, "save image", "", err)
	}
	if err := section(out, text); err != nil {
		return err
	}
	for i := range im.Procs {
		pi := &im.Procs[i]
		if pi.Zombie {
			continue
		}
		saver, ok := im.states[pi.State].(Saver)
		if !ok {
			return errs.Msg(errs.Unsupported, "save image", pi.name(), "its state can't be saved")
		}
		kind, data, err := saver.Save()
		if err != nil {
			return errs.New(errs.KindOf(err), "save image", pi.name(), err)
		}
		if err := errors.Join(section(out, []byte(kind)), section(out, data)); err != nil {
			return err
		}
	}
	if _, err := w.Write(h.Sum(nil)); err != nil {
		return errs.New(errs.Other, "save image", "", err)
	}
	return nil
}

func (pi *procImage) name() string { return fmt.Sprintf("%d (%s)", pi.Pid, commOf(pi.Args)) }

func section(w io.Writer, b []byte) error {
	_, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	if err == nil {
		_, err = w.Write(b)
	}
	if err != nil {
		return errs.New(errs.Other, "save image", "", err)
	}
	return nil
}

// LoadImage reads what Save wrote; restore makes a program's state of what its Saver saved. What isn't an image, is
// damaged or contradicts itself is errs.Corrupt, another version's errs.Unsupported.
func LoadImage(r io.Reader, restore func(kind string, data []byte) (State, error)) (*Image, error) {
	l := &loader{h: sha256.New(), w: r}
	l.r = io.TeeReader(r, l.h)
	im, err := l.image(restore)
	if err != nil {
		im.Close()
		return nil, err
	}
	return im, nil
}

// loader reads an image while it sums it up.
type loader struct {
	w io.Reader
	r io.Reader
	h hash.Hash
}

func corrupt(what string, err error) error {
	if err == nil {
		return errs.Msg(errs.Corrupt, "load image", "", what)
	}
	return errs.New(errs.Corrupt, "load image", what, err)
}

func (l *loader) image(restore func(kind string, data []byte) (State, error)) (*Image, error) {
	im := &Image{}
	magic := make([]byte, len(imageMagic))
	if _, err := io.ReadFull(l.r, magic); err != nil {
		return im, corrupt("beginning", err)
	}
	if string(magic) != imageMagic {
		if bytes.HasPrefix(magic, []byte("AgentRun image ")) {
			return im, errs.Msg(errs.Unsupported, "load image", "", "of another version")
		}
		return im, corrupt("not an image", nil)
	}
	text, err := l.section(maxImage)
	if err != nil {
		return im, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&im.image); err != nil {
		return im, corrupt("image", err)
	}
	if err := im.check(); err != nil {
		return im, corrupt("image", err)
	}
	// Nothing is made of the states before the sum is known to be right.
	type saved struct{ kind, data []byte }
	var states []saved
	for i := range im.Procs {
		if im.Procs[i].Zombie {
			continue
		}
		kind, err := l.section(maxKind)
		if err != nil {
			return im, err
		}
		data, err := l.section(maxState)
		if err != nil {
			return im, err
		}
		im.Procs[i].State = len(states)
		states = append(states, saved{kind, data})
	}
	sum, got := l.h.Sum(nil), make([]byte, sha256.Size)
	if _, err := io.ReadFull(l.w, got); err != nil {
		return im, corrupt("checksum", err)
	}
	if !bytes.Equal(sum, got) {
		return im, corrupt("the checksum differs", nil)
	}
	for _, s := range states {
		st, err := restore(string(s.kind), s.data)
		if err == nil && st == nil {
			err = errors.New("no state")
		}
		if err != nil {
			return im, errs.New(errs.KindOf(err), "load image", string(s.kind), err)
		}
		im.states = append(im.states, st)
	}
	return im, nil
}

// section reads one. Memory grows with what is there, not with what the length claims.
func (l *loader) section(limit int64) ([]byte, error) {
	var n [8]byte
	if _, err := io.ReadFull(l.r, n[:]); err != nil {
		return nil, corrupt("section", err)
	}
	size := binary.BigEndian.Uint64(n[:])
	if size > uint64(limit) {
		return nil, errs.Msg(errs.TooLarge, "load image", "section", fmt.Sprintf("%d bytes", size))
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, l.r, int64(size)); err != nil {
		return nil, corrupt("section", err)
	}
	return b.Bytes(), nil
}

// check refuses an image that contradicts itself, so that Start may rely on it.
func (im *image) check() error {
	if len(im.Procs) > maxProcs || im.NextPid < 1 || im.NextPid > maxPid || im.NextPipe > 1<<62 {
		return errors.New("numbers out of range")
	}
	for _, n := range []int64{im.Output, im.Written, im.Steps, im.CPU, im.MemoryPeak} {
		if n < 0 {
			return errors.New("usage out of range")
		}
	}
	pids := make(map[int]bool, len(im.Procs))
	for i := range im.Procs {
		p := &im.Procs[i]
		if p.Pid < 1 || p.Pid > maxPid || pids[p.Pid] || p.Pgid < 1 || p.Sid < 1 || p.CPU < 0 || p.Status < 0 || p.Status > 255 || p.KilledBy < 0 || p.KilledBy > MaxSignal {
			return fmt.Errorf("process %d: numbers out of range", p.Pid)
		}
		pids[p.Pid] = true
	}
	table := 0
	for i := range im.Procs {
		if err := im.checkProc(&im.Procs[i], pids); err != nil {
			return fmt.Errorf("process %d: %w", im.Procs[i].Pid, err)
		}
		top := 0
		for _, f := range im.Procs[i].Fds {
			top = max(top, f.Fd+1)
		}
		if table += top; table > maxTable {
			return errors.New("too many descriptors")
		}
	}
	if err := im.checkParents(); err != nil {
		return err
	}
	for i := range im.Files {
		if err := im.checkFile(&im.Files[i]); err != nil {
			return fmt.Errorf("file %d: %w", i, err)
		}
	}
	for i := range im.Pipes {
		if len(im.Pipes[i].Data) > pipeSize {
			return fmt.Errorf("pipe %d: too full", i)
		}
	}
	if err := im.checkSockets(); err != nil {
		return err
	}
	return im.checkTTYs()
}

func (im *image) checkProc(p *procImage, pids map[int]bool) error {
	switch {
	case p.Parent != 0 && (!pids[p.Parent] || p.Parent == p.Pid), p.Parent == 0 && p.Zombie:
		return errors.New("no such parent")
	case p.Zombie:
		return nil
	case len(p.Disp) != MaxSignal+1, p.StopSig < 0 || p.StopSig > MaxSignal, p.Pending&1 != 0, p.Memory < 0,
		p.TTY < 0 || p.TTY > len(im.TTYs), len(p.Stdio) != 0 && len(p.Stdio) != 3, len(p.Cwd) == 0 || p.Cwd[0] != '/':
		return errors.New("out of range")
	}
	for _, d := range p.Disp {
		if d > Handle {
			return errors.New("dispositions out of range")
		}
	}
	fds := make(map[int]bool, len(p.Fds))
	for _, f := range p.Fds {
		if f.Fd < 0 || f.Fd > maxFd || f.File < 0 || f.File >= len(im.Files) || fds[f.Fd] {
			return errors.New("descriptors out of range")
		}
		fds[f.Fd] = true
	}
	for _, n := range p.Stdio {
		if n < -1 || n >= len(im.Files) {
			return errors.New("streams out of range")
		}
	}
	return nil
}

// checkParents refuses processes that are their own ancestors.
func (im *image) checkParents() error {
	parent := make(map[int]int, len(im.Procs))
	for i := range im.Procs {
		parent[im.Procs[i].Pid] = im.Procs[i].Parent
	}
	good := make(map[int]bool, len(parent))
	for pid := range parent {
		var way []int
		for seen := map[int]bool{}; pid != 0 && !good[pid]; pid = parent[pid] {
			if seen[pid] {
				return fmt.Errorf("process %d: its own ancestor", pid)
			}
			seen[pid] = true
			way = append(way, pid)
		}
		for _, pid := range way {
			good[pid] = true
		}
	}
	return nil
}

func (im *image) checkFile(f *fileImage) error {
	within := func(n int) bool { return f.Pipe >= 0 && f.Pipe < n }
	ok := false
	switch f.Kind {
	case fileDead, fileVFS:
		ok = true
	case fileDevice:
		ok = f.Attr != nil
	case filePipe:
		ok = within(len(im.Pipes)) && (f.Read || f.Write)
	case fileMemory:
		ok = f.Offset >= 0
	case fileStream:
		ok = within(len(im.Streams))
	case fileTTY:
		ok = within(len(im.TTYs))
	case fileSocket:
		ok = within(len(im.Sockets))
	}
	if !ok {
		return errors.New("out of range")
	}
	return nil
}

func (im *image) checkTTYs() error {
	numbers := make(map[int]bool, len(im.TTYs))
	for i := range im.TTYs {
		t := &im.TTYs[i]
		if t.N < 0 || t.N >= maxTTYs || !t.HungUp && numbers[t.N] || t.Column < 0 || t.LineFrom < 0 || len(t.Line) > 2*ttyLine {
			return fmt.Errorf("terminal %d: out of range", i)
		}
		numbers[t.N] = numbers[t.N] || !t.HungUp
		sum := 0
		for _, n := range t.Segments {
			if n < 0 || n > len(t.Ready) {
				return fmt.Errorf("terminal %d: lines out of range", i)
			}
			sum += n
		}
		if sum > len(t.Ready) || t.Termios.Lflag&ICANON != 0 && sum != len(t.Ready) {
			return fmt.Errorf("terminal %d: lines out of range", i)
		}
	}
	return nil
}
