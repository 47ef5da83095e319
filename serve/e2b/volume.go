package e2b

import (
	"net/http"

	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// volumeOut describes a volume. Token is by which its files are reached.
type volumeOut struct {
	VolumeID string  `json:"volumeID"`
	Name     string  `json:"name"`
	Token    string  `json:"token,omitempty"`
	Domain   *string `json:"domain,omitempty"`
}

// A volume's token is "volume", its id, a principal's name and its role.

func (h *Handler) shownVolume(r *request, v *api.StoredVolume, token bool) volumeOut {
	out := volumeOut{VolumeID: v.ID, Name: v.Name}
	if token {
		out.Token = h.tokens.Mint("volume " + v.ID + " " + r.who.Principal.Name + " " + r.who.Principal.Role)
		out.Domain = h.domain()
	}
	return out
}

func (h *Handler) volumes(w http.ResponseWriter, r *request) error {
	out := []volumeOut{}
	for cursor := ""; ; {
		list, err := h.Control.Volumes(r.Context(), r.who, control.Page{Limit: api.MaxPage, Cursor: cursor})
		if err != nil {
			return err
		}
		for i := range list.Volumes {
			out = append(out, h.shownVolume(r, &list.Volumes[i], false))
		}
		if cursor = list.Next; cursor == "" {
			break
		}
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

func (h *Handler) makeVolume(w http.ResponseWriter, r *request) error {
	var in struct {
		Name string `json:"name"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	v, err := h.Control.CreateVolume(r.Context(), r.who, api.CreateVolume{Name: in.Name})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, h.shownVolume(r, v, true))
	return nil
}

func (h *Handler) volumeInfo(w http.ResponseWriter, r *request) error {
	v, err := h.Control.Volume(r.Context(), r.who, r.vars["id"])
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, h.shownVolume(r, v, true))
	return nil
}

// dropVolume deletes a volume with its files, unless a sandbox has it mounted.
func (h *Handler) dropVolume(w http.ResponseWriter, r *request) error {
	if err := h.Control.DeleteVolume(r.Context(), r.who, r.vars["id"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// mount adds the volumes that a sandbox is to have.
func (h *Handler) mount(r *request, mounts []volumeMount, out *api.CreateSandbox) error {
	for _, m := range mounts {
		_, err := h.Control.UseVolume(r.Context(), r.who, m.Name, true)
		if errs.Is(err, errs.NotFound) {
			return errs.Msg(errs.Invalid, "create sandbox", clip(m.Name), "there is no such volume")
		}
		if err != nil {
			return err
		}
		out.Volumes = append(out.Volumes, api.VolumeMount{Volume: m.Name, Path: m.Path})
	}
	return nil
}

// volumeCaller finds out who asks for the files of a volume: by the volume's token, or an API key.
func (h *Handler) volumeCaller(r *request, token string) error {
	text, ok := h.tokens.Open(token)
	parts := splitToken(text)
	if !ok || len(parts) != 4 || parts[0] != "volume" || parts[1] != r.vars["id"] {
		if err := h.authenticate(r); err != nil {
			return errs.Msg(errs.Unauthorized, "open volume", clip(r.vars["id"]), "the volume's token isn't valid")
		}
		return nil
	}
	var err error
	r.who, err = h.Keys.CallerFor(r.Context(), parts[2], parts[3], r.RemoteAddr, r.id)
	return err
}

// useVolume finds the volume that the path names.
func (h *Handler) useVolume(r *request) (*api.StoredVolume, error) {
	if err := h.store("open volume"); err != nil {
		return nil, err
	}
	write := r.Method != http.MethodGet && r.Method != http.MethodHead
	return h.Control.UseVolume(r.Context(), r.who, r.vars["id"], write)
}
