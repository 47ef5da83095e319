package e2b

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// A template is AgentRun's own, and its name is its id. What else this protocol knows of it is in its labels.
const (
	labelName   = reserved + "name"   // as its maker wrote it, where that can't be a template's name here
	labelUser   = reserved + "user"   // as whom commands run
	labelDir    = reserved + "dir"    // where they begin
	labelStart  = reserved + "start"  // it has a start command
	labelTag    = reserved + "tag."   // with the tag: a version
	labelBuild  = reserved + "build." // with a version: the id of the build that made it
	defaultTag  = "default"
	maxTags     = 16 // of one template
	keptBuilds  = 16 // versions whose builds' ids are kept
	maxName     = 128
	maxNameSlug = 56
)

// called is how a client names a template: namespace/name:tag. All namespaces are one here.
type called struct {
	name string // of the template
	text string // as it was written, without namespace and tag
	tag  string // "" is the newest
}

// readName reads the name of a template. One that can't be a template's name here gets one that can, always the same.
func readName(text string) (called, error) {
	c := called{text: text}
	if i := strings.LastIndexByte(c.text, '/'); i >= 0 {
		c.text = c.text[i+1:]
	}
	c.text, c.tag, _ = strings.Cut(c.text, ":")
	if c.tag == defaultTag || c.tag == "latest" {
		c.tag = ""
	}
	bad := func(s string) bool {
		return strings.ContainsFunc(s, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
		})
	}
	if c.text == "" || len(text) > maxName || bad(c.text) || bad(c.tag) {
		return c, errs.Msg(errs.Invalid, "read name", clip(text), "want name or name:tag of letters, digits, '-', '_' and '.', at most 128 of them")
	}
	if c.name = c.text; !access.ValidLabel(c.name) || len(c.name) > maxNameSlug {
		sum := sha256.Sum256([]byte(strings.ToLower(c.text)))
		slug := strings.Trim(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '-'
		}, strings.ToLower(c.text)), "-")
		c.name = strings.Trim(slug[:min(len(slug), 40)], "-") + "-" + hex.EncodeToString(sum[:4])
		c.name = strings.TrimPrefix(c.name, "-")
	}
	return c, nil
}

// names are those that a client knows a template by.
func names(t *api.Template) []string { return []string{cmp.Or(t.Labels[labelName], t.Name)} }

// buildID is the id of the build that made a version.
func buildID(t *api.Template, version int) string {
	if id := t.Labels[labelBuild+strconv.Itoa(version)]; id != "" {
		return id
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "agentrun:template/%s@%d", t.Name, version)).String()
}

// buildStatus is the state of a version's build, as clients know it.
func buildStatus(t *api.Template) string {
	switch t.State {
	case api.BuildReady:
		return "ready"
	case api.BuildFailed:
		return "error"
	case api.BuildQueued:
		return "waiting"
	}
	return "building"
}

// templateOut describes a template in a list.
type templateOut struct {
	TemplateID    string    `json:"templateID"`
	BuildID       string    `json:"buildID"`
	BuildStatus   string    `json:"buildStatus"`
	BuildCount    int       `json:"buildCount"`
	Public        bool      `json:"public"`
	Aliases       []string  `json:"aliases"`
	Names         []string  `json:"names"`
	CPUCount      int       `json:"cpuCount"`
	MemoryMB      int64     `json:"memoryMB"`
	DiskSizeMB    int64     `json:"diskSizeMB"`
	EnvdVersion   string    `json:"envdVersion"`
	CreatedAt     time.Time `json:"createdAt"`
	UpdatedAt     time.Time `json:"updatedAt"`
	CreatedBy     any       `json:"createdBy"`
	LastSpawnedAt any       `json:"lastSpawnedAt"`
	SpawnCount    int       `json:"spawnCount"`
}

func shownTemplate(t *api.Template) templateOut {
	s := sizeOf(t.Spec.Resources)
	return templateOut{TemplateID: t.Name, BuildID: buildID(t, t.Version), BuildStatus: buildStatus(t), BuildCount: t.Version, Public: true, Aliases: names(t), Names: names(t),
		CPUCount: s.cpus, MemoryMB: s.memory, DiskSizeMB: s.disk, EnvdVersion: EnvdVersion, CreatedAt: t.Created.UTC(), UpdatedAt: latest(t.Built, t.Created).UTC()}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// allTemplates returns the newest version of each template that the caller sees, by name.
func (h *Handler) allTemplates(r *request) ([]api.Template, error) {
	var out []api.Template
	cursor := ""
	for {
		list, err := h.Control.Templates(r.Context(), r.who, control.Page{Limit: api.MaxPage, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		out = append(out, list.Templates...)
		if cursor = list.Next; cursor == "" {
			return out, nil
		}
	}
}

func (h *Handler) templates(w http.ResponseWriter, r *request) error {
	all, err := h.allTemplates(r)
	if err != nil {
		return err
	}
	if strings.HasPrefix(r.route.path, "/v2/") {
		p, err := readPage(r.URL.Query())
		if err != nil {
			return err
		}
		all = cut(w, p, all, func(t *api.Template) string { return t.Name }, false)
	}
	out := make([]templateOut, 0, len(all))
	for i := range all {
		out = append(out, shownTemplate(&all[i]))
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// template finds the newest version of the template that the path names.
func (h *Handler) template(r *request) (*api.Template, called, error) {
	c, err := readName(r.vars["id"])
	if err != nil {
		return nil, c, err
	}
	t, err := h.newest(r, c.name)
	return t, c, err
}

// newest finds the newest version of a template. One of the base templates is made when it is first asked for: whoever never comes
// with E2B's clients has none of them, nor what they hold.
func (h *Handler) newest(r *request, name string) (*api.Template, error) {
	t, err := h.Control.Template(r.Context(), r.who, name, 0)
	spec, base := BaseTemplates()[name]
	if !base || !errs.Is(err, errs.NotFound) {
		return t, err
	}
	_, err = h.Control.CreateTemplate(r.Context(), access.System(r.id), api.CreateTemplate{Name: name, Spec: spec})
	if err != nil && !errs.Is(err, errs.Exists) {
		return nil, err
	}
	return h.Control.Template(r.Context(), r.who, name, 0)
}

// buildOut is a build of a template.
type buildOut struct {
	BuildID     string    `json:"buildID"`
	Status      string    `json:"status"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
	FinishedAt  any       `json:"finishedAt,omitempty"`
	CPUCount    int       `json:"cpuCount"`
	MemoryMB    int64     `json:"memoryMB"`
	DiskSizeMB  int64     `json:"diskSizeMB"`
	EnvdVersion string    `json:"envdVersion"`
}

func (h *Handler) templateInfo(w http.ResponseWriter, r *request) error {
	p, err := readPage(r.URL.Query())
	if err != nil {
		return err
	}
	t, _, err := h.template(r)
	if err != nil {
		return err
	}
	var versions []api.Template
	for cursor := ""; ; {
		list, err := h.Control.TemplateVersions(r.Context(), r.who, t.Name, control.Page{Limit: api.MaxPage, Cursor: cursor})
		if err != nil {
			return err
		}
		versions = append(versions, list.Templates...)
		if cursor = list.Next; cursor == "" {
			break
		}
	}
	slices.Reverse(versions)
	builds := []buildOut{}
	for _, v := range cut(w, p, versions, func(v *api.Template) string { return fmt.Sprintf("%010d", v.Version) }, true) {
		s := sizeOf(v.Spec.Resources)
		b := buildOut{BuildID: buildID(t, v.Version), Status: buildStatus(&v), CreatedAt: v.Created.UTC(), UpdatedAt: latest(v.Built, v.Created).UTC(), CPUCount: s.cpus,
			MemoryMB: s.memory, DiskSizeMB: s.disk, EnvdVersion: EnvdVersion}
		if !v.Built.IsZero() {
			b.FinishedAt = v.Built.UTC()
		}
		builds = append(builds, b)
	}
	writeJSON(w, http.StatusOK, map[string]any{"templateID": t.Name, "aliases": names(t), "names": names(t), "public": true, "builds": builds,
		"createdAt": versions[len(versions)-1].Created.UTC(), "updatedAt": latest(t.Built, t.Created).UTC(), "lastSpawnedAt": nil, "spawnCount": 0})
	return nil
}

// alias tells whether there is a template of a name.
func (h *Handler) alias(w http.ResponseWriter, r *request) error {
	t, _, err := h.template(r)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"templateID": t.Name, "public": true})
	return nil
}

// updateTemplate takes what a template's visibility shall be: all are seen by all.
func (h *Handler) updateTemplate(w http.ResponseWriter, r *request) error {
	var in struct {
		Public *bool `json:"public"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	t, _, err := h.template(r)
	if err != nil {
		return err
	}
	if in.Public != nil && !*in.Public {
		return errs.Msg(errs.Unsupported, "change template", t.Name, "templates of this server are seen by all of its principals")
	}
	writeJSON(w, http.StatusOK, map[string]any{"names": names(t)})
	return nil
}

// deleteTemplate deletes a template, or a snapshot: they are one kind of thing to clients.
func (h *Handler) deleteTemplate(w http.ResponseWriter, r *request) error {
	s, err := h.findSnapshot(r, r.vars["id"])
	if err != nil {
		return err
	}
	if s != nil {
		err = h.Control.DeleteSnapshot(r.Context(), r.who, s.ID)
	} else {
		c, nerr := readName(r.vars["id"])
		if nerr != nil {
			return nerr
		}
		if err = h.Control.DeleteTemplate(r.Context(), r.who, c.name); err == nil {
			h.dropFiles(r, c.name)
		}
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// source finds what a sandbox is made of: a template, one of its versions, or a snapshot.
func (h *Handler) source(r *request, id string, o *options) (template, snapshot string, err error) {
	c, err := readName(id)
	if err != nil {
		return "", "", err
	}
	t, terr := h.newest(r, c.name)
	if terr == nil {
		o.User, o.Dir, o.start = t.Labels[labelUser], t.Labels[labelDir], t.Labels[labelStart] != ""
		o.net = t.Spec.Network
		if c.tag == "" {
			return t.Name, "", nil
		}
		version := t.Labels[labelTag+c.tag]
		if version == "" {
			return "", "", errs.Msg(errs.NotFound, "create sandbox", clip(id), "the template has no such tag")
		}
		return t.Name + "@" + version, "", nil
	}
	if !errs.Is(terr, errs.NotFound) {
		return "", "", terr
	}
	s, err := h.findSnapshot(r, id)
	if err != nil {
		return "", "", err
	}
	if s == nil {
		return "", "", errs.Msg(errs.NotFound, "create sandbox", clip(id), "there is no template or snapshot of this name")
	}
	if t, err := h.Control.Template(r.Context(), r.who, s.Template, s.Version); err == nil {
		o.User, o.Dir, o.net = t.Labels[labelUser], t.Labels[labelDir], t.Spec.Network
	}
	return "", s.ID, nil
}
