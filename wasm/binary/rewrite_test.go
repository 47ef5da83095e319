package binary_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"agentrun.dev/errs"
	"agentrun.dev/wasm/binary"
	wt "agentrun.dev/wasm/wasmtest"
)

// Instructions.
const (
	loop, br, end, call, drop, localGet, localSet, globalGet, globalSet, i32Const, i32Add, i32Load, memoryGrow, callIndirect, void = byte(3), byte(0x0c), byte(0x0b), byte(0x10), byte(0x1a), byte(0x20),
		byte(0x21), byte(0x23), byte(0x24), byte(0x41), byte(0x6a), byte(0x28), byte(0x40), byte(0x11), byte(0x40)
)

// modules use what rewriting has to do with: imports, globals, tables, data, a start function, loops, calls.
func modules() map[string]wt.Module {
	return map[string]wt.Module{
		"empty":           {},
		"memory and data": {Pages: 1, Data: map[uint32]string{8: "hello", 100: "world"}, Funcs: []wt.Func{{Export: "f", Results: "i", Code: wt.Code(i32Const, 8, i32Load, uint32(2), uint32(0))}}},
		"globals":         {Globals: []int32{1, 2}, Funcs: []wt.Func{{Export: "f", Code: wt.Code(globalGet, uint32(0), i32Const, 1, i32Add, globalSet, uint32(1))}}},
		"start":           {Funcs: []wt.Func{{}, {Code: wt.Code(call, uint32(0))}}, Start: 1},
		"loop":            {Funcs: []wt.Func{{Export: "f", Params: "i", Locals: 2, Code: wt.Code(loop, void, localGet, uint32(0), localSet, uint32(1), br, uint32(0), end)}}},
		"table":           {Table: []uint32{0, 1}, Funcs: []wt.Func{{}, {Code: wt.Code(i32Const, 0, callIndirect, uint32(0), byte(0))}}},
		"imports":         {Imports: []wt.Import{wt.From("m", "f", "iI", "i")}, Pages: 1, Funcs: []wt.Func{{Export: "g", Code: wt.Code(i32Const, 1, byte(0x42), 2, call, uint32(0), memoryGrow, byte(0), drop)}}},
		"straight code":   {Funcs: []wt.Func{{Export: "f", Code: bytes.Repeat(wt.Code(i32Const, 1, drop), 2000)}}},
		"recursion":       {Funcs: []wt.Func{{Export: "f", Locals: 40, Code: wt.Code(call, uint32(0))}}},
	}
}

func compiler(t testing.TB) wazero.Runtime {
	t.Helper()
	features := api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).WithMemoryLimitPages(1024))
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

// What was valid is valid when it is rewritten, with its exports and the names by which its state is reached.
func TestRewrite(t *testing.T) {
	r := compiler(t)
	for name, m := range modules() {
		for _, plain := range []bool{false, true} {
			out, err := binary.Rewrite(m.Bytes(), binary.Options{NoSafePoints: plain})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			c, err := r.CompileModule(context.Background(), out.Wasm)
			if err != nil {
				t.Errorf("%s: it isn't valid any more: %v", name, err)
				continue
			}
			for _, f := range m.Funcs {
				if f.Export != "" && c.ExportedFunctions()[f.Export] == nil {
					t.Errorf("%s: lost the export %s", name, f.Export)
				}
			}
			if len(out.Globals) != len(m.Globals) || len(out.Data) != len(m.Data) || out.HasStart != (m.Start > 0) || out.Functions == 0 && len(m.Funcs) > 0 {
				t.Errorf("%s: %d globals, %d segments, start %v", name, len(out.Globals), len(out.Data), out.HasStart)
			}
			c.Close(context.Background())
		}
	}
}

func TestRewriteRefuses(t *testing.T) {
	good := modules()["globals"].Bytes()
	for name, b := range map[string][]byte{
		"nothing":      nil,
		"text":         []byte("#!/bin/sh"),
		"version":      []byte("\x00asm\x02\x00\x00\x00"),
		"cut":          good[:len(good)-3],
		"more":         append(bytes.Clone(good), 1),
		"a long count": append([]byte("\x00asm\x01\x00\x00\x00\x01\x05"), 0xff, 0xff, 0xff, 0xff, 0x0f),
		"order":        append([]byte("\x00asm\x01\x00\x00\x00"), 3, 1, 0, 1, 1, 0),
		"our names":    wt.Module{Funcs: []wt.Func{{Export: binary.StartExport}}}.Bytes(),
		"our imports":  wt.Module{Imports: []wt.Import{wt.From(binary.TickModule, "tick", "I", "I")}}.Bytes(),
		"the meter":    wt.Module{Funcs: []wt.Func{{Code: wt.Code(byte(0x42), 0, globalSet, uint32(0))}}}.Bytes(),
	} {
		if _, err := binary.Rewrite(b, binary.Options{}); !errs.Is(err, errs.Invalid) && !errs.Is(err, errs.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRewrite gives it anything. What it accepts is refused by the compiler only if it refuses the original, too.
func FuzzRewrite(f *testing.F) {
	for _, m := range modules() {
		f.Add(m.Bytes())
	}
	r := compiler(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := binary.Rewrite(b, binary.Options{})
		if err != nil {
			if k := errs.KindOf(err); k != errs.Invalid && k != errs.Unsupported && k != errs.TooLarge {
				t.Error(err)
			}
			return
		}
		if len(out.Wasm) > 64*len(b)+4096 {
			t.Errorf("%d bytes became %d", len(b), len(out.Wasm))
		}
		c, err := r.CompileModule(context.Background(), out.Wasm)
		if err == nil {
			c.Close(context.Background())
			return
		}
		if c, first := r.CompileModule(context.Background(), b); first == nil {
			c.Close(context.Background())
			t.Errorf("valid before, not after: %v", err)
		}
	})
}
