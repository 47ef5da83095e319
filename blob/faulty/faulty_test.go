package faulty_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"agentrun.dev/blob"
	"agentrun.dev/blob/blobtest"
	"agentrun.dev/blob/faulty"
	"agentrun.dev/errs"
)

func TestConformance(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		s, err := faulty.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

var bg = context.Background()

func content(t *testing.T, s blob.Store, name string) string {
	t.Helper()
	b, err := s.Open(bg, name)
	if errs.Is(err, errs.NotFound) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	p := make([]byte, b.Size())
	if _, err := b.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// TestPowerCut checks what the crash tests of other packages rely on.
func TestPowerCut(t *testing.T) {
	f, err := faulty.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Create(bg, "a")
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = a.Append([]byte("synced"))
	must(err)
	must(a.Sync())
	_, err = a.Append([]byte(" lost"))
	must(err)
	b, err := f.Create(bg, "b")
	must(err)
	_, err = b.Append([]byte("never synced"))
	must(err)
	must(a.(blob.Puncher).Punch(0, 1))
	f.CutAt(f.Ops()+1, 0.5)
	if _, err := a.Append([]byte("1234")); !errors.Is(err, faulty.ErrPowerCut) {
		t.Fatalf("append at the cut: %v", err)
	}
	_, openErr := f.Open(bg, "a")
	_, readErr := a.ReadAt(make([]byte, 1), 0)
	for _, err := range []error{openErr, readErr, a.Sync(), f.Remove(bg, "a")} {
		if !errors.Is(err, faulty.ErrPowerCut) {
			t.Errorf("after the cut: %v", err)
		}
	}
	lost, err := f.Survivors(faulty.Lost, nil)
	must(err)
	if got := content(t, lost, "a") + content(t, lost, "b"); got != "\x00ynced-" {
		t.Errorf("lost: %q", got)
	}
	kept, err := f.Survivors(faulty.Kept, nil)
	must(err)
	if got := content(t, kept, "a") + "," + content(t, kept, "b"); got != "\x00ynced lost12,never synced" {
		t.Errorf("kept: %q", got)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		torn, err := f.Survivors(faulty.Torn, rng)
		must(err)
		if got := content(t, torn, "a"); !strings.HasPrefix("\x00ynced lost12", got) || len(got) < 6 {
			t.Errorf("torn: %q", got)
		}
	}
}

func TestInject(t *testing.T) {
	f, err := faulty.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	f.Inject(func(op faulty.Op) error {
		if op.Kind == faulty.Append && op.Size == 3 {
			return boom
		}
		return nil
	})
	b, err := f.Create(bg, "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append([]byte("abc")); !errors.Is(err, boom) || b.Size() != 0 {
		t.Errorf("%v, size %d", err, b.Size())
	}
	if _, err := b.Append([]byte("ab")); err != nil {
		t.Error(err)
	}
}
