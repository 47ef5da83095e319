package agent

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// Ask has the host run a command for a program of the workload, and returns its exit status: 1 and a word on errors if nobody does.
func Ask(socket string, args []string, dir string, out, errors io.Writer) int {
	status, err := func() (int, error) {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			return 1, errs.New(errs.Unavailable, "ask", "", err)
		}
		defer nc.Close()
		b, err := json.Marshal(request{Args: wire.Texts(args), Dir: wire.Text(dir)})
		if err != nil {
			return 1, err
		}
		_, writeErr := nc.Write(append(b, '\n'))
		status, err := copyReply(bufio.NewReader(nc), out, errors)
		if err != nil && writeErr != nil { // else a refusal was there before the ask
			err = errs.New(errs.Unavailable, "ask", "", writeErr)
		}
		return status, err
	}()
	if err != nil {
		fmt.Fprintf(errors, "%s: %s\n", strings.ToValidUTF8(args[0], "?"), err)
	}
	return status
}

// copyReply takes a reply in.
func copyReply(r io.Reader, out, errors io.Writer) (int, error) {
	var head [5]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return 1, errs.Msg(errs.Unavailable, "ask", "", "the host's reply broke off")
		}
		w, n := out, int64(binary.LittleEndian.Uint32(head[1:]))
		switch head[0] {
		case askStatus:
			var status [1]byte
			_, err := io.ReadFull(r, status[:])
			return int(status[0]), err
		case wire.Errors:
			w = errors
		}
		if _, err := io.CopyN(w, r, n); err != nil {
			return 1, err
		}
	}
}
