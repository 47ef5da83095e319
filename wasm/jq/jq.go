// Package jq is jq as a program of sandboxes: the original, as a WebAssembly guest (wasm/guests), so that objects keep the order of
// their keys, numbers their digits, and a filter its bounds of memory and time.
package jq

import (
	"context"
	"fmt"
	"sync"

	"agentrun.dev/proc"
	"agentrun.dev/wasm"
	"agentrun.dev/wasm/guests"
)

const file = "jq.wasm"

// Options describe a Filter.
type Options struct {
	// Runtime runs the guest; it is called when it is first needed, and once.
	Runtime func() (*wasm.Runtime, error)
}

// Filter is what all runs of one host process share. All methods may be called concurrently.
type Filter struct {
	module func() (*wasm.Module, error)
}

// New returns a Filter. Nothing is read or compiled before it is needed.
func New(o Options) *Filter {
	return &Filter{module: sync.OnceValues(func() (*wasm.Module, error) {
		code, err := guests.Read(file)
		if err != nil {
			return nil, err
		}
		r, err := o.Runtime()
		if err != nil {
			return nil, err
		}
		return r.Compile(context.Background(), code, wasm.CompileOptions{Name: "jq"})
	})}
}

// Programs returns the command by its name, or nothing if the guest isn't part of this build.
func (f *Filter) Programs() map[string]proc.Program {
	if !guests.Has(file) {
		return nil
	}
	return map[string]proc.Program{"jq": proc.Func(f.Run)}
}

// Run is the program jq.
func (f *Filter) Run(p *proc.Process) int {
	m, err := f.module()
	if err != nil {
		fmt.Fprintf(p.Stderr(), "jq: %v\n", err)
		return 126
	}
	return m.Run(p, wasm.Config{})
}
