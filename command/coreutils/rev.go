package coreutils

import (
	"unicode/utf8"

	"agentrun.dev/command/tool"
)

var revSpec = tool.Spec{
	Usage: []string{"[options] [<file> ...]"}, About: "Reverse lines characterwise.", Package: "util-linux) 2.38.1",
}

// Rev reverses lines.
func Rev(t *tool.T) int {
	_, files := t.Parse(&revSpec)
	failed := false
	for _, name := range names(files) {
		in, err := t.Open(name)
		if err != nil {
			t.Warn("cannot open %s: %s", name, tool.Strerror(err))
			failed = true
			continue
		}
		l := tool.NewLines(in, '\n')
		var out []byte
		for {
			line, ok := l.Next()
			if !ok {
				break
			}
			out = out[:0]
			for len(line) > 0 {
				_, n := utf8.DecodeLastRune(line)
				out = append(out, line[len(line)-n:]...)
				line = line[:len(line)-n]
			}
			t.Out.Write(out)
			if l.Terminated {
				t.Out.WriteByte('\n')
			}
		}
		in.Close()
	}
	return status(failed)
}
