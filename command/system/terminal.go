package system

import (
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

// keys makes the terminal on standard input give out keys as they are pressed, without echo; restore takes that back.
func keys(t *tool.T) (restore func()) {
	old, err := t.Termios(0)
	if err != nil {
		return func() {}
	}
	raw := old
	raw.Lflag &^= proc.ICANON | proc.ECHO
	raw.Cc[proc.VMIN], raw.Cc[proc.VTIME] = 1, 0
	t.SetTermios(0, raw, 0)
	return func() { t.SetTermios(0, old, 0) }
}
