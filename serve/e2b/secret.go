package e2b

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// A secret of this protocol is one of AgentRun's, of the caller's own: its name here is made of its owner's and its own, its value is one
// of two, the other says what it is.
const (
	secretPrefix = "e2b-"
	idPrefix     = "sec_"
	keyValue     = "value"
	keyAbout     = "about"
	maxSecret    = 128 // bytes of a name
)

// about is what a secret is, without its value.
type about struct {
	Name     string            `json:"name"`
	Version  int               `json:"version"`
	Metadata map[string]string `json:"metadata"`
}

// secretOut describes a secret.
type secretOut struct {
	SecretID       string            `json:"secretID"`
	Name           string            `json:"name"`
	CurrentVersion int               `json:"currentVersion"`
	Metadata       map[string]string `json:"metadata"`
	CreatedAt      time.Time         `json:"createdAt"`
	UpdatedAt      time.Time         `json:"updatedAt"`
}

func shownSecret(s *api.Secret, a *about) secretOut {
	out := secretOut{SecretID: idPrefix + strings.TrimPrefix(s.Name, secretPrefix), Name: a.Name, CurrentVersion: a.Version, Metadata: a.Metadata,
		CreatedAt: s.Created.UTC(), UpdatedAt: s.Changed.UTC()}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	return out
}

// secretLabel is the name of a caller's secret here. Names are the same in upper and lower case.
func secretLabel(owner, name string) string {
	sum := sha256.Sum256([]byte(owner + "\n" + strings.ToLower(name)))
	return secretPrefix + hex.EncodeToString(sum[:16])
}

func checkSecretName(name string) error {
	if name == "" || len(name) > maxSecret || !utf8.ValidString(name) || strings.HasPrefix(strings.ToLower(name), idPrefix) ||
		strings.ContainsFunc(name, func(c rune) bool { return c == '{' || c == '}' || unicode.IsControl(c) }) {
		return errs.Msg(errs.Invalid, "create secret", "", "want a name of 1 to 128 bytes without braces and control characters, that doesn't begin with "+idPrefix)
	}
	return nil
}

func checkMetadata(m map[string]string) error {
	total := 0
	for k, v := range m {
		if total += len(k) + len(v); k == "" || len(k) > 128 || len(v) > 1024 {
			return errs.Msg(errs.Invalid, "create secret", "metadata", "want keys of 1 to 128 and values of at most 1024 bytes")
		}
	}
	if len(m) > 32 || total > 8192 {
		return errs.Msg(errs.TooLarge, "create secret", "metadata", "more than 32 entries, or 8192 bytes")
	}
	return nil
}

// findSecret finds a secret of the caller by its id or name.
func (h *Handler) findSecret(r *request, called string) (*api.Secret, *about, error) {
	name := secretLabel(r.who.Principal.Name, called)
	if id, ok := strings.CutPrefix(called, idPrefix); ok {
		name = secretPrefix + id
	}
	none := errs.Msg(errs.NotFound, "find secret", clip(called), "there is no such secret")
	if !isLabelName(name) {
		return nil, nil, none
	}
	s, err := h.Guard.Secret(r.Context(), r.who, name)
	if errs.Is(err, errs.NotFound) {
		return nil, nil, none
	}
	if err != nil {
		return nil, nil, err
	}
	a, err := h.aboutSecret(r, s)
	return s, a, err
}

func isLabelName(s string) bool { return validName(s) && s[0] != '-' && s[len(s)-1] != '-' }

// aboutSecret reads what a secret is.
func (h *Handler) aboutSecret(r *request, s *api.Secret) (*about, error) {
	values, err := h.Guard.Resolve(r.Context(), r.who, []api.SecretUse{{Ref: api.SecretRef{Name: s.Name, Key: keyAbout}, Env: "ABOUT"}})
	if err != nil {
		return nil, err
	}
	a := &about{}
	if len(values) != 1 || json.Unmarshal([]byte(strings.TrimPrefix(values[0], "ABOUT=")), a) != nil {
		return nil, errs.Msg(errs.NotFound, "find secret", s.Name, "it isn't one of this protocol's")
	}
	return a, nil
}

func (h *Handler) putSecret(r *request, label, value string, a *about) (*api.Secret, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return nil, errs.New(errs.Invalid, "create secret", "", err)
	}
	s, _, err := h.Guard.PutSecret(r.Context(), r.who, api.Secret{Name: label, Data: map[string]string{keyValue: value, keyAbout: string(b)}})
	return s, err
}

func (h *Handler) makeSecret(w http.ResponseWriter, r *request) error {
	var in struct {
		Name     string            `json:"name"`
		Value    string            `json:"value"`
		Metadata map[string]string `json:"metadata"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	for _, err := range []error{checkSecretName(in.Name), checkMetadata(in.Metadata)} {
		if err != nil {
			return err
		}
	}
	h.labelling.Lock()
	defer h.labelling.Unlock()
	_, _, err := h.findSecret(r, in.Name)
	if err == nil {
		return errs.Msg(errs.Exists, "create secret", clip(in.Name), "there is a secret of this name")
	}
	if !errs.Is(err, errs.NotFound) {
		return err
	}
	a := &about{Name: strings.ToLower(in.Name), Version: 1, Metadata: in.Metadata}
	s, err := h.putSecret(r, secretLabel(r.who.Principal.Name, in.Name), in.Value, a)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, shownSecret(s, a))
	return nil
}

func (h *Handler) changeSecret(w http.ResponseWriter, r *request) error {
	var in struct {
		Value    *string           `json:"value"`
		Metadata map[string]string `json:"metadata"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if in.Value == nil {
		return errs.Msg(errs.Invalid, "change secret", "value", "want one")
	}
	if err := checkMetadata(in.Metadata); err != nil {
		return err
	}
	h.labelling.Lock()
	defer h.labelling.Unlock()
	s, a, err := h.findSecret(r, r.vars["id"])
	if err != nil {
		return err
	}
	a.Version++
	if in.Metadata != nil {
		a.Metadata = in.Metadata
	}
	if s, err = h.putSecret(r, s.Name, *in.Value, a); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, shownSecret(s, a))
	return nil
}

func (h *Handler) secretInfo(w http.ResponseWriter, r *request) error {
	s, a, err := h.findSecret(r, r.vars["id"])
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, shownSecret(s, a))
	return nil
}

func (h *Handler) dropSecret(w http.ResponseWriter, r *request) error {
	s, _, err := h.findSecret(r, r.vars["id"])
	if err != nil {
		return err
	}
	if err := h.Guard.DeleteSecret(r.Context(), r.who, s.Name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// secrets lists the caller's own.
func (h *Handler) secrets(w http.ResponseWriter, r *request) error {
	p, err := readPage(r.URL.Query())
	if err != nil {
		return err
	}
	var mine []api.Secret
	for after := ""; ; {
		list, err := h.Guard.Secrets(r.Context(), r.who, after, api.MaxPage)
		if err != nil {
			return err
		}
		for _, s := range list.Secrets {
			if strings.HasPrefix(s.Name, secretPrefix) && s.Owner == r.who.Principal.Name {
				mine = append(mine, s)
			}
		}
		if after = list.Next; after == "" {
			break
		}
	}
	out := []secretOut{}
	for _, s := range cut(w, p, mine, func(s *api.Secret) string { return s.Name }, false) {
		a, err := h.aboutSecret(r, &s)
		if errs.Is(err, errs.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		out = append(out, shownSecret(&s, a))
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}
