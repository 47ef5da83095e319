package compress

import (
	"errors"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// Zgrep runs grep on decompressed files.
func Zgrep(t *tool.T) int { return zgrep(t, "grep") }

// Zegrep runs grep -E on decompressed files.
func Zegrep(t *tool.T) int { return zgrep(t, "grep", "-E") }

// Zfgrep runs grep -F on decompressed files.
func Zfgrep(t *tool.T) int { return zgrep(t, "grep", "-F") }

// zgrep splits the arguments into those of grep and files, as the script zgrep does, and feeds each file to a grep.
func zgrep(t *tool.T, command ...string) int {
	args := t.Args()[1:]
	havePattern, names, noNames := false, false, false
	var files []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--help":
			t.Out.WriteString("Usage: " + base(t.Name) + " [OPTION]... [-e] PATTERN [FILE]...\nLook for instances of PATTERN in the input FILEs, using their\nuncompressed contents if they are compressed.\n\nOPTIONs are the same as for 'grep'.\n")
			return 0
		case a == "--":
			rest := args[i+1:]
			if !havePattern && len(rest) > 0 {
				command = append(command, "-e", rest[0])
				havePattern, rest = true, rest[1:]
			}
			files = append(files, rest...)
			i = len(args)
		case len(a) > 1 && a[0] == '-':
			command = append(command, a)
			last := a[len(a)-1]
			long := strings.HasPrefix(a, "--")
			if a == "--regexp" || a == "--file" || !long && (last == 'e' || last == 'f') || strings.HasPrefix(a, "-e") || strings.HasPrefix(a, "--regexp=") || strings.HasPrefix(a, "--file=") {
				havePattern = true
			}
			if !long {
				names = names || strings.Contains(a, "H")
				noNames = noNames || strings.Contains(a, "h")
			}
			takes := !long && strings.IndexByte("efmABCdD", last) >= 0 && len(a) == 2 || a == "--regexp" || a == "--file" || a == "--max-count" || a == "--after-context" || a == "--before-context" || a == "--context"
			if takes && i+1 < len(args) {
				i++
				command = append(command, args[i])
			}
		case !havePattern:
			command = append(command, "-e", a)
			havePattern = true
		default:
			files = append(files, a)
		}
	}
	if !havePattern {
		t.Fatal(2, "missing pattern; try `%s --help' for help", base(t.Name))
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	status := 1
	for _, f := range files {
		with := command[:len(command):len(command)]
		if (len(files) > 1 || names) && !noNames {
			with = append(with, "-H")
		}
		switch s := zgrepFile(t, append(with, "--label="+f), f); {
		case s == 0 && status == 1:
			status = 0
		case s > 1:
			status = s
		}
	}
	return status
}

// zgrepFile feeds one file to a grep, and returns its status, or 2 if the file can't be read.
func zgrepFile(t *tool.T, command []string, name string) int {
	in, err := t.Open(name)
	if err != nil {
		t.Out.Flush()
		t.Stderr().Write([]byte("gzip: " + name + ": " + tool.Strerror(err) + "\n"))
		return 2
	}
	defer in.Close()
	t.Out.Flush()
	r, w, err := t.Pipe()
	if err != nil {
		t.Fatal(2, "%s", tool.Strerror(err))
	}
	child, err := t.Spawn(proc.Spawn{Args: command, Files: map[int]vfs.File{0: r}})
	r.Close()
	if err != nil {
		w.Close()
		t.Fatal(2, "%s", tool.Strerror(err))
	}
	// A grep that has seen enough doesn't end this command by its closed pipe.
	if old, err := t.SetSignal(proc.SIGPIPE, proc.Ignore); err == nil {
		defer t.SetSignal(proc.SIGPIPE, old)
	}
	broken := false
	z, _, err := sniff(in)
	if err == nil {
		_, err = pump(t, w, z)
		z.Close()
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		broken = true
		t.Stderr().Write([]byte("\ngzip: " + name + ": " + tool.Strerror(err) + "\n"))
	}
	w.Close()
	status, err := t.Wait(child)
	if err != nil || broken {
		return 2
	}
	return status
}
