package wasm

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"agentrun.dev/errs"
	rewrite "agentrun.dev/wasm/binary"
)

// A saved call is a magic number, the length of a description (4 bytes) and it in JSON, the saved snapshot, and 32 bytes of HMAC-SHA-256 over all that. Frames
// of machine code go back to work as they are found, so who can write a saved call can do anything on this host: it is taken only with a code that was made with
// a key of this host's, which lies beside the compiled code.
const callMagic = "AgentRun wasm call 1\n"

const maxCall = 64 << 20 // bytes of a description

// savedCall is that description.
type savedCall struct {
	Code      []byte // a hash of the machine code that the frames lead into
	Places    places
	Ranges    []codeRange
	Words     []uint64
	FP, Size  uint64
	Registers []uint64
	Returns   uint64
	Name      string // of the host function
	Args      []uint64
	Results   int
	Meter     uint64
	Fuel      int32
	Stack     int64
	StackPay  int64
	Saved     []uint64
	Charged   int64
	Reply     []byte
	Polled    []byte
	ChildCPU  time.Duration
	Timer     time.Duration
	Every     time.Duration
	Locks     []savedLock
}

// codeRange is where machine code is.
type codeRange struct{ Lo, Hi uint64 }

// machineCode is what frames of a module may return to: its own code, and the functions by which it calls the host.
type machineCode struct {
	once   sync.Once
	err    error
	ranges []codeRange
	hash   []byte
}

// deref follows pointers and interfaces.
func deref(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// machine returns a module's machine code.
func (m *Module) machine() (*machineCode, error) {
	c := &m.native
	c.once.Do(func() {
		defer func() {
			if r := recover(); r != nil { // the engine's types are other ones
				c.err = errs.Msg(errs.Unsupported, "save", m.o.Name, "the engine's code can't be found: "+fmt.Sprint(r))
			}
		}()
		h := sha256.New()
		add := func(module api.Module) {
			v := deref(reflect.ValueOf(module))
			if own := v.FieldByName("Module"); v.NumField() == 1 && own.IsValid() { // what a host module is wrapped in
				v = deref(own)
			}
			for _, name := range []string{"Engine", "parent", "executables"} {
				v = deref(v.FieldByName(name))
			}
			for _, name := range []string{"executable", "entryPreambles"} {
				b := v.FieldByName(name)
				lo := uint64(b.Pointer())
				c.ranges = append(c.ranges, codeRange{lo, lo + uint64(b.Len())})
				if b.Len() > 0 {
					h.Write(unsafe.Slice((*byte)(b.UnsafePointer()), b.Len()))
				}
			}
		}
		in, err := m.raw()
		if err != nil {
			c.err = err
			return
		}
		defer in.destroy()
		add(in.mod)
		for _, name := range []string{rewrite.TickModule, "wasi_snapshot_preview1", "agentrun"} {
			add(m.r.rt.Module(name))
		}
		c.hash = h.Sum(nil)
	})
	return c, c.err
}

// liveKey returns the key of this host. Errors: errs.Unsupported without a CacheDir.
func (r *Runtime) liveKey() ([]byte, error) {
	if r.o.CacheDir == "" {
		return nil, errs.Msg(errs.Unsupported, "save", "a guest's call", "a runtime without a cache folder has no key")
	}
	name := filepath.Join(r.o.CacheDir, "calls.key")
	if key, err := os.ReadFile(name); err == nil && len(key) == 32 {
		return key, nil
	}
	key := make([]byte, 32)
	rand.Read(key)
	f, err := os.CreateTemp(r.o.CacheDir, ".key-*")
	if err != nil {
		return nil, errs.New(errs.Other, "save", name, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(key)
	if err = errors.Join(err, f.Close()); err == nil {
		if err = os.Link(f.Name(), name); errors.Is(err, os.ErrExist) { // another process was first
			err = nil
		}
	}
	if err == nil {
		key, err = os.ReadFile(name)
	}
	if err != nil || len(key) != 32 {
		return nil, errs.New(errs.Other, "save", name, err)
	}
	return key, nil
}

// Save writes the call, for LoadLive on the same host. Errors: errs.Unsupported for runtimes without CacheDir.
func (l *Live) Save(w io.Writer) error {
	m := l.snap.m
	key, err := m.r.liveKey()
	if err != nil {
		return err
	}
	code, err := m.machine()
	if err != nil {
		return err
	}
	f := l.frames
	head, err := json.Marshal(savedCall{
		Code: code.hash, Places: f.at, Ranges: code.ranges, Words: f.words, FP: f.fp, Size: f.size, Registers: f.registers[:], Returns: uint64(f.returns),
		Name: l.pending.name, Args: l.args, Results: l.results, Meter: l.meter, Fuel: l.ticking.fuel, Stack: l.ticking.stack, StackPay: l.ticking.stackPay,
		Saved: l.saved, Charged: l.charged, Reply: l.host.reply, Polled: l.host.polled, ChildCPU: l.host.childCPU, Timer: l.timer, Every: l.every, Locks: l.locks,
	})
	if err != nil {
		return errs.New(errs.Other, "save", m.o.Name, err)
	}
	mac := hmac.New(sha256.New, key)
	out := io.MultiWriter(w, mac)
	if _, err := out.Write(append(binary.LittleEndian.AppendUint32([]byte(callMagic), uint32(len(head))), head...)); err != nil {
		return errs.New(errs.KindOf(err), "save", m.o.Name, err)
	}
	if err := l.snap.Save(out); err != nil {
		return err
	}
	if _, err := w.Write(mac.Sum(nil)); err != nil {
		return errs.New(errs.KindOf(err), "save", m.o.Name, err)
	}
	return nil
}

// LoadLive takes what Save of a call of this very module wrote on this host; c is how it goes on. Errors: those of LoadSnapshot, and errs.Denied for what this host
// hasn't saved.
func (m *Module) LoadLive(data []byte, c Config) (*Live, error) {
	corrupt := func(text string) error { return errs.Msg(errs.Corrupt, "load call", m.o.Name, text) }
	at := len(callMagic) + 4
	if len(data) < at+sha256.Size || string(data[:len(callMagic)]) != callMagic {
		return nil, corrupt("not a saved call")
	}
	key, err := m.r.liveKey()
	if err != nil {
		return nil, err
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	if !hmac.Equal(mac.Sum(nil), sum) {
		return nil, errs.Msg(errs.Denied, "load call", m.o.Name, "it wasn't saved on this host")
	}
	n := binary.LittleEndian.Uint32(data[len(callMagic):])
	var s savedCall
	if n > maxCall || uint64(n) > uint64(len(body)-at) || json.Unmarshal(body[at:at+int(n)], &s) != nil || len(s.Registers) != 128 {
		return nil, corrupt("bad description")
	}
	code, err := m.machine()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(code.hash, s.Code) || len(s.Ranges) != len(code.ranges) {
		return nil, errs.Msg(errs.Unsupported, "load call", m.o.Name, "it was saved by another version, or on another processor")
	}
	l := &Live{pending: pending{s.Name, restingFunc(s.Name), nil}, args: s.Args, results: s.Results, meter: s.Meter, saved: s.Saved, cfg: c, charged: s.Charged, timer: s.Timer, every: s.Every, locks: s.Locks}
	if l.pending.f == nil {
		return nil, corrupt("no host function " + s.Name)
	}
	l.ticking = ticking{fuel: s.Fuel, stack: s.Stack, stackPay: s.StackPay}
	l.frames = s.frames(code)
	if l.snap, err = m.LoadSnapshot(bytes.NewReader(body[at+int(n):])); err != nil {
		return nil, err
	}
	l.host = l.snap.host.clone()
	l.host.reply, l.host.polled, l.host.childCPU = s.Reply, s.Polled, s.ChildCPU
	m.hold()
	return l, nil
}

// frames returns the frames with addresses of code as they are in this process.
func (s *savedCall) frames(code *machineCode) *frames {
	move := func(v uint64) uint64 {
		for i, r := range s.Ranges {
			if v >= r.Lo && v < r.Hi {
				return v - r.Lo + code.ranges[i].Lo
			}
		}
		return v
	}
	f := &frames{words: s.Words, fp: s.FP, size: s.Size, returns: uintptr(move(s.Returns)), at: s.Places}
	for i, v := range f.words {
		f.words[i] = move(v)
	}
	for i, v := range s.Registers {
		f.registers[i] = move(v)
	}
	return f
}
