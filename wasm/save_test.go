package wasm_test

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/wasm"
	wt "agentrun.dev/wasm/wasmtest"
)

// saved returns a saved snapshot of a reactor in whose memory there are a few words.
func saved(t testing.TB, b *box, m *wasm.Module) (data []byte) {
	t.Helper()
	b.inside(func(p *proc.Process) {
		in, err := m.Instantiate(p, wasm.Config{})
		if err != nil {
			t.Error(err)
			return
		}
		defer in.Close()
		call1(t, p, in, "set", 7)
		call1(t, p, in, "grow", 3)
		copy(in.Memory(100_000, 5), "first")
		copy(in.Memory(42*65536, 3), "top")
		s, err := in.Snapshot()
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		var w bytes.Buffer
		if err := s.Save(&w); err != nil {
			t.Error(err)
		}
		data = w.Bytes()
	})
	return data
}

// A snapshot that was saved goes on in another Runtime as it was.
func TestSaveAndLoad(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	data := saved(t, b, b.compile(reactor))
	if len(data) > 1000 {
		t.Errorf("%d bytes for a memory of zeros", len(data))
	}
	other := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	m := other.compile(reactor)
	s, err := m.LoadSnapshot(iotest.OneByteReader(bytes.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other.inside(func(p *proc.Process) {
		for range 2 {
			in, err := s.Start(p, wasm.Config{})
			if err != nil {
				t.Error(err)
				return
			}
			if string(in.Memory(100_000, 5)) != "first" || string(in.Memory(42*65536, 3)) != "top" || call1(t, p, in, "get") != 7 || call1(t, p, in, "size") != 43 {
				t.Error("what was loaded isn't what was saved")
			}
			copy(in.Memory(100_000, 5), "other")
			in.Close()
		}
	})
	again := saved(t, b, b.compile(reactor))
	if !bytes.Equal(again, data) {
		t.Error("the same state is saved differently")
	}
}

func TestLoadRefuses(t *testing.T) {
	b := newBox(t, newRuntime(t, wasm.Options{}), proc.Options{})
	m := b.compile(reactor)
	data := saved(t, b, m)
	change := func(at int, by byte) []byte {
		out := bytes.Clone(data)
		out[at] ^= by
		return out
	}
	small := newRuntime(t, wasm.Options{Memory: 41 << 16})
	sm := (&box{t: t, r: small}).compile(reactor)
	other := b.compile(wt.Module{Pages: 40, Globals: []int32{2}})
	for _, c := range []struct {
		name string
		m    *wasm.Module
		data []byte
		kind errs.Kind
	}{
		{"empty", m, nil, errs.Corrupt},
		{"text", m, []byte("hello, this is a text and no snapshot at all"), errs.Corrupt},
		{"another version", m, change(len("AgentRun wasm snapshot "), 3), errs.Unsupported},
		{"cut", m, data[:len(data)-1], errs.Corrupt},
		{"a bit", m, change(len(data)/2, 1), errs.Corrupt},
		{"a bit of the sum", m, change(len(data)-1, 1), errs.Corrupt},
		{"more", m, append(bytes.Clone(data), 0), errs.Corrupt},
		{"twice", m, append(bytes.Clone(data), data...), errs.Corrupt},
		{"another module", other, data, errs.Invalid},
		{"too much memory", sm, data, errs.TooLarge},
	} {
		if s, err := c.m.LoadSnapshot(bytes.NewReader(c.data)); !errs.Is(err, c.kind) {
			t.Errorf("%s: %v", c.name, err)
			if s != nil {
				s.Close()
			}
		}
	}
	if _, err := m.LoadSnapshot(io.LimitReader(bytes.NewReader(data), 30)); !errs.Is(err, errs.Corrupt) {
		t.Error(err)
	}
}

func FuzzLoadSnapshot(f *testing.F) {
	b := newBox(f, newRuntime(f, wasm.Options{Memory: 8 << 20}), proc.Options{})
	m := b.compile(reactor)
	f.Add(saved(f, b, m))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := m.LoadSnapshot(bytes.NewReader(data))
		if err == nil {
			s.Close()
		} else if k := errs.KindOf(err); k != errs.Corrupt && k != errs.Unsupported && k != errs.Invalid && k != errs.TooLarge {
			t.Error(err)
		}
	})
}
