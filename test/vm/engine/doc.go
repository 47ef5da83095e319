// Package engine runs the conformance suite of engines on microVMs. Its tests run in the bench (package vm of test), where /dev/kvm runs
// stock kernels: elsewhere they are skipped, and say so.
package engine
