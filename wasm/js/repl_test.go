package js_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// On a terminal node reads line by line, prints values, goes on after errors, and ends at the end of input.
func TestREPL(t *testing.T) {
	b := newBox(t, proc.Limits{})
	tty, err := b.s.NewTTY(proc.WinSize{Cols: 90, Rows: 30}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tty.Hangup)
	f := tty.File()
	p, err := b.s.NewProcess(proc.Root{Args: []string{"node"}, Dir: "/task", Env: []string{"PATH=/bin", "NO_COLOR=1"}, Files: map[int]vfs.File{0: f, 1: tty.File(), 2: tty.File()}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen strings.Builder
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			mu.Lock()
			seen.Write(buf[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	await := func(text string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			s := seen.String()
			mu.Unlock()
			if strings.Contains(s, text) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("no %q in %q", text, s)
			}
		}
	}
	if err := p.StartFile("/bin/node", []string{"node"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"", "Type \".help\" for more information.\r\n> "},
		{"1 + 1\n", "\r\n2\r\n> "},
		{"const a = { x: [1, 2] }\n", "undefined\r\n> "},
		{"a\n", "{ x: [ 1, 2 ] }\r\n> "},
		{"function f() {\n", "... "},
		{"return 7 }\n", "undefined\r\n> "},
		{"f() + _\n", "7[object Object]"[:0] + "> "},
		{"nope\n", "Uncaught ReferenceError: nope is not defined\r\n"},
		{"process.stdout.columns\n", "90\r\n> "},
		{"require('path').basename('/a/b')\n", "'b'\r\n> "},
		{"await Promise.resolve(5)\n", "5\r\n> "},
		{"setTimeout(() => { throw new Error('later') }, 1); 0\n", "Uncaught Error: later"},
		{"[process.stdin.isTTY, process.stdin.setRawMode(true).isRaw, process.stdin.setRawMode(false).isRaw]\n", "[ true, true, false ]\r\n> "},
	} {
		if _, err := tty.Write([]byte(c[0])); err != nil {
			t.Fatal(err)
		}
		await(c[1])
		mu.Lock()
		seen.Reset()
		mu.Unlock()
	}
	tty.Write([]byte{4})
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the end of input doesn't end it")
	}
	if p.Status() != 0 {
		t.Errorf("status %d", p.Status())
	}
}
