// Package world is the commands that work on the sandbox as a whole: snapshot, fork and merge.
//
// They have no power of their own: they ask services.Control, which the engine implements, and print what it says.
package world

import (
	"encoding/json"
	"fmt"
	"strings"

	"agentrun.dev/command/services"
	"agentrun.dev/command/tool"
	"agentrun.dev/errs"
)

// Exit statuses, as those of the agentrun command line.
const (
	failed   = 1
	misused  = 2
	conflict = 3
	missing  = 4
	denied   = 5
)

// control returns the engine's control, or ends the command where there is none.
func control(t *tool.T) services.Control {
	c := services.From(t.Process).Control
	if c == nil {
		t.Warn("not available here: this sandbox isn't on a bucket")
		hint(t, "work on a bucket instead: agentrun shell BUCKET, or agentrun run --bucket BUCKET")
		t.Exit(denied)
	}
	return c
}

func hint(t *tool.T, text string) { fmt.Fprintf(t.Stderr(), "hint: %s\n", text) }

// statusOf is the exit status for an error.
func statusOf(err error) int {
	switch errs.KindOf(err) {
	case errs.Invalid:
		return misused
	case errs.Conflict, errs.Exists:
		return conflict
	case errs.NotFound:
		return missing
	case errs.Denied, errs.Unsupported:
		return denied
	}
	return failed
}

// check ends the command if err is set, with what the engine says would be right.
func check(t *tool.T, err error) {
	if err == nil {
		return
	}
	t.Check() // a killed process says nothing
	t.Warn("%s", err)
	if h := errs.HintOf(err); h != "" {
		hint(t, h)
	}
	t.Exit(statusOf(err))
}

// printJSON writes a value as one line.
func printJSON(t *tool.T, v any) {
	b, err := json.Marshal(v)
	check(t, err)
	t.Out.Write(append(b, '\n'))
}

// clean makes a name from outside harmless on a terminal.
func clean(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd || r >= 0x80 && r < 0xa0 }) < 0 {
		return s
	}
	return tool.QuoteC(s)
}

// size renders a number of bytes for people.
func size(n int64) string {
	if n < 0 {
		n = 0
	}
	return tool.Human(uint64(n), 1024)
}
