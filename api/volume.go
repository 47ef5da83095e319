package api

import "time"

// CreateVolume asks for a volume: POST /v1/volumes. It is made by itself, outlives sandboxes, and is mounted where CreateSandbox says: all
// that mount it see one another's writes. A name is its owner's once.
type CreateVolume struct {
	Name   string `json:"name"`
	Size   int64  `json:"size,omitempty"`  // bytes that its files may have together; 0: no limit of its own
	Owner  string `json:"owner,omitempty"` // another principal than the caller; for operators
	Labels Labels `json:"labels,omitempty"`
}

// StoredVolume is a volume by itself: GET /v1/volumes/{id}, where id is an id or the name of one of the caller's own; DELETE deletes it
// with what it holds, unless a sandbox has it mounted.
type StoredVolume struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Owner     string    `json:"owner,omitempty"`
	Bucket    string    `json:"bucket"` // that holds its files
	Size      int64     `json:"size,omitempty"`
	Labels    Labels    `json:"labels,omitempty"`
	Sandboxes []string  `json:"sandboxes,omitempty"` // ids of those that have it mounted, and haven't ended
	Created   time.Time `json:"created"`
}

// StoredVolumes is a page of volumes, oldest first: GET /v1/volumes.
type StoredVolumes struct {
	Volumes []StoredVolume `json:"volumes"`
	Next    string         `json:"next,omitempty"`
}

// VolumeMount mounts a volume in a sandbox from its claim on; forks of it have it, too, but what is made of a snapshot hasn't. Volume is its
// id, or the name of one of the owner's.
type VolumeMount struct {
	Volume   string `json:"volume"`
	Path     string `json:"path"` // absolute, where no other volume is
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// MaxVolumeMounts bounds those of one sandbox.
const MaxVolumeMounts = 16
