package interpreter

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

const (
	home        = "/home/user"
	folder      = "/var/lib/agentrun/contexts" // of the sandbox, root's
	maxContexts = 30                           // of one sandbox; a node has a bound on sessions, too
	startTime   = time.Minute
)

// Context is an interpreter, as clients see it.
type Context struct {
	ID       string    `json:"id"`
	Language string    `json:"language"`
	Dir      string    `json:"cwd"`
	Created  time.Time `json:"-"`
}

// record is what a sandbox keeps of a context.
type record struct {
	Context
	Created time.Time `json:"created"`
}

// idForm is what ids of contexts that were made look like.
var idForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// language finds a language by any of its names; without one it is Python.
func language(name string) (string, error) {
	switch l := strings.ToLower(strings.TrimSpace(name)); l {
	case "", "python", "python3", "py":
		return "python", nil
	case "javascript", "js", "node":
		return "javascript", nil
	case "typescript", "ts":
		return "typescript", nil
	case "bash", "sh", "shell":
		return "bash", nil
	case "r", "java", "deno":
		return "", errs.Msg(errs.Unsupported, "run code", l, "this sandbox has no interpreter of this language; there are python, javascript, typescript and bash")
	default:
		return "", errs.Msg(errs.Invalid, "run code", name, "no language of this name; there are python, javascript, typescript and bash")
	}
}

// session is which of the sandbox's sessions a context is: its language there, and its name. The default contexts of Python and
// JavaScript are the sandbox's own, which is warm in many templates.
func (c *Context) session() (language, name string) {
	if c.ID != c.Language {
		name = "e2b-" + c.ID
	}
	switch c.Language {
	case "python":
		return api.Python, name
	case "javascript":
		return api.JavaScript, name
	case "typescript":
		if name == "" {
			name = "e2b-typescript"
		}
		return api.JavaScript, name
	default:
		if name == "" {
			name = "e2b-bash"
		}
		return api.Shell, name
	}
}

// root is the sandbox's files for root.
func root(ctx context.Context, s *control.Session) (node.Files, error) {
	f, err := s.Files(ctx)
	if err != nil {
		return nil, err
	}
	return f.As(node.AsRoot), nil
}

// find finds a context by its id.
func find(ctx context.Context, s *control.Session, id string) (*Context, error) {
	switch id {
	case "python", "javascript", "typescript", "bash":
		return &Context{ID: id, Language: id, Dir: home}, nil
	case "default":
		return &Context{ID: "python", Language: "python", Dir: home}, nil
	}
	none := errs.Msg(errs.NotFound, "find context", id, fmt.Sprintf("Context %s not found", id))
	if !idForm.MatchString(id) {
		return nil, none
	}
	files, err := root(ctx, s)
	if err != nil {
		return nil, err
	}
	return load(ctx, files, path.Join(folder, id+".json"), none)
}

// load reads what is known of a context. A file that isn't one, which root of the sandbox may have made, is none.
func load(ctx context.Context, files node.Files, file string, none error) (*Context, error) {
	r, _, err := files.Open(ctx, file, 0)
	if errs.Is(err, errs.NotFound) {
		return nil, none
	} else if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, 64<<10))
	if err != nil {
		return nil, err
	}
	var k record
	if json.Unmarshal(b, &k) != nil || k.ID+".json" != path.Base(file) || !path.IsAbs(k.Dir) {
		return nil, none
	}
	if l, err := language(k.Language); err != nil || l != k.Language {
		return nil, none
	}
	k.Context.Created = k.Created
	return &k.Context, nil
}

// all returns the contexts of a sandbox: the default ones, then those that were made, in the order of that.
func all(ctx context.Context, s *control.Session) ([]Context, error) {
	list := []Context{{ID: "python", Language: "python", Dir: home}, {ID: "javascript", Language: "javascript", Dir: home}}
	files, err := root(ctx, s)
	if err != nil {
		return nil, err
	}
	entries, _, err := files.List(ctx, folder, 1, 10*maxContexts, "")
	if errs.Is(err, errs.NotFound) {
		return list, nil
	} else if err != nil {
		return nil, err
	}
	var made []Context
	for _, e := range entries {
		id, ok := strings.CutSuffix(path.Base(e.Path), ".json")
		if !ok || !idForm.MatchString(id) {
			continue
		}
		if c, err := load(ctx, files, path.Join(folder, id+".json"), errs.Msg(errs.NotFound, "find context", id, "none")); err == nil {
			made = append(made, *c)
		}
	}
	slices.SortFunc(made, func(a, b Context) int { return a.Created.Compare(b.Created) })
	return append(list, made...), nil
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, s *control.Session) error {
	list, err := all(r.Context(), s)
	if err != nil {
		return err
	}
	return send(w, list)
}

// create makes a context. Its interpreter is started at once: a directory that isn't there is this call's error.
func (h *Handler) create(w http.ResponseWriter, r *http.Request, s *control.Session) error {
	var q struct {
		Language *string `json:"language"`
		Dir      *string `json:"cwd"`
	}
	if err := decode(w, r, &q); err != nil {
		return err
	}
	c := Context{ID: newID(), Dir: home}
	if q.Dir != nil && *q.Dir != "" {
		c.Dir = *q.Dir
	}
	name := ""
	if q.Language != nil {
		name = *q.Language
	}
	var err error
	if c.Language, err = language(name); err != nil {
		return err
	}
	if !path.IsAbs(c.Dir) {
		c.Dir = path.Join(home, c.Dir)
	}
	if len(c.Dir) > 4096 || strings.ContainsRune(c.Dir, 0) {
		return errs.Msg(errs.Invalid, "create context", "", "no directory can have this name")
	}
	ctx := r.Context()
	if list, err := all(ctx, s); err != nil {
		return err
	} else if len(list) >= maxContexts+2 {
		return errs.Msg(errs.Limit, "create context", s.Sandbox.ID, fmt.Sprintf("a sandbox has at most %d contexts; remove one", maxContexts))
	}
	if err := c.start(ctx, s); err != nil {
		c.kill(context.WithoutCancel(ctx), s)
		return err
	}
	files, err := root(ctx, s)
	if err != nil {
		return err
	}
	b, _ := json.Marshal(record{c, time.Now().UTC()}) // of strings and a time
	if _, err := files.Write(ctx, path.Join(folder, c.ID+".json"), 0o600, bytes.NewReader(b)); err != nil {
		return err
	}
	return send(w, c)
}

// start begins a context's interpreter in its directory.
func (c *Context) start(ctx context.Context, s *control.Session) error {
	short, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	language, name := c.session()
	var wrong bytes.Buffer
	res, err := s.Code(short, node.Code{Language: language, Session: name, Dir: c.Dir, Stderr: &bounded{b: &wrong, left: 4096}, Rich: func(node.Rich) {}})
	if err != nil {
		return err
	}
	if res.Status != 0 {
		return errs.Msg(errs.Invalid, "create context", c.Dir, "Failed to set working directory: "+strings.TrimSpace(wrong.String()))
	}
	return nil
}

// kill ends the interpreter of a context, if it runs, whatever it is doing.
func (c *Context) kill(ctx context.Context, s *control.Session) error {
	language, name := c.session()
	_, err := s.Code(ctx, node.Code{Language: language, Session: name, End: true})
	return err
}

func (h *Handler) restart(w http.ResponseWriter, r *http.Request, s *control.Session) error {
	ctx := r.Context()
	c, err := find(ctx, s, r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := c.kill(ctx, s); err != nil {
		return err
	}
	if err := c.start(ctx, s); err != nil {
		return err
	}
	return send(w, nil)
}

// remove ends a context. A default one begins anew when it is used again.
func (h *Handler) remove(w http.ResponseWriter, r *http.Request, s *control.Session) error {
	ctx := r.Context()
	c, err := find(ctx, s, r.PathValue("id"))
	if err != nil {
		return err
	}
	if c.ID != c.Language {
		files, err := root(ctx, s)
		if err != nil {
			return err
		}
		if err := files.Remove(ctx, path.Join(folder, c.ID+".json"), false); err != nil {
			return err
		}
	}
	if err := c.kill(ctx, s); err != nil {
		return err
	}
	return send(w, nil)
}

func send(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // who doesn't read it has gone
	return nil
}

// newID makes a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// bounded keeps the first bytes that it is given.
type bounded struct {
	b    *bytes.Buffer
	left int
}

func (w *bounded) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.b.Write(p[:n])
	w.left -= n
	return len(p), nil
}
