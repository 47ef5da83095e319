package rest

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// route is one operation of the API. The table of routes is all that the server goes by, and all that /v1/openapi.json is
// made of.
type route struct {
	pattern string // as http.ServeMux has it, such as "GET /v1/sandboxes/{id}"
	id      string // names the operation in the documentation and in clients that are generated from it
	about   string // one line
	query   []param
	endpoint
}

// endpoint is what serves a route.
type endpoint struct {
	in       reflect.Type // of the body, JSON; nil: none
	out      reflect.Type // of the answer; nil: none
	status   int          // of success
	also     int          // another
	item     reflect.Type // of a stream
	stream   streamKind
	raw      string // says that bytes are sent ("in"), answered ("out"), or whatever a server in a sandbox has ("any")
	service  bool   // is the sandbox service's
	guarded  bool   // is the guard's
	public   bool   // anybody may ask
	once     bool   // makes something: takes an Idempotency-Key
	secret   bool   // the answer holds a secret
	only     bool   // it is always a stream
	noEvents bool   // a stream has no form of server-sent events
	resumes  bool   // Last-Event-ID goes on with the stream
	statuses []int  // of failures that not every operation has
	handler  handler
}

// streamKind says how a stream of items is written.
type streamKind int

const (
	noStream streamKind = iota
	lines               // NDJSON of api.Line
	feeds               // SSE or NDJSON of items
	socket              // WebSocket
)

func (rt *route) method() string { m, _, _ := strings.Cut(rt.pattern, " "); return m }

func (rt *route) path() string { _, p, _ := strings.Cut(rt.pattern, " "); return p }

// param is a query parameter. Those that a route doesn't name are refused.
type param struct {
	name     string
	kind     paramKind
	about    string
	min, max uint64   // of number
	enum     []string // of text; empty: any
	pattern  string   // of text, for the documentation: the handler checks it
	required bool
	many     bool
}

type paramKind int

const (
	textual paramKind = iota
	numeric
	boolean
)

// Parameters that several routes have.
var (
	limitParam  = param{name: "limit", kind: numeric, min: 1, max: api.MaxPage, about: "how many at most; without it 100"}
	cursorParam = param{name: "cursor", about: "where the page begins: next of the page before"}
)

// paged are the parameters of a list.
func paged(more ...param) []param { return append(more, limitParam, cursorParam) }

// parse checks the query of a request against the route's parameters.
func (rt *route) parse(r *request) error {
	bad := func(thing, text string) error { return errs.Msg(errs.Invalid, "read request", thing, text) }
	if !utf8.ValidString(r.URL.Path) || strings.IndexByte(r.URL.Path, 0) >= 0 {
		return bad("path", "want UTF-8 without NUL bytes")
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return bad("query", clip(err.Error()))
	}
	for name, vs := range values {
		i := slices.IndexFunc(rt.query, func(p param) bool { return p.name == name })
		if i < 0 {
			return bad(clip(strings.ToValidUTF8(name, "\ufffd")), "no such parameter here")
		}
		p := &rt.query[i]
		if len(vs) != 1 && !p.many {
			return bad(name, "given more than once")
		}
		for _, v := range vs {
			if err := p.check(v); err != "" {
				return bad(name, err)
			}
		}
	}
	for _, p := range rt.query {
		if p.required && values.Get(p.name) == "" {
			return bad(p.name, "missing: "+p.about)
		}
	}
	r.q = values
	return nil
}

// check says what is wrong with a value.
func (p *param) check(v string) string {
	switch {
	case !utf8.ValidString(v) || strings.IndexByte(v, 0) >= 0:
		return "want UTF-8 without NUL bytes"
	case p.kind == boolean && v != "true" && v != "false":
		return "want true or false"
	case p.kind == numeric:
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil || n < p.min || p.max > 0 && n > p.max {
			if p.max > 0 {
				return fmt.Sprintf("want a number from %d to %d", p.min, p.max)
			}
			return fmt.Sprintf("want a number from %d", p.min)
		}
	case len(p.enum) > 0 && !slices.Contains(p.enum, v):
		return "want " + strings.Join(p.enum, ", ")
	}
	return ""
}

// The query's values, as parse checked them. What is absent is zero.

func (r *request) text(name string) string { return r.q.Get(name) }

func (r *request) flag(name string) bool { return r.q.Get(name) == "true" }

func (r *request) number(name string) uint64 {
	n, _ := strconv.ParseUint(r.q.Get(name), 10, 64)
	return n
}

func (r *request) page() control.Page {
	return control.Page{Limit: int(r.number("limit")), Cursor: r.text("cursor")}
}

// cursorAt makes the cursor of what follows a place in a list of this package's, and place reads it.
func cursorAt(place string) string {
	return base64.RawURLEncoding.EncodeToString([]byte("1" + place))
}

func (r *request) place() (string, error) {
	c := r.text("cursor")
	if c == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(c)
	if err != nil || len(b) < 2 || b[0] != '1' || !utf8.Valid(b) {
		return "", errs.Msg(errs.Invalid, "read request", "cursor", "not one of this list's")
	}
	return string(b[1:]), nil
}

// Makers of endpoints. do is called when the caller is known and the query was checked.

// plain answers with what do returns; nil is no content.
func plain(in, out reflect.Type, status int, do func(w http.ResponseWriter, r *request) (any, error)) endpoint {
	return endpoint{in: in, out: out, status: status, handler: func(w http.ResponseWriter, r *request) error {
		v, err := do(w, r)
		if err != nil {
			return err
		}
		if out == nil {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		if status == http.StatusCreated {
			if at := location(v); at != "" {
				w.Header().Set("Location", at)
			}
		}
		return answer(w, r, status, v)
	}}
}

// found looks something up that the path names.
func found[O any](f func(context.Context, *access.Caller, string) (*O, error)) endpoint {
	return ofService(plain(nil, reflect.TypeFor[O](), http.StatusOK, func(_ http.ResponseWriter, r *request) (any, error) {
		return f(r.Context(), r.caller, r.name())
	}))
}

// listed returns a page of a list.
func listed[O any](f func(context.Context, *access.Caller, control.Page) (*O, error)) endpoint {
	return ofService(plain(nil, reflect.TypeFor[O](), http.StatusOK, func(_ http.ResponseWriter, r *request) (any, error) {
		return f(r.Context(), r.caller, r.page())
	}))
}

// removed takes something away that the path names.
func removed(f func(context.Context, *access.Caller, string) error) endpoint {
	return ofService(plain(nil, nil, http.StatusNoContent, func(_ http.ResponseWriter, r *request) (any, error) {
		return nil, f(r.Context(), r.caller, r.name())
	}))
}

// acted does something with what the path names, that needs no body; one that is empty is fine.
func acted[O any](f func(context.Context, *access.Caller, string) (*O, error)) endpoint {
	return changed(http.StatusOK, func(ctx context.Context, who *access.Caller, name string, _ struct{}) (*O, error) {
		return f(ctx, who, name)
	})
}

// changed does what a body says with what the path names.
func changed[I, O any](status int, f func(context.Context, *access.Caller, string, I) (*O, error)) endpoint {
	return ofService(plain(reflect.TypeFor[I](), reflect.TypeFor[O](), status, func(w http.ResponseWriter, r *request) (any, error) {
		var in I
		if err := decode(w, r, &in); err != nil {
			return nil, err
		}
		return f(r.Context(), r.caller, r.name(), in)
	}))
}

// made makes what a body says.
func made[I, O any](f func(context.Context, *access.Caller, I) (*O, error)) endpoint {
	return changed(http.StatusCreated, func(ctx context.Context, who *access.Caller, _ string, in I) (*O, error) { return f(ctx, who, in) })
}

// gone does something after which there is nothing to tell. A body is empty.
func gone(f func(context.Context, *access.Caller, string) error) endpoint {
	return ofService(plain(reflect.TypeFor[struct{}](), nil, http.StatusNoContent, func(w http.ResponseWriter, r *request) (any, error) {
		var none struct{}
		if err := decode(w, r, &none); err != nil {
			return nil, err
		}
		return nil, f(r.Context(), r.caller, r.name())
	}))
}

// rawIn takes bytes.
func rawIn(e endpoint) endpoint { e.raw = "in"; return e }

func ofService(e endpoint) endpoint { e.service = true; return e }

func ofGuard(e endpoint) endpoint { e.guarded = true; return e }

// repeatable takes an Idempotency-Key.
func repeatable(e endpoint) endpoint { e.once = true; return e }

// secretly has an answer with a secret in it.
func secretly(e endpoint) endpoint { e.secret = true; return e }

// name is what the path names.
func (r *request) name() string {
	if n := r.PathValue("name"); n != "" {
		return n
	}
	return r.PathValue("id")
}

// location says where something that was made is.
func location(v any) string {
	at := func(kind, name string) string { return "/v1/" + kind + "/" + url.PathEscape(name) }
	switch v := v.(type) {
	case *api.Template:
		return at("templates", v.Name)
	case *api.Sandbox:
		return at("sandboxes", v.ID)
	case *api.Fork:
		return at("forks", v.Name)
	case *api.StoredVolume:
		return at("volumes", v.ID)
	case *api.SandboxSnapshot:
		return at("snapshots", v.ID)
	case *api.Principal:
		return at("principals", v.Name)
	case *api.Secret:
		return at("secrets", v.Name)
	case *api.Bucket:
		return at("buckets", v.Name)
	}
	return ""
}
