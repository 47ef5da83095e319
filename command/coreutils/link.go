package coreutils

import (
	"strconv"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

var linkSpec = tool.Spec{Usage: []string{"FILE1 FILE2", "OPTION"}, About: "Call the link function to create a link named FILE2 to an existing FILE1.", Package: tool.Coreutils}

// Link makes a hard link.
func Link(t *tool.T) int {
	_, args := t.Parse(&linkSpec)
	exactly(t, args, 2)
	if err := t.Process.Link(args[0], args[1]); err != nil {
		t.Fatal(1, "cannot create link %s to %s: %s", tool.QuoteAF(args[1]), tool.QuoteAF(args[0]), tool.Strerror(err))
	}
	return 0
}

// exactly ends the command unless there are n operands.
func exactly(t *tool.T, args []string, n int) {
	switch {
	case len(args) == 0:
		t.Missing(1)
	case len(args) < n:
		t.UsageError(1, "missing operand after %s", tool.Quote(args[len(args)-1]))
	case len(args) > n:
		t.Extra(1, args[n])
	}
}

var unlinkSpec = tool.Spec{Usage: []string{"FILE", "OPTION"}, About: "Call the unlink function to remove the specified FILE.", Package: tool.Coreutils}

// Unlink takes a name away.
func Unlink(t *tool.T) int {
	_, args := t.Parse(&unlinkSpec)
	exactly(t, args, 1)
	if err := t.Process.Unlink(args[0]); err != nil {
		t.Fatal(1, "cannot unlink %s: %s", tool.QuoteAF(args[0]), tool.Strerror(err))
	}
	return 0
}

var nodeOptions = []getopt.Option{
	{Short: 'm', Long: "mode", Arg: getopt.Required, Name: "MODE", Help: "set file permission bits to MODE, not a=rw - umask"},
	{Short: 'Z', Help: "(ignored: there are no security contexts)"},
	{Long: "context", Key: 'Z', Arg: getopt.Optional, Name: "CTX"},
}

var mkfifoSpec = tool.Spec{Usage: []string{"[OPTION]... NAME..."}, About: "Create named pipes (FIFOs) with the given NAMEs.", Options: nodeOptions, Package: tool.Coreutils}

// nodeMode reads -m; nil leaves the permissions to the umask.
func nodeMode(t *tool.T, opts []getopt.Opt) *vfs.Mode {
	var mode *vfs.Mode
	for _, o := range opts {
		if o.Key != 'm' {
			continue
		}
		mc, err := tool.ParseMode(o.Arg)
		if err != nil {
			t.Fatal(1, "invalid mode")
		}
		mask := t.Umask(0)
		t.Umask(mask)
		m := mc.Apply(0o666, mask)
		if m&^0o777 != 0 {
			t.Fatal(1, "mode must specify only file permission bits")
		}
		mode = &m
	}
	return mode
}

func makeNode(t *tool.T, name string, kind vfs.Mode, rdev uint64, mode *vfs.Mode) error {
	err := t.Process.Mknod(name, kind|0o666, rdev)
	if err == nil && mode != nil {
		err = t.SetAttr(name, vfs.SetAttr{Mode: mode}, false)
	}
	return err
}

// Mkfifo makes named pipes.
func Mkfifo(t *tool.T) int {
	opts, args := t.Parse(&mkfifoSpec)
	if len(args) == 0 {
		t.Missing(1)
	}
	mode := nodeMode(t, opts)
	failed := false
	for _, name := range args {
		if err := makeNode(t, name, vfs.ModeFIFO, 0, mode); err != nil {
			t.Warn("cannot create fifo %s: %s", tool.QuoteAF(name), tool.Strerror(err))
			failed = true
		}
	}
	return status(failed)
}

var mknodSpec = tool.Spec{
	Usage: []string{"[OPTION]... NAME TYPE [MAJOR MINOR]"}, About: "Create the special file NAME of the given TYPE: b, c, u or p.", Options: nodeOptions, Package: tool.Coreutils,
}

// Mknod makes a special file. Devices are the template's affair: making one is denied.
func Mknod(t *tool.T) int {
	opts, args := t.Parse(&mknodSpec)
	mode := nodeMode(t, opts)
	expected := 4
	if len(args) > 1 && args[1] == "p" || len(args) == 1 {
		expected = 2
	}
	switch {
	case len(args) < expected && len(args) == 0:
		t.Missing(1)
	case len(args) < expected:
		t.Warn("missing operand after %s", tool.Quote(args[len(args)-1]))
		if expected == 4 && len(args) == 2 {
			t.Stderr().Write([]byte("Special files require major and minor device numbers.\n"))
		}
		t.Try(1)
	case len(args) > expected:
		t.Warn("extra operand %s", tool.Quote(args[expected]))
		if expected == 2 && len(args) == 4 {
			t.Stderr().Write([]byte("Fifos do not have major and minor device numbers.\n"))
		}
		t.Try(1)
	}
	var kind vfs.Mode
	var rdev uint64
	switch args[1] {
	case "p":
		kind = vfs.ModeFIFO
	case "b", "c", "u":
		if kind = vfs.ModeChar; args[1] == "b" {
			kind = vfs.ModeBlock
		}
		major, err1 := strconv.ParseUint(args[2], 0, 32)
		minor, err2 := strconv.ParseUint(args[3], 0, 32)
		if err1 != nil {
			t.Fatal(1, "invalid major device number %s", tool.Quote(args[2]))
		}
		if err2 != nil {
			t.Fatal(1, "invalid minor device number %s", tool.Quote(args[3]))
		}
		rdev = major<<8 | minor&0xff | minor>>8<<20
	default:
		t.UsageError(1, "invalid device type %s", tool.Quote(args[1]))
	}
	err := error(syscall.EPERM)
	if kind == vfs.ModeFIFO {
		err = makeNode(t, args[0], kind, rdev, mode)
	}
	if err != nil {
		t.Fatal(1, "%s: %s", tool.QuoteF(args[0]), tool.Strerror(err))
	}
	return 0
}
