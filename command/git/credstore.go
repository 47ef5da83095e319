package git

import (
	"io"
	"slices"
	"strings"
	"syscall"

	"agentrun.dev/vfs"
)

// cmdCredentialStore is the helper that keeps credentials in a file, a URL on each line: readable to its owner alone, and not
// encrypted (git-credential-store(1)).
func (r *repo) cmdCredentialStore(args []string) int {
	var files []string
	o := r.options("credential-store", args)
	for o.next() {
		switch o.name {
		case "--file":
			files = []string{r.homePath(o.arg())}
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) != 1 {
		r.die(129, "usage: git credential-store [<options>] <action>\n\n    --file <path>         fetch and store credentials in <path>\n")
	}
	if files == nil {
		files = r.credentialFiles()
	}
	if len(files) == 0 {
		r.fatal("unable to set up default path; use --file")
	}
	var c credential
	r.readCredential(r.t.Stdin(), &c)
	switch rest[0] {
	case "get":
		r.lookUp(files, &c)
	case "store":
		r.keep(files, &c)
	case "erase":
		r.forget(files, &c)
	}
	return 0
}

func (r *repo) credentialFiles() (files []string) {
	home := r.t.Getenv("HOME")
	if home != "" {
		files = append(files, home+"/.git-credentials")
	}
	if x := r.t.Getenv("XDG_CONFIG_HOME"); x != "" {
		files = append(files, x+"/git/credentials")
	} else if home != "" {
		files = append(files, home+"/.config/git/credentials")
	}
	return files
}

// entries are the lines of a file that are credentials.
func (r *repo) entries(file string) (lines []string) {
	b, err := r.t.ReadFile(file, maxSmall)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

// storedCredential reads a line; ok is false for a comment or what else may stand there.
func storedCredential(line string) (e credential, ok bool) {
	return e, e.setURL(line) && e.username != "" && e.password != ""
}

func (r *repo) lookUp(files []string, c *credential) {
	for _, f := range files {
		for _, line := range r.entries(f) {
			if e, ok := storedCredential(line); ok && c.covers(&e) {
				r.printf("username=%s\npassword=%s\n", e.username, e.password)
				return
			}
		}
	}
}

// keep puts a credential into the first file that is there, else into the first of all, in place of another for the same.
func (r *repo) keep(files []string, c *credential) {
	if c.protocol == "" || !c.hasHost && c.path == "" || c.username == "" || c.password == "" {
		return
	}
	file := files[0]
	for _, f := range files {
		if _, err := r.t.Stat(f); err == nil {
			file = f
			break
		}
	}
	line := c.protocol + "://" + escapeURL(c.username, false) + ":" + escapeURL(c.password, false) + "@"
	if c.hasHost {
		line += escapeURL(c.host, true)
	}
	if c.path != "" {
		line += "/" + escapeURL(c.path, true)
	}
	r.writeEntries(file, append([]string{line}, r.others(file, c)...))
}

func (r *repo) forget(files []string, c *credential) {
	if c.protocol == "" && !c.hasHost && c.path == "" && c.username == "" {
		return // it would be all
	}
	for _, f := range files {
		if _, err := r.t.Stat(f); err == nil {
			r.writeEntries(f, r.others(f, c))
		}
	}
}

// others are a file's lines but those that the credential covers.
func (r *repo) others(file string, c *credential) []string {
	return slices.DeleteFunc(r.entries(file), func(line string) bool {
		e, ok := storedCredential(line)
		return ok && c.covers(&e)
	})
}

// writeEntries replaces a file in one step.
func (r *repo) writeEntries(file string, lines []string) {
	text := strings.Join(lines, "\n")
	if len(lines) > 0 {
		text += "\n"
	}
	lock := file + ".lock"
	f, err := r.t.Process.Open(lock, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, vfs.Mode(0o600))
	if err != nil {
		r.fatal("unable to get credential storage lock in 1000 ms: %s", strerror(err))
	}
	_, err = io.WriteString(f, text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = r.t.Rename(lock, file, 0)
	}
	if err != nil {
		r.t.Unlink(lock)
		r.fatal("unable to write credential store: %s", strerror(err))
	}
}

// cmdCredentialCache says what git says where it can't leave a process behind that others reach.
func (r *repo) cmdCredentialCache([]string) int {
	r.fatal("credential-cache unavailable; no unix socket support")
	return 128
}
