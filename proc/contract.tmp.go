package proc

// What commands may rely on (bodies follow; this file disappears as they land).

import (
	"context"
	"io"
	"time"

	"agentrun.dev/vfs"
)

type Process struct{}

func (p *Process) Context() context.Context             { panic("soon") } // done when the process is killed
func (p *Process) Pid() int                             { panic("soon") }
func (p *Process) Args() []string                       { panic("soon") } // Args()[0] is the name
func (p *Process) Getenv(name string) string            { panic("soon") }
func (p *Process) LookupEnv(name string) (string, bool) { panic("soon") }
func (p *Process) Environ() []string                    { panic("soon") } // NAME=VALUE, exported only
func (p *Process) Stdin() io.Reader                     { panic("soon") } // descriptor 0; a closed one reads EBADF
func (p *Process) Stdout() io.Writer                    { panic("soon") } // unbuffered: wrap in bufio; a broken pipe ends the process with SIGPIPE at the next gate (write returns EPIPE)
func (p *Process) Stderr() io.Writer                    { panic("soon") }
func (p *Process) File(fd int) (vfs.File, error)        { panic("soon") } // EBADF
func (p *Process) IsTerminal(fd int) bool               { panic("soon") }
func (p *Process) Getwd() string                        { panic("soon") }
func (p *Process) Chdir(path string) error              { panic("soon") }
func (p *Process) Umask(mask vfs.Mode) (old vfs.Mode)   { panic("soon") }
func (p *Process) Cred() vfs.Cred                       { panic("soon") }
func (p *Process) Now() time.Time                       { panic("soon") } // the sandbox's clock, in its TZ's location
func (p *Process) Sleep(d time.Duration) error          { panic("soon") } // EINTR when a signal ends it
func (p *Process) Rand() io.Reader                      { panic("soon") } // the sandbox's randomness

// Paths are relative to Getwd. Errors are syscall.Errno (errors.Is, errors.As work), without the path.
func (p *Process) Open(path string, flags int, perm vfs.Mode) (vfs.File, error) { panic("soon") } // O_CREATE, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW
func (p *Process) Stat(path string) (vfs.Attr, error)                           { panic("soon") }
func (p *Process) Lstat(path string) (vfs.Attr, error)                          { panic("soon") }
func (p *Process) Access(path string, mode int) error                           { panic("soon") } // R_OK 4, W_OK 2, X_OK 1
func (p *Process) ReadDir(path string) ([]vfs.DirEntry, error)                  { panic("soon") } // in the filesystem's order
func (p *Process) Readlink(path string) (string, error)                         { panic("soon") }
func (p *Process) Realpath(path string) (string, error)                         { panic("soon") }
func (p *Process) Mkdir(path string, perm vfs.Mode) error                       { panic("soon") }
func (p *Process) Unlink(path string) error                                     { panic("soon") }
func (p *Process) Rmdir(path string) error                                      { panic("soon") }
func (p *Process) Rename(from, to string, flags uint32) error                   { panic("soon") }
func (p *Process) Symlink(target, path string) error                            { panic("soon") }
func (p *Process) Link(from, to string) error                                   { panic("soon") }
func (p *Process) Mknod(path string, mode vfs.Mode, rdev uint64) error          { panic("soon") }
func (p *Process) SetAttr(path string, s vfs.SetAttr, follow bool) error        { panic("soon") } // chmod, chown, utimensat, truncate
func (p *Process) StatFS(path string) (vfs.StatFS, error)                       { panic("soon") }

// Spawn starts a command of the sandbox as a child (found through PATH unless the name has a slash); ENOENT and EACCES
// as execvp. Nil streams are the parent's.
func (p *Process) Spawn(s Spawn) (*Process, error) { panic("soon") }

// Spawn describes a child.
type Spawn struct {
	Args  []string
	Env   []string         // nil: the parent's exported environment
	Dir   string           // "": the parent's
	Files map[int]vfs.File // descriptors that differ from the parent's 0, 1, 2
}

// Wait waits for a child and returns its wait status (exit status, or 128+n after signal n).
func (p *Process) Wait(child *Process) (status int, err error) { panic("soon") }

// Signal sends a signal to a process of the same sandbox: ESRCH, EINVAL.
func (p *Process) Signal(pid, sig int) error { panic("soon") }

// Pipe makes a pipe of 64 KiB.
func (p *Process) Pipe() (r, w vfs.File, err error) { panic("soon") }
