// Command emulator repairs, in the copy of QEMU that the bench runs, a defect of its emulation of AMD's virtualization: "emulator FILE".
//
// VMRUN that injects an interrupt (helper_vmrun, EVENTINJ of type INTR) delivers it at once, and besides notes its vector as an exception that is
// due. Usually the next exit of the guest overwrites that note. If another thread of QEMU asks this one to leave its loop before, the note is
// taken for what it says, and the guest gets the interrupt once more, whether it takes interrupts just then or not: a timer's, in the middle of the
// timer's handler, which holds its run queue's lock and waits for it ever after. Asked to leave seventy times a second, QEMU 7.2 has nested
// guests stand still within a minute; without the one instruction that makes the note it did eleven thousand times without harm. QEMU's
// development branch has the same line.
package main

import (
	"bytes"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: emulator FILE")
		os.Exit(2)
	}
	if err := repair(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "emulator:", err)
		os.Exit(1)
	}
}

func repair(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	at := find(b)
	if len(at) != 1 {
		return fmt.Errorf("%s has %d places like the one to be repaired, not one: it is another version", file, len(at))
	}
	copy(b[at[0]:], nothing)
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", b, info.Mode().Perm()); err != nil {
		return err
	}
	return os.Rename(file+".new", file) // whoever runs the old one goes on
}

// whatever is a byte of an address or of a field's place in a structure, which differ between builds.
const whatever = -1

// note begins with the instruction that is too much.
var note = []int{
	0x89, 0xb3, whatever, whatever, whatever, whatever, // exception_index = vector
	0xc7, 0x83, whatever, whatever, whatever, whatever, 0, 0, 0, 0, // exception_is_int = 0
	0x48, 0xc7, 0x83, whatever, whatever, whatever, whatever, 0xff, 0xff, 0xff, 0xff, // exception_next_eip = -1
	0xf6, 0x05, whatever, whatever, whatever, whatever, 0x02, 0x0f, 0x85, whatever, whatever, whatever, whatever, // is it logged?
	0xba, 1, 0, 0, 0, 0x48, 0x89, 0xdf, 0xe8, // do_interrupt_x86_hardirq(env, vector, 1)
}

// nothing is as long as the instruction.
var nothing = []byte{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}

// find returns where notes are made.
func find(b []byte) (at []int) {
	first := []byte{byte(note[0]), byte(note[1])}
	for from := 0; ; from++ {
		i := bytes.Index(b[from:], first)
		if i < 0 {
			return at
		}
		if from += i; matches(b[from:]) {
			at = append(at, from)
		}
	}
}

func matches(b []byte) bool {
	if len(b) < len(note) {
		return false
	}
	for i, want := range note {
		if want != whatever && int(b[i]) != want {
			return false
		}
	}
	return true
}
