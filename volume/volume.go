// Package volume is what a sandbox mounts: buckets, forks of buckets, folders of the host, memory; and what becomes of them
// when the sandbox forks.
//
// A Spec says what a volume is and, by its fork policy, what a fork of the sandbox gets in its place: an empty one (Fresh),
// the same one (Share), a copy-on-write snapshot (Snapshot), or a copy that shares nothing (Clone). A Set is the volumes of
// one sandbox. A Cut is all of them at one instant, from which any number of Sets are made: those of the forks of a running
// sandbox, or of a hibernated one that wakes up.
package volume

import (
	"fmt"
	"path"
	"strings"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// Policy says what a fork of a sandbox gets in place of a volume.
type Policy string

// The fork policies.
const (
	Fresh    Policy = "Fresh"    // an empty volume of the same size
	Share    Policy = "Share"    // the same volume: both see each other's writes
	Snapshot Policy = "Snapshot" // what the volume held at the cut, copied when written
	Clone    Policy = "Clone"    // what the volume held at the cut, copied at once
)

// MaxVolumes bounds the volumes of one sandbox.
const MaxVolumes = 64

// Spec says what a volume is. At most one of Bucket, Base, Empty and Host is set; with none of them it is in memory.
type Spec struct {
	Name     string   `json:"name"`
	Path     string   `json:"path,omitempty"`   // where it is mounted, absolute; "/" is the root filesystem; "" is /Name
	Policy   Policy   `json:"policy,omitempty"` // "" is Share for a folder of the host, Snapshot for all else
	ReadOnly bool     `json:"readOnly,omitempty"`
	Size     int64    `json:"size,omitempty"`   // bytes that its files may have together; 0: as much as there is, 256 MiB in memory
	Bucket   string   `json:"bucket,omitempty"` // the bucket itself
	Base     string   `json:"base,omitempty"`   // a fork of this bucket (or of NAME@SNAPSHOT), which ends with the sandbox
	Empty    bool     `json:"empty,omitempty"`  // a bucket of its own, empty at first, which ends with the sandbox
	Host     string   `json:"host,omitempty"`   // a folder of this machine
	Mode     vfs.Mode `json:"mode,omitempty"`   // of a root directory in memory; 0 is 0755
	Root     bool     `json:"root,omitempty"`   // files in memory belong to root, not to the sandbox's user
}

// normal fills defaults in and says what is wrong.
func (s Spec) normal() (Spec, error) {
	bad := func(format string, a ...any) (Spec, error) {
		return s, errs.Msg(errs.Invalid, "volume", s.Name, fmt.Sprintf(format, a...))
	}
	if s.Path == "" {
		s.Path = "/" + s.Name
	}
	if !path.IsAbs(s.Path) || len(s.Path) > vfs.MaxPath || strings.ContainsRune(s.Path, 0) {
		return bad("the path %q isn't absolute", s.Path)
	}
	s.Path = path.Clean(s.Path)
	sources := 0
	for _, v := range []string{s.Bucket, s.Base, s.Host} {
		if v != "" {
			sources++
		}
	}
	if s.Empty {
		sources++
	}
	switch {
	case sources > 1:
		return bad("bucket, base, empty and host exclude each other")
	case s.Size < 0:
		return bad("the size %d is negative", s.Size)
	case s.Size > 0 && s.Host != "":
		return s, errs.Msg(errs.Unsupported, "volume", s.Name, "the size of a host's folder can't be limited")
	case s.Policy == "" && s.Host != "":
		s.Policy = Share
	case s.Policy == "":
		s.Policy = Snapshot
	}
	switch s.Policy {
	case Fresh, Share, Clone:
	case Snapshot:
		if s.Host != "" {
			return s, errs.Msg(errs.Unsupported, "volume", s.Name, "a host's folder has no snapshots: share it, clone it, or begin afresh")
		}
	default:
		return bad("no fork policy %q; there are Fresh, Share, Snapshot and Clone", string(s.Policy))
	}
	return s, nil
}

// normalAll checks all volumes of a sandbox.
func normalAll(specs []Spec) ([]Spec, error) {
	if len(specs) > MaxVolumes {
		return nil, errs.Msg(errs.Limit, "volumes", "", fmt.Sprintf("%d volumes; %d are the most", len(specs), MaxVolumes))
	}
	out := make([]Spec, 0, len(specs))
	at := map[string]string{}
	for _, s := range specs {
		n, err := s.normal()
		if err != nil {
			return nil, err
		}
		if other, taken := at[n.Path]; taken {
			return nil, errs.Msg(errs.Invalid, "volume", n.Name, fmt.Sprintf("%q is at %s already", other, n.Path))
		}
		at[n.Path] = n.Name
		out = append(out, n)
	}
	return out, nil
}
