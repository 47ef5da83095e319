package e2b

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// relabel changes the labels of a template, of which there is one version with this spec that is the newest.
func (h *Handler) relabel(r *request, t *api.Template, change func(api.Labels)) (*api.Template, error) {
	h.labelling.Lock()
	defer h.labelling.Unlock()
	now, err := h.Control.Template(r.Context(), r.who, t.Name, 0)
	if err != nil {
		return nil, err
	}
	labels := api.Labels{}
	for k, v := range now.Labels {
		labels[k] = v
	}
	change(labels)
	out, _, err := h.Control.PutTemplate(r.Context(), r.who, t.Name, now.Spec, labels)
	return out, err
}

// versionOf is the version that a name means.
func versionOf(t *api.Template, c called) (int, error) {
	if c.tag == "" {
		return t.Version, nil
	}
	n, err := strconv.Atoi(t.Labels[labelTag+c.tag])
	if err != nil {
		return 0, errs.Msg(errs.NotFound, "find tag", clip(c.text+":"+c.tag), "the template has no such tag")
	}
	return n, nil
}

func checkTags(tags []string) error {
	if len(tags) > maxTags {
		return errs.Msg(errs.Limit, "read tags", "", fmt.Sprintf("more than %d", maxTags))
	}
	for _, tag := range tags {
		if c, err := readName("t:" + tag); err != nil || c.tag != tag || tag == "" {
			return errs.Msg(errs.Invalid, "read tags", clip(tag), "want letters, digits, '-', '_' and '.'; default and latest are the newest version")
		}
	}
	return nil
}

// bareTags are tags as clients give them, which may have the name before them.
func bareTags(tags []string) []string {
	out := make([]string, 0, len(tags))
	for _, t := range tags {
		if i := strings.LastIndexByte(t, ':'); i >= 0 {
			t = t[i+1:]
		}
		if t != defaultTag && t != "latest" {
			out = append(out, t)
		}
	}
	return out
}

func (h *Handler) assignTags(w http.ResponseWriter, r *request) error {
	var in struct {
		Target string   `json:"target"`
		Tags   []string `json:"tags"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	tags := bareTags(in.Tags)
	if err := checkTags(tags); err != nil {
		return err
	}
	c, err := readName(in.Target)
	if err != nil {
		return err
	}
	t, err := h.newest(r, c.name)
	if err != nil {
		return err
	}
	version, err := versionOf(t, c)
	if err != nil {
		return err
	}
	if t, err = h.setTags(r, t, version, tags); err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, map[string]any{"buildID": buildID(t, version), "tags": in.Tags})
	return nil
}

func (h *Handler) setTags(r *request, t *api.Template, version int, tags []string) (*api.Template, error) {
	have := 0
	for k := range t.Labels {
		if strings.HasPrefix(k, labelTag) {
			have++
		}
	}
	if have+len(tags) > 2*maxTags {
		return nil, errs.Msg(errs.Limit, "assign tags", t.Name, "the template has too many")
	}
	return h.relabel(r, t, func(l api.Labels) {
		for _, tag := range tags {
			l[labelTag+tag] = strconv.Itoa(version)
		}
	})
}

func (h *Handler) removeTags(w http.ResponseWriter, r *request) error {
	var in struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	tags := bareTags(in.Tags)
	if err := checkTags(tags); err != nil {
		return err
	}
	c, err := readName(in.Name)
	if err != nil {
		return err
	}
	t, err := h.newest(r, c.name)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		if t.Labels[labelTag+tag] == "" {
			return errs.Msg(errs.NotFound, "remove tags", clip(tag), "the template has no such tag")
		}
	}
	_, err = h.relabel(r, t, func(l api.Labels) {
		for _, tag := range tags {
			delete(l, labelTag+tag)
		}
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *Handler) tags(w http.ResponseWriter, r *request) error {
	t, _, err := h.template(r)
	if err != nil {
		return err
	}
	type tagOut struct {
		Tag       string    `json:"tag"`
		BuildID   string    `json:"buildID"`
		CreatedAt time.Time `json:"createdAt"`
	}
	out := []tagOut{{defaultTag, buildID(t, t.Version), t.Created.UTC()}}
	for k, v := range t.Labels {
		tag, ok := strings.CutPrefix(k, labelTag)
		n, err := strconv.Atoi(v)
		if !ok || err != nil {
			continue
		}
		at := t.Created
		if version, err := h.Control.Template(r.Context(), r.who, t.Name, n); err == nil {
			at = version.Created
		}
		out = append(out, tagOut{tag, buildID(t, n), at.UTC()})
	}
	sortBy(out, func(t tagOut) string { return t.Tag })
	writeJSON(w, http.StatusOK, out)
	return nil
}
