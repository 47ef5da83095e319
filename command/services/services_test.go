package services

import (
	"context"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

type none struct{}

func (none) Lookup(string) (proc.Program, bool) { return nil, false }
func (none) Names() []string                    { return nil }

func TestNothingOffered(t *testing.T) {
	s, err := proc.New(proc.Options{Namespace: vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})}), Commands: none{}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.NewProcess(proc.Root{Args: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Abandon(0)
	got := From(p)
	if got == nil || got.Control != nil {
		t.Fatalf("From = %+v", got)
	}
	_, err = got.Connect(context.Background(), "tcp", "example.org:80")
	if !errs.Is(err, errs.Denied) || errs.HintOf(err) == "" {
		t.Errorf("Connect: %v, hint %q", err, errs.HintOf(err))
	}
}
