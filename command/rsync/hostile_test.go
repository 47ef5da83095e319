package rsync_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"agentrun.dev/command/commandtest"
)

// hello is what a client says first, and frame a frame of data.
func hello() []byte { return []byte{30, 0, 0, 0} }

func frame(data ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(7)<<24|uint32(len(data)))
	return append(b, data...)
}

// listEntry is an entry of a file list: a regular file of one byte, or a symbolic link.
func listEntry(name, target string) []byte {
	mode := uint32(0o100644)
	if target != "" {
		mode = 0o120777
	}
	b := []byte{1, byte(len(name))}
	b = append(b, name...)
	b = append(b, 0, 1, 0)    // size 1
	b = append(b, 0, 1, 0, 0) // time
	b = binary.LittleEndian.AppendUint32(b, mode)
	if target != "" {
		b = append(append(b, byte(len(target))), target...)
	}
	return b
}

// TestUnsafeNames sends names that lead out of the destination, and files through a symbolic link.
func TestUnsafeNames(t *testing.T) {
	for _, name := range []string{"../evil", "/evil", "a/../../evil", "..", "a/..", "x\x00y"} {
		in := append(hello(), frame(append(listEntry(name, ""), 0)...)...)
		table := commandtest.Table{Stdin: string(in), Setup: []string{"d dst"}}
		r := table.Sandbox(t, commands, []string{"rsync", "--server", "-re.LsfxC", ".", "dst"}, table.Stdin)
		if r.Status == 0 || r.Tree != "dst 40755 \"\"\n" {
			t.Errorf("%q: %+v", name, r)
		}
	}
	// "d" is a link to the folder above; a file below it isn't even asked for.
	in := append(hello(), frame(append(append(listEntry("d", "../outside"), listEntry("d/evil", "")...), 0)...)...)
	in = append(in, frame(0, 0, 0)...)
	table := commandtest.Table{Setup: []string{"d dst", "d outside"}}
	r := table.Sandbox(t, commands, []string{"rsync", "--server", "-rle.LsfxC", ".", "dst"}, string(in))
	if strings.Contains(r.Tree, "evil") {
		t.Errorf("%+v", r)
	}
}

// FuzzServer gives both kinds of server what a client might send.
func FuzzServer(f *testing.F) {
	f.Add(append(hello(), frame(append(listEntry("a", ""), 0)...)...), false)
	f.Add(append(hello(), frame(0, 0, 0, 0, 1, 0, 128, 0, 0, 0, 0, 0, 0, 0, 0)...), true)
	f.Add(append(hello(), frame(bytes.Repeat([]byte{255}, 100)...)...), true)
	f.Add(append(hello(), frame(bytes.Repeat([]byte{255}, 100)...)...), false)
	f.Add([]byte{30}, false)
	f.Fuzz(func(t *testing.T, in []byte, sender bool) {
		table := commandtest.Table{Setup: []string{"d dir", "f dir/a alpha\n"}, Stdin: string(in)}
		words := []string{"rsync", "--server", "-vlogDtprcHze.LsfxC", ".", "dir"}
		if sender {
			words = []string{"rsync", "--server", "--sender", "-vlogDtprcHze.LsfxC", ".", "dir"}
		}
		table.Survives(t, commands, words...)
	})
}

// TestGarbage runs many garbled inputs.
func TestGarbage(t *testing.T) {
	x := uint32(7)
	for range 300 {
		in := hello()
		var data []byte
		for range 60 {
			x = x*1664525 + 1013904223
			data = append(data, byte(x>>24)&byte(x>>16))
		}
		in = append(in, frame(data...)...)
		for _, words := range [][]string{{"rsync", "--server", "-vlogDtprcHze.LsfxC", ".", "dir"}, {"rsync", "--server", "--sender", "-vlogDtprcHze.LsfxC", ".", "dir"}} {
			table := commandtest.Table{Setup: []string{"d dir", "f dir/a alpha\n"}, Stdin: string(in)}
			table.Survives(t, commands, words...)
		}
	}
}
