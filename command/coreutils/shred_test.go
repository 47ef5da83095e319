package coreutils_test

import (
	"fmt"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestShred(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f f hello\n", "f big " + strings.Repeat("x", 5000), "f e ", "d d", "f d/file x", "f zeros " + strings.Repeat("\x00", 9000)},
		Content: func(name, content string) string {
			if strings.Trim(content, "\x00") != "" && len(content) > 5 && name != "zeros" {
				return fmt.Sprint(len(content))
			}
			return content
		},
		Lines: []string{"shred f", "shred -v f", "shred -vn2 -z f", "shred -u -v -n 1 f", "shred", "shred nope", "shred -s 10 -v -n1 f", "shred -n x f", "shred --remove=x f", "shred d", "shred -n0 -v f", "shred -xvn1 f", "shred --remove=unlink -vn1 f", "shred -z -n0 -v big", "shred -x -z -n 1 big", "shred -v e", "shred -u d/file", "shred -uv d/file",
			"shred -s 5 -z -n0 f", "shred -s x f", "shred -n1 --random-source=zeros f", "shred -n1 --random-source=nope f", "shred f nope e", "shred -Z f", "shred -u --remove=wipe -v f"},
	})
}

func TestDircolors(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f d TERM xterm*\nDIR 01;34\n.x 1\n*.y 2 # c\nEXEC 1;2#x\nTERM dumb\nFIFO 7\n", "f bad DIR 1\nfoo\nBAD 3\n", "f t TERM x\nBAD 3\n", "f q .'a 1\n.b:c 2\n.d\\: 3\n.e=f ^=\nfifo 3\nNorm 0\n.last 4"},
		Lines: []string{"env TERM=xterm dircolors -b", "env TERM=xterm dircolors -c", "env SHELL=/bin/tcsh TERM=xterm dircolors", "env SHELL=/bin/bash TERM=dumb dircolors", "env TERM=dumb COLORTERM=1 dircolors -b", "env TERM=xterm dircolors --print-ls-colors", "env TERM=xterm-256color dircolors -b d", "env TERM=dumb dircolors -b d", "env TERM=vt52 dircolors -b d", "dircolors -b bad", "env TERM=x dircolors -b t", "dircolors -b q", "dircolors --sh nope", "env SHELL= dircolors", "dircolors -p d", "dircolors -b a b", "dircolors -b -p", "dircolors -p --print-ls-colors", "dircolors -Z", "dircolors -b < q", "dircolors -b -"},
	})
	// What it prints of its database is what it has in it.
	table := commandtest.Table{}
	set := command.NewSet(nil)
	db := table.Sandbox(t, set, []string{"dircolors", "-p"}, "").Stdout
	own := table.Sandbox(t, set, []string{"env", "TERM=xterm", "dircolors", "-b", "-"}, db).Stdout
	if want := table.Sandbox(t, set, []string{"env", "TERM=xterm", "dircolors", "-b"}, "").Stdout; own != want || len(want) < 1000 {
		t.Errorf("got %q, want %q", own, want)
	}
}

func TestContexts(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f f x"},
		Lines: []string{"chcon", "chcon x", "chcon -t foo nope", "runcon", "runcon -t x", "runcon x", "runcon x echo hi", "runcon -Z", "chcon --nope",
			"pinky", "pinky -f", "pinky root", "pinky -l", "pinky -q", "pinky -w", "pinky -i", "pinky -l nope", "pinky -lh nope nobody2", "pinky -Z"},
		Differs: map[string]commandtest.Deviation{
			"chcon a f":             {Want: "chcon: failed to change context of 'f': Operation not supported\n", Reason: "files have no contexts"},
			"pinky -lb root":        {Want: "Login name: root                        In real life:  \n\n", Reason: "a sandbox's root has no other name"},
			"chcon -t a f":          {Want: "chcon: can't apply partial context to unlabeled file 'f'\n", Reason: "files have no contexts"},
			"chcon --reference=f f": {Want: "chcon: failed to get security context of 'f': Operation not supported\n", Reason: "files have no contexts"},
		},
	})
}
