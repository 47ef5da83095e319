package e2b

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
)

// A volume is a bucket, which sandboxes mount and share. Its name begins with volumePrefix, what follows is its id; whose it is and how it
// is called stands in the bucket's attributes.
const (
	volumePrefix = "e2b-volume-"
	attrName     = "e2b.name"
	attrOwner    = "e2b.owner"
	maxVolumes   = 10_000 // that are looked at for a name
)

// volumeOut describes a volume. Token is by which its files are reached.
type volumeOut struct {
	VolumeID string  `json:"volumeID"`
	Name     string  `json:"name"`
	Token    string  `json:"token,omitempty"`
	Domain   *string `json:"domain,omitempty"`
}

func isVolumeName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

func isVolumeID(s string) bool { return len(s) == 32 && isHash(s) && strings.ToLower(s) == s }

// volumeThing is a volume for the guard: a bucket of its owner's.
func volumeThing(info *bucket.Info) access.Thing {
	return access.Thing{Kind: "bucket", ID: info.Name, Called: info.Attributes[attrName], Owner: info.Attributes[attrOwner], Visibility: api.Private}
}

// eachVolume calls f for the volumes that a caller may use.
func (h *Handler) eachVolume(ctx context.Context, who *access.Caller, f func(*bucket.Info) error) error {
	return h.Store.ListPage(ctx, bucket.Page{Prefix: volumePrefix}, func(info *bucket.Info) error {
		if !h.Guard.Sees(who, volumeThing(info)) {
			return nil
		}
		return f(info)
	})
}

// findVolume finds a volume by its id, or the caller's own by its name.
func (h *Handler) findVolume(ctx context.Context, who *access.Caller, called string, v access.Verb) (*bucket.Info, error) {
	const op = "find volume"
	if err := h.store(op); err != nil {
		return nil, err
	}
	none := errs.Msg(errs.NotFound, op, clip(called), "there is no such volume")
	var found *bucket.Info
	if isVolumeID(called) {
		info, err := h.Store.Info(ctx, volumePrefix+called)
		if err != nil && !errs.Is(err, errs.NotFound) {
			return nil, err
		}
		found = info
	}
	if found == nil && isVolumeName(called) {
		err := h.eachVolume(ctx, who, func(info *bucket.Info) error {
			if info.Attributes[attrName] == called && (found == nil || info.Attributes[attrOwner] == who.Principal.Name) {
				found = info
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if found == nil {
		return nil, none
	}
	if err := h.Guard.Check(ctx, who, v, volumeThing(found)); err != nil {
		if errs.Is(err, errs.NotFound) {
			err = none
		}
		return nil, err
	}
	return found, nil
}

func (h *Handler) shownVolume(r *request, info *bucket.Info, token bool) volumeOut {
	out := volumeOut{VolumeID: strings.TrimPrefix(info.Name, volumePrefix), Name: info.Attributes[attrName]}
	if token {
		out.Token = h.tokens.Mint("volume " + out.VolumeID + " " + r.who.Principal.Name + " " + r.who.Principal.Role)
		out.Domain = h.domain()
	}
	return out
}

func (h *Handler) volumes(w http.ResponseWriter, r *request) error {
	if err := h.store("list volumes"); err != nil {
		return err
	}
	if err := h.Guard.Check(r.Context(), r.who, access.SandboxGet, access.Thing{Kind: "sandbox"}); err != nil {
		return err
	}
	out := []volumeOut{}
	err := h.eachVolume(r.Context(), r.who, func(info *bucket.Info) error {
		out = append(out, h.shownVolume(r, info, false))
		return nil
	})
	if err != nil {
		return err
	}
	sortBy(out, func(v volumeOut) string { return v.Name + "/" + v.VolumeID })
	writeJSON(w, http.StatusOK, out)
	return nil
}

func (h *Handler) makeVolume(w http.ResponseWriter, r *request) error {
	const op = "create volume"
	var in struct {
		Name string `json:"name"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if !isVolumeName(in.Name) {
		return errs.Msg(errs.Invalid, op, clip(in.Name), "want a name of 1 to 128 letters, digits, '-' and '_'")
	}
	if err := h.store(op); err != nil {
		return err
	}
	me := r.who.Principal.Name
	if err := h.Guard.Check(r.Context(), r.who, access.SandboxCreate, access.Thing{Kind: "sandbox", Owner: me, Data: map[string]string{"volume": in.Name}}); err != nil {
		return err
	}
	h.labelling.Lock() // of two that take a name at once, one is the second
	defer h.labelling.Unlock()
	n := 0
	err := h.eachVolume(r.Context(), r.who, func(info *bucket.Info) error {
		if n++; n > maxVolumes {
			return errs.Msg(errs.Limit, op, in.Name, "there are too many volumes")
		}
		if info.Attributes[attrName] == in.Name && info.Attributes[attrOwner] == me {
			return errs.Msg(errs.Exists, op, in.Name, "there is a volume of this name")
		}
		return nil
	})
	if err != nil {
		return err
	}
	var id [16]byte
	rand.Read(id[:])
	info, err := h.Store.Create(r.Context(), volumePrefix+hex.EncodeToString(id[:]), bucket.CreateOptions{Attributes: map[string]string{attrName: in.Name, attrOwner: me}})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, h.shownVolume(r, info, true))
	return nil
}

func (h *Handler) volumeInfo(w http.ResponseWriter, r *request) error {
	info, err := h.findVolume(r.Context(), r.who, r.vars["id"], access.BucketUse)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, h.shownVolume(r, info, true))
	return nil
}

// dropVolume deletes a volume with its files. Sandboxes that have it mounted read and write nothing more there.
func (h *Handler) dropVolume(w http.ResponseWriter, r *request) error {
	info, err := h.findVolume(r.Context(), r.who, r.vars["id"], access.BucketUse)
	if err != nil {
		return err
	}
	if err := h.Store.Delete(r.Context(), info.Name, bucket.DeleteOptions{Force: true}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// mount adds the volumes that a sandbox is to have.
func (h *Handler) mount(r *request, mounts []volumeMount, out *api.CreateSandbox) error {
	if len(mounts) > 20 {
		return errs.Msg(errs.Limit, "create sandbox", "volumeMounts", "more than 20")
	}
	for _, m := range mounts {
		info, err := h.findVolume(r.Context(), r.who, m.Name, access.BucketUse)
		if errs.Is(err, errs.NotFound) {
			return errs.Msg(errs.Invalid, "create sandbox", clip(m.Name), "there is no such volume")
		}
		if err != nil {
			return err
		}
		if err := mountAt(out, info.Name, m.Path); err != nil {
			return err
		}
	}
	return nil
}

func mountAt(*api.CreateSandbox, string, string) error {
	return errs.Msg(errs.Unsupported, "create sandbox", "volumeMounts", "this server can't mount volumes")
}
