package api

import "time"

// Run runs something in a sandbox and waits for it: POST /v1/sandboxes/{id}/exec. Exactly one of Code and Args is set. The answer
// is a RunResult; with Accept: text/event-stream (or NDJSON) it is a stream of RunEvents as things happen. A command with a
// terminal, or that is sent input as it runs, goes over a WebSocket, GET /v1/sandboxes/{id}/exec, which is GET /v1/exec without mounts.
//
// Code is text. Language says what it is; without one it is what the sandbox's language parses, unless it is only names,
// attributes, numbers and operators and its first word is a command (ls -la, pwd, id, true): that, and everything else, is
// shell. Interpreters keep their state from one text to the next inside a Session, and forks carry that state; shell text
// starts afresh each time, unless Session names one: then variables, functions and the directory stay.
type Run struct {
	Code     string            `json:"code,omitempty"`
	Language string            `json:"language,omitempty"` // shell, python or javascript
	Session  string            `json:"session,omitempty"`  // "" is the language's default session; of shell: none
	Args     []string          `json:"args,omitempty"`     // a command without a shell
	Env      map[string]string `json:"env,omitempty"`
	Dir      string            `json:"dir,omitempty"`     // absolute
	Stdin    string            `json:"stdin,omitempty"`   // all of standard input
	Timeout  float64           `json:"timeout,omitempty"` // seconds; 0 is the server's: an hour
	Root     bool              `json:"root,omitempty"`    // as user 0 of the sandbox
	// Background starts it and doesn't wait: the answer is a RunResult with the Pid. Output goes to Log, a file in the sandbox, if set.
	Background bool   `json:"background,omitempty"`
	Log        string `json:"log,omitempty"`
}

// MaxOutput is how many bytes of each stream a RunResult holds, the first and the last half; a stream has no such limit.
const MaxOutput = 8 << 20

// RunResult is how it ended. Output that isn't UTF-8 has U+FFFD in place of wrong bytes; streams have bytes.
type RunResult struct {
	ExitCode  int     `json:"exitCode"` // 0–255; 124: timed out
	Stdout    string  `json:"stdout"`
	Stderr    string  `json:"stderr"`
	Result    string  `json:"result,omitempty"` // the value of Python's or JavaScript's last expression, as the interpreter shows it; it is part of Stdout too
	Language  string  `json:"language"`         // as what it ran
	Truncated bool    `json:"truncated,omitempty"`
	TimedOut  bool    `json:"timedOut,omitempty"`
	Duration  float64 `json:"duration"` // seconds
	Pid       int     `json:"pid,omitempty"`
}

// RunEvent is one of a stream: as SSE its Type is the event's name too. Exactly one of the others is set.
type RunEvent struct {
	Type   string     `json:"type"`             // start, stdout, stderr, exit or error
	Pid    int        `json:"pid,omitempty"`    // of start
	Data   []byte     `json:"data,omitempty"`   // of stdout and stderr, base64
	Result *RunResult `json:"result,omitempty"` // of exit, without the output
	Error  *Problem   `json:"error,omitempty"`
}

// ProcessInfo is a process of a sandbox: GET /v1/sandboxes/{id}/processes; DELETE /v1/sandboxes/{id}/processes/{pid}?signal=TERM.
type ProcessInfo struct {
	Pid  int      `json:"pid"`
	Args []string `json:"args"`
	TTY  bool     `json:"tty,omitempty"`
}

// Processes are the commands that were started in a sandbox and haven't ended.
type Processes struct {
	Processes []ProcessInfo `json:"processes"`
}

// FileInfo describes a file of a sandbox: GET /v1/sandboxes/{id}/files/stat?path=P.
type FileInfo struct {
	Path     string    `json:"path"`
	Name     string    `json:"name"`
	Type     string    `json:"type"` // file, directory, symlink or other
	Size     int64     `json:"size"`
	Mode     uint32    `json:"mode"` // permission bits
	UID      uint32    `json:"uid"`
	GID      uint32    `json:"gid"`
	Modified time.Time `json:"modified"`
	Target   string    `json:"target,omitempty"` // of a symlink
}

// Files are entries of a directory by name: GET /v1/sandboxes/{id}/files/list?path=P[&depth=N&limit=N&cursor=].
// The content of a file is GET, PUT and DELETE /v1/sandboxes/{id}/files?path=P: as it is, with Range on GET; PUT makes directories that are
// missing, replaces the file at once when all of it has come, and takes mode=0644; DELETE takes recursive=true.
// POST …/files/mkdir and …/files/move take FileAction. A relative path begins at the start directory.
type Files struct {
	Files []FileInfo `json:"files"`
	Next  string     `json:"next,omitempty"`
}

// FileAction makes a directory at Path, with those above it, or moves Path to To.
type FileAction struct {
	Path string `json:"path"`
	To   string `json:"to,omitempty"`
	Mode uint32 `json:"mode,omitempty"`
}

// FileEvent is a change of a file: GET /v1/sandboxes/{id}/files/watch?path=P[&recursive=true], a stream of SSE or NDJSON that begins with one
// of Kind ready.
type FileEvent struct {
	Kind string `json:"kind"` // ready, create, write, remove, rename, chmod; overflow: some were missed
	Path string `json:"path,omitempty"`
	To   string `json:"to,omitempty"` // of rename
}
