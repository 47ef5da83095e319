package coreutils_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/command/coreutils"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// output is what a command has written so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// until waits for some text to be there.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waiting for " + what)
		}
	}
}

// Commands that wait are copied as they wait, and go on alike in the original, in a copy, and in one that was saved.
func TestAtRest(t *testing.T) {
	for _, tc := range []struct {
		name   string
		args   []string
		input  string // before the freeze
		ready  string // what is written by then
		file   string // appended to /f in each world after it, for tail
		more   string // input after it
		want   string // what is written after it
		status int
		signal int // that ends what doesn't end by itself
	}{
		{name: "sleep", args: []string{"sleep", "0.3"}},
		{name: "sleep, killed", args: []string{"sleep", "1000"}, signal: proc.SIGTERM, status: 128 + proc.SIGTERM},
		{name: "cat", args: []string{"cat", "nope", "/f", "-", "/f"}, input: "one\n", ready: "f\none\n", more: "two\n", want: "two\nf\n", status: 1},
		{name: "tail -f", args: []string{"tail", "-s", "0.01", "-f", "/f"}, ready: "f\n", file: "more\n", want: "more\n", signal: proc.SIGTERM, status: 128 + proc.SIGTERM},
		{name: "timeout that fires", args: []string{"timeout", "0.4", "sleep", "1000"}, status: 124},
		{name: "timeout that needn't", args: []string{"timeout", "1000", "cat", "/f", "-"}, ready: "f\n", more: "x\n", want: "x\n"},
		{name: "timeout, signalled", args: []string{"timeout", "1000", "sleep", "1000"}, signal: proc.SIGTERM, status: 128 + proc.SIGTERM},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmds := command.NewSet(nil)
			fs := memfs.New(memfs.Options{Mode: 0o777})
			ns := vfs.NewNamespace(vfs.Mount{FS: fs, Special: proc.OpenSpecial})
			ns.Mount(t.Context(), vfs.Mount{Path: "/bin", FS: proc.NewBin(cmds)})
			s, err := proc.New(proc.Options{Namespace: ns, Commands: cmds})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(context.Background())
			appendTo(t, ns, "f\n")
			in, keys := io.Pipe()
			defer keys.Close()
			out := &output{}
			p, err := s.NewProcess(proc.Root{Args: tc.args, Env: []string{"PATH=/bin"}, Files: map[int]vfs.File{0: proc.NewInput(in, false), 1: s.NewOutput(out, false), 2: s.NewOutput(nil, false)}})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.StartFile("/bin/"+tc.args[0], tc.args); err != nil {
				t.Fatal(err)
			}
			if tc.input != "" {
				keys.Write([]byte(tc.input))
			}
			until(t, "the output", func() bool { return out.String() == tc.ready })
			im := image(t, s)
			defer im.Close()
			var saved bytes.Buffer
			if err := im.Save(&saved, nil); err != nil {
				t.Fatal(err)
			}
			again, err := proc.LoadImage(&saved, coreutils.Restore)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			for _, im := range []*proc.Image{im, again} {
				root := fs.Clone()
				copied, _ := ns.Clone(func(m vfs.Mount) (vfs.Mount, error) {
					if m.Path == "/" {
						m.FS = root
					}
					return m, nil
				})
				c, err := im.Start(proc.StartOptions{Namespace: copied, Commands: cmds})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close(context.Background())
				got := &output{}
				q := c.Lookup(p.Pid())
				if _, err := c.Attach(p.Pid(), proc.Streams{Stdin: strings.NewReader(tc.more), Stdout: got}); err != nil {
					t.Fatal(err)
				}
				ends(t, copied, q, got, tc.file, tc.want, tc.signal, tc.status)
			}
			if tc.more != "" {
				keys.Write([]byte(tc.more))
			}
			keys.Close()
			ends(t, ns, p, out, tc.file, tc.ready+tc.want, tc.signal, tc.status)
		})
	}
}

// ends checks how a command goes on.
func ends(t *testing.T, ns *vfs.Namespace, p *proc.Process, out *output, file, want string, signal, status int) {
	t.Helper()
	if file != "" {
		appendTo(t, ns, file)
	}
	if signal != 0 {
		until(t, want, func() bool { return out.String() == want })
		p.Post(signal)
	}
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("it hangs")
	}
	if got := out.String(); got != want || p.Status() != status {
		t.Errorf("%q, status %d; want %q, %d", got, p.Status(), want, status)
	}
}

func appendTo(t *testing.T, ns *vfs.Namespace, text string) {
	t.Helper()
	f, err := ns.Open(t.Context(), vfs.Cred{}, "", "/f", vfs.O_WRONLY|vfs.O_CREAT|vfs.O_APPEND, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
}

func image(t *testing.T, s *proc.Sandbox) *proc.Image {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	f, err := s.Freeze(ctx, proc.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Thaw()
	im, err := f.Capture()
	if err != nil {
		t.Fatal(err)
	}
	return im
}
