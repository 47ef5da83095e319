// Package dump holds the commands that show bytes: od, hexdump (hd), xxd and strings.
//
// A block is the bytes shown on one line. A spec is one way to show a block; od shows a block once for each spec.
package dump

import (
	"bufio"
	"io"

	"agentrun.dev/command/tool"
)

// maxBlock bounds a line's bytes, which are held in memory.
const maxBlock = 1 << 20

// concat reads several files as one. What can't be opened or read is reported and left out.
type concat struct {
	t     *tool.T
	files []string
	cur   *tool.Input
	fail  bool
	last  string // the file read last, for messages
}

func newConcat(t *tool.T, files []string) (*bufio.Reader, *concat) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	c := &concat{t: t, files: files}
	return bufio.NewReaderSize(c, 32<<10), c
}

// Read implements io.Reader.
func (c *concat) Read(p []byte) (int, error) {
	for {
		if c.cur == nil {
			if len(c.files) == 0 {
				return 0, io.EOF
			}
			c.last, c.files = c.files[0], c.files[1:]
			in, err := c.t.Open(c.last)
			if err != nil {
				c.t.WarnFile(c.last, err)
				c.fail = true
				continue
			}
			c.cur = in
		}
		n, err := c.cur.Read(p)
		if n > 0 {
			return n, nil
		}
		if err != nil {
			if err != io.EOF {
				c.t.WarnFile(c.last, err)
				c.fail = true
			}
			c.cur.Close()
			c.cur = nil
		}
	}
}

// skip drops n bytes and returns how many there were.
func skip(r *bufio.Reader, n int64) int64 {
	done, _ := io.CopyN(io.Discard, r, n)
	return done
}

// pad writes n blanks.
func pad(w *bufio.Writer, n int) {
	for ; n > 0; n-- {
		w.WriteByte(' ')
	}
}
