package proc_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// saved makes a sandbox with something of everything, and its saved image.
func saved(t testing.TB, size int) (*proc.Sandbox, map[int]string, []byte) {
	t.Helper()
	s := sandboxWith(t, proc.Options{})
	boss, sink := pipeline(t, s, 5, size, 1)
	want := map[int]string{sink: expect(5, size, 1), boss.Pid(): "[0 0 0]"}
	tty := newTTY(t, s)
	tty.Write([]byte("typed\rhalf"))
	p, _ := s.NewProcess(proc.Root{Args: []string{"rest"}, TTY: tty, Files: map[int]vfs.File{1: s.NewOutput(io.Discard, false)}})
	f, _ := p.Open("/f", syscall.O_RDWR|syscall.O_CREAT, 0o600)
	f.Write([]byte("0123456789"))
	f.Seek(3, io.SeekStart)
	p.MemFile([]byte("text"))
	p.OpenAt(9, "/dev/zero", syscall.O_RDONLY, 0)
	z, _ := p.Fork()
	p.Start(&node{nodeState{Kind: "sleeper", Until: time.Now().Add(time.Hour)}})
	z.Abandon(7)
	im := freeze(t, s)
	defer im.Close()
	var b bytes.Buffer
	lasting := func(o vfs.OpenFile) (vfs.OpenFile, error) { return s.Namespace().Lasting(context.Background(), o) }
	if err := im.Save(&b, lasting); err != nil {
		t.Fatal(err)
	}
	return s, want, b.Bytes()
}

func TestSaveLoad(t *testing.T) {
	s, want, data := saved(t, 400000)
	im, err := proc.LoadImage(bytes.NewReader(data), restoreNode)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	res := &results{}
	c := start(t, im, clone(t, s), res)
	for pid := range want {
		ended(t, c, pid)
	}
	res.mu.Lock()
	for pid, text := range want {
		if s.Lookup(pid) != nil && res.got[pid] != text && res.got[pid] != "" {
			t.Errorf("process %d: %q, want %q", pid, res.got[pid], text)
		}
	}
	res.mu.Unlock()
	var rest *proc.Process
	for _, p := range c.Processes() {
		if p.Args()[0] == "rest" && p.Parent() == nil {
			rest = p
		}
	}
	if rest == nil || len(rest.Children()) != 1 || rest.Children()[0].Status() != 7 || rest.TTY() == nil {
		t.Fatal("the process that rests isn't as it was")
	}
	f, err := rest.File(3)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if io.ReadFull(f, b); string(b) != "3456" {
		t.Errorf("the offset: %q", b)
	}
	var again bytes.Buffer
	if err := im.Save(&again, nil); err != nil || !bytes.Equal(again.Bytes(), data) {
		t.Errorf("saved again it differs: %v, %d and %d bytes", err, again.Len(), len(data))
	}
}

// Damage is found, whatever was damaged.
func TestLoadDamaged(t *testing.T) {
	_, _, data := saved(t, 400000)
	for _, i := range []int{0, 16, 20, 40, len(data) / 2, len(data) - 33, len(data) - 1} {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		im, err := proc.LoadImage(bytes.NewReader(bad), restoreNode)
		if err == nil {
			im.Close()
			t.Errorf("byte %d changed: accepted", i)
		} else if k := errs.KindOf(err); k != errs.Corrupt && k != errs.Unsupported && k != errs.TooLarge {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	for _, n := range []int{0, 5, 100, len(data) - 1} {
		if _, err := proc.LoadImage(bytes.NewReader(data[:n]), restoreNode); !errs.Is(err, errs.Corrupt) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	other := strings.Replace(string(data), "AgentRun image 1", "AgentRun image 2", 1)
	if _, err := proc.LoadImage(strings.NewReader(other), restoreNode); !errs.Is(err, errs.Unsupported) {
		t.Errorf("another version: %v", err)
	}
	_, err := proc.LoadImage(bytes.NewReader(data), func(string, []byte) (proc.State, error) { return nil, errors.New("unknown") })
	if err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("a state that nobody can restore: %v", err)
	}
}

// A state that can't be saved says so.
func TestSaveUnsupported(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	p, _ := s.NewProcess(proc.Root{Args: []string{"stubborn"}})
	p.Start(stubborn{})
	im := freeze(t, s)
	defer im.Close()
	if err := im.Save(io.Discard, nil); !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "stubborn") {
		t.Errorf("%v", err)
	}
}

// stubborn rests for ever, and has a state that stays in memory.
type stubborn struct{}

func (stubborn) Run(p *proc.Process) int {
	return status(p.Rest(func() error { return p.Sleep(time.Hour) }))
}
func (s stubborn) Capture() (proc.State, error)               { return s, nil }
func (s stubborn) Resume(*proc.Process) (proc.Program, error) { return s, nil }
func (stubborn) Close() error                                 { return nil }

// FuzzLoadImage changes the text of an image, with a checksum that is right: what is accepted starts.
func FuzzLoadImage(f *testing.F) {
	_, _, data := saved(f, 0)
	size := binary.BigEndian.Uint64(data[17:25])
	text, rest := data[25:25+size], data[25+size:len(data)-sha256.Size]
	f.Add(text)
	for _, change := range []string{`"Pid":`, `"File":`, `"Pipe":`, `"Kind":`, `"Parent":`, `"TTY":`, `"Segments":[`, `"Soft":`} {
		for _, v := range []string{"-1", "9", "99999999", "1e99"} {
			i := bytes.Index(text, []byte(change))
			if i < 0 {
				continue
			}
			i += len(change)
			end := i
			for text[end] >= '0' && text[end] <= '9' || text[end] == '-' {
				end++
			}
			f.Add(slices.Concat(text[:i], []byte(v), text[end:]))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b := slices.Concat(data[:17], binary.BigEndian.AppendUint64(nil, uint64(len(text))), text, rest)
		sum := sha256.Sum256(b)
		im, err := proc.LoadImage(bytes.NewReader(append(b, sum[:]...)), restoreNode)
		if err != nil {
			if k := errs.KindOf(err); k != errs.Corrupt && k != errs.Invalid {
				t.Errorf("%v", err)
			}
			return
		}
		defer im.Close()
		ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{Mode: 0o777}), Special: proc.OpenSpecial})
		c, err := im.Start(proc.StartOptions{Namespace: ns, Commands: programs()})
		if err == nil {
			closeSandbox(t, c)
		}
	})
}
