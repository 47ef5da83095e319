package wire

import (
	"encoding/json"
	"time"

	"agentrun.dev/errs"
)

// Request is what a stream opens with: one of its fields is set.
type Request struct {
	Exec     *Exec     `json:"exec,omitempty"`     // Started, data, Exited
	Attach   *Attach   `json:"attach,omitempty"`   // the same
	Running  *struct{} `json:"running,omitempty"`  // Running, as many as it takes
	Signal   *Signal   `json:"signal,omitempty"`   // –
	Resize   *Resize   `json:"resize,omitempty"`   // –
	Dial     *Dial     `json:"dial,omitempty"`     // data both ways, after an empty message
	Stat     *Path     `json:"stat,omitempty"`     // Info
	List     *Path     `json:"list,omitempty"`     // Entries, as many as it takes
	Read     *Read     `json:"read,omitempty"`     // Info, data
	Write    *Write    `json:"write,omitempty"`    // data from the host, closed; then Info
	Mkdir    *Mkdir    `json:"mkdir,omitempty"`    // –
	Remove   *Path     `json:"remove,omitempty"`   // –
	Move     *Move     `json:"move,omitempty"`     // –
	Watch    *Path     `json:"watch,omitempty"`    // an empty message, then Events
	Tree     *struct{} `json:"tree,omitempty"`     // Tree; it lasts as long as the call
	Node     *Node     `json:"node,omitempty"`     // see Node
	Stats    *struct{} `json:"stats,omitempty"`    // Stats
	Freeze   *Freeze   `json:"freeze,omitempty"`   // –
	Flush    *Freeze   `json:"flush,omitempty"`    // –
	Thaw     *Freeze   `json:"thaw,omitempty"`     // –
	Renew    *Renew    `json:"renew,omitempty"`    // –
	Asks     *struct{} `json:"asks,omitempty"`     // Ask, as many as come, as long as the call lasts
	Reply    *Reply    `json:"reply,omitempty"`    // data from the host, then Exit; errs.NotFound or errs.Canceled if nobody waits for it any more
	Mount    *Mount    `json:"mount,omitempty"`    // –
	Unmount  *Path     `json:"unmount,omitempty"`  // –
	Shutdown *struct{} `json:"shutdown,omitempty"` // –, and the machine goes off
}

// Size is a terminal's, in characters.
type Size struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// Exec starts a command.
type Exec struct {
	Args  []Text           `json:"args"`
	Env   []Text           `json:"env,omitempty"`
	Dir   Text             `json:"dir,omitempty"`
	User  Text             `json:"user,omitempty"` // a name, or UID or UID:GID; the agent's default when empty
	TTY   *Size            `json:"tty,omitempty"`
	Modes map[uint8]uint32 `json:"modes,omitempty"` // of the terminal, by RFC 4254, section 8
	Keep  bool             `json:"keep,omitempty"`  // processes that it leaves go on
	Stdin bool             `json:"stdin,omitempty"` // data of channel Input follows
}

// Attach takes up a command that is running, or has ended without anyone being told.
type Attach struct {
	Pid int `json:"pid"`
}

// Signal sends a signal to a command's process group.
type Signal struct {
	Pid    int `json:"pid"`
	Signal int `json:"signal"`
}

// Dial connects to a TCP port.
type Dial struct {
	Port uint16 `json:"port"`
}

// Resize changes the size of a command's terminal. Like Signal it is a call of its own: on the command's stream it would wait behind input that
// the command doesn't read.
type Resize struct {
	Pid  int  `json:"pid"`
	Size Size `json:"size"`
}

// Progress is what the guest tells of a command: first Pid, last Exited.
type Progress struct {
	Pid    int   `json:"pid,omitempty"`
	Exited *Exit `json:"exited,omitempty"`
}

// Exit is a command's end: its status, as the shell has it.
type Exit struct {
	Status int `json:"status"`
	Signal int `json:"signal,omitempty"` // that ended it
}

// Running lists commands.
type Running struct {
	Commands []Command `json:"commands"`
}

// Command is one that Exec started.
type Command struct {
	Pid  int    `json:"pid"`
	Args []Text `json:"args"` // the first 2 KiB of them, or so
	TTY  bool   `json:"tty,omitempty"`
}

// Path names a file.
type Path struct {
	Path Text `json:"path"`
	// All: Stat doesn't follow a link at the end, Remove takes folders with all they hold, Watch all folders below.
	All bool `json:"all,omitempty"`
}

// Read reads Count bytes from Offset; all when Count is negative.
type Read struct {
	Path   Text  `json:"path"`
	Offset int64 `json:"offset,omitempty"`
	Count  int64 `json:"count"`
}

// Write makes or replaces a file, in one step once all its data is there.
type Write struct {
	Path    Text    `json:"path"`
	Mode    *uint32 `json:"mode,omitempty"`  // permissions; those of the file that it replaces, or 0644
	Owner   Text    `json:"owner,omitempty"` // as Exec.User; the agent's own when empty
	Parents bool    `json:"parents,omitempty"`
}

// Mkdir makes a folder.
type Mkdir struct {
	Path    Text   `json:"path"`
	Mode    uint32 `json:"mode"`
	Owner   Text   `json:"owner,omitempty"`
	Parents bool   `json:"parents,omitempty"` // and no error if it is there
}

// Move renames a file.
type Move struct {
	From Text `json:"from"`
	To   Text `json:"to"`
}

// Info tells of a file.
type Info struct {
	Name   Text      `json:"name"`
	Mode   uint32    `json:"mode"` // as st_mode
	Size   int64     `json:"size"`
	UID    uint32    `json:"uid"`
	GID    uint32    `json:"gid"`
	MTime  time.Time `json:"mtime"`
	Target Text      `json:"target,omitempty"` // of a link
}

// Entries are some of a folder's, in order of name.
type Entries struct {
	Entries []Info `json:"entries"`
}

// Event is a change to a file.
type Event struct {
	Op   string `json:"op"` // create, write, remove, rename, chmod, overflow: events were lost
	Path Text   `json:"path"`
}

// Events are some changes, in order.
type Events struct {
	Events []Event `json:"events"`
}

// Ask is a command that a program of the workload wants to be run by the host, such as a fork of the sandbox.
type Ask struct {
	ID   uint64 `json:"id"`
	Args []Text `json:"args"` // the command's name first
	Dir  Text   `json:"dir"`  // where it was called
	// Again says that the host was told of it over an earlier call, and has not ended it: it may have been the machine's from which this one
	// was forked.
	Again bool `json:"again,omitempty"`
}

// Reply is what the host's run of a command that was asked for says.
type Reply struct {
	ID uint64 `json:"id"`
}

// Stats tell what the sandbox uses.
type Stats struct {
	CPU         time.Duration `json:"cpu"`
	Memory      int64         `json:"memory"` // bytes
	MemoryPeak  int64         `json:"memoryPeak,omitempty"`
	MemoryTotal int64         `json:"memoryTotal"`     // of the machine
	MemoryFree  int64         `json:"memoryAvailable"` // of the machine
	Processes   []Process     `json:"processes"`       // at most 400, of the lowest numbers
	Count       int           `json:"count"`           // of all processes
}

// Process is one of the workload's.
type Process struct {
	Pid    int           `json:"pid"`
	Parent int           `json:"parent"`
	UID    uint32        `json:"uid"`
	Name   Text          `json:"name"`
	Memory int64         `json:"memory"`
	CPU    time.Duration `json:"cpu"`
}

// Freeze stops the workload, or is about one that stands still, writes what its filesystems hold back or lets it go on: only who has the token
// that it was frozen with can do that.
type Freeze struct {
	Token string `json:"token"`
}

// Renew makes the machine another than the one that it was forked from, and then lets the workload go on. If anything of it fails, the
// workload stays frozen.
type Renew struct {
	Token     string      `json:"token"`   // that it was frozen with
	Entropy   []byte      `json:"entropy"` // 32 bytes at least
	Time      time.Time   `json:"time"`
	Hostname  Text        `json:"hostname,omitempty"`
	MachineID Text        `json:"machineId,omitempty"` // 32 hexadecimal digits
	Env       []Text      `json:"env,omitempty"`       // of commands from now on; replaces what an earlier Renew set
	Links     []Interface `json:"links,omitempty"`
	DNS       []Text      `json:"dns,omitempty"`       // addresses of name servers
	Processes int         `json:"processes,omitempty"` // that the workload may have at once, threads counted; no limit when zero
}

// Interface is how a network interface is set.
type Interface struct {
	Name    Text `json:"name"`
	MAC     Text `json:"mac,omitempty"`
	Address Text `json:"address,omitempty"` // IPv4 with the length of its prefix
	Gateway Text `json:"gateway,omitempty"`
}

// Mount mounts a filesystem.
type Mount struct {
	Type    Text `json:"type"` // virtiofs, tmpfs, ext4 …
	Source  Text `json:"source"`
	Path    Text `json:"path"`
	Options Text `json:"options,omitempty"`
	Read    bool `json:"readOnly,omitempty"`
}

// Decode parses JSON from the other side, all of it.
func Decode(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return corrupt("a message can't be read: %v", err)
	}
	return nil
}

// Receive takes the next frame, which must be a message, into v.
func (s *Stream) Receive(v any) error {
	f, err := s.Recv()
	if err != nil {
		return err
	}
	if f.Type != Message {
		return errs.Msg(errs.Corrupt, "guest protocol", "", "a message is expected, not data")
	}
	return Decode(f.Payload, v)
}
