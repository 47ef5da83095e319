package api

// GET /v1/exec is a WebSocket on which one command runs in a sandbox over buckets, made for it; GET /v1/sandboxes/{id}/exec one
// on which a command or a text runs in a sandbox that there is.
//
// The client's first message is an Exec as text. Then binary messages carry bytes: the first byte says of which stream
// (Stdin from the client, Stdout and Stderr from the server). Text messages are Control. The server grants the client
// a window for standard input: it may send as many bytes as the windows granted so far add up to, so that a command
// which doesn't read can't fill the server. The server ends with an exit or an error, then closes the socket.

// ExecProtocol is the WebSocket subprotocol.
const ExecProtocol = "agentrun.exec.v1"

// Streams, as the first byte of a binary message.
const (
	Stdin  = 0
	Stdout = 1
	Stderr = 2
)

// Limits of an exec; exceeding one is "invalid" or "too large".
const (
	MaxFrame    = 64 << 10  // bytes in a binary message, without the first
	StdinWindow = 256 << 10 // bytes of input that the server holds
	MaxArgs     = 128 << 10 // bytes in arguments and environment together
	MaxMounts   = 32        // buckets in one sandbox
)

// Exec asks for a command. The first mount without a path is the start directory, /workspace. Timeout is in seconds; 0 is
// none but the server's own.
//
// In a sandbox that there is, Mounts is empty, and instead of Args there may be Code, a text as Run has it, or Attach, the
// id of a process whose output is taken up: at most the newest MiB of what it wrote since it began, and what follows; of one that ended
// within the last ten minutes, only how. With Keep
// a command goes on when the client goes, and so does what was taken up.
type Exec struct {
	Args     []string `json:"args,omitempty"`
	Code     string   `json:"code,omitempty"`
	Language string   `json:"language,omitempty"` // of Code
	Session  string   `json:"session,omitempty"`  // of Code
	Attach   int      `json:"attach,omitempty"`
	Env      []string `json:"env,omitempty"`  // NAME=VALUE
	Dir      string   `json:"dir,omitempty"`  // absolute; "" is /workspace
	Root     bool     `json:"root,omitempty"` // as user 0 of the sandbox
	Mounts   []Mount  `json:"mounts,omitempty"`
	Timeout  int64    `json:"timeout,omitempty"`
	TTY      *Size    `json:"tty,omitempty"`  // a terminal: Stdin is what is typed, Stdout what is shown
	Keep     bool     `json:"keep,omitempty"` // over buckets: the forks of Mounts outlive the command; for root keys
}

// Size is a terminal's, in characters.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// MaxSize bounds each side of a terminal.
const MaxSize = 1 << 14

// Mount puts a bucket into the sandbox. Bucket is a name; Path is absolute, "" is /workspace for the first and /NAME for others.
// With Fork it is a fork of the bucket (or of NAME@SNAPSHOT) that is mounted, and deleted when the command has ended.
type Mount struct {
	Bucket   string `json:"bucket"`
	Path     string `json:"path,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	Fork     bool   `json:"fork,omitempty"`
}

// Control is a text message after the first; exactly one field is set.
type Control struct {
	Signal string     `json:"signal,omitempty"` // client: HUP, INT, QUIT, KILL, TERM, USR1, USR2
	EOF    bool       `json:"eof,omitempty"`    // client: standard input has ended
	Resize *Size      `json:"resize,omitempty"` // client: the terminal's new size
	Kept   []Mount    `json:"kept,omitempty"`   // server: the forks that outlive the command, before it begins
	Window int64      `json:"window,omitempty"` // server: further bytes of standard input that may be sent
	Pid    int        `json:"pid,omitempty"`    // server: the command in a sandbox has begun
	Result *RunResult `json:"result,omitempty"` // server: how a text ended, without the output; the exit follows
	Exit   *int       `json:"exit,omitempty"`   // server: the exit status, 0–255
	Error  *Problem   `json:"error,omitempty"`  // server: the command couldn't be run, or was ended
}
