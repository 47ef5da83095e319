package interpreter

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"agentrun.dev/control"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// variable is a name that an environment's variable can have here.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// run is a request to run a text.
type run struct {
	Code     string            `json:"code"`
	Context  *string           `json:"context_id"`
	Language *string           `json:"language"`
	Env      map[string]string `json:"env_vars"`
}

// target finds the context that a request is for.
func (q *run) target(r *http.Request, s *control.Session) (*Context, error) {
	id, name := "", ""
	if q.Context != nil {
		id = *q.Context
	}
	if q.Language != nil {
		name = *q.Language
	}
	if id != "" && name != "" {
		return nil, errs.Msg(errs.Invalid, "run code", "", "Only one of context_id or language can be provided")
	}
	if id != "" {
		return find(r.Context(), s, id)
	}
	l, err := language(name)
	if err != nil {
		return nil, err
	}
	return &Context{ID: l, Language: l, Dir: home}, nil
}

func (h *Handler) execute(w http.ResponseWriter, r *http.Request, s *control.Session) error {
	var q run
	if err := decode(w, r, &q); err != nil {
		return err
	}
	c, err := q.target(r, s)
	if err != nil {
		return err
	}
	var env []string
	for k, v := range q.Env {
		if !variable.MatchString(k) || strings.ContainsRune(v, 0) {
			return errs.Msg(errs.Invalid, "run code", k, "no environment variable can have this name or value")
		}
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	ctx := r.Context()
	out := begin(w)
	defer out.end()
	text := unindent(q.Code)
	if c.Language == "typescript" {
		var wrong *node.CodeError
		if text, wrong = plainScript(text); wrong != nil {
			out.event(message{Type: "number_of_executions", Count: h.count(s.Sandbox.ID, c.ID)})
			out.failed(wrong)
			return nil
		}
	}
	lang, session := c.session()
	if c.Language == "bash" {
		out.event(message{Type: "number_of_executions", Count: h.count(s.Sandbox.ID, c.ID)})
	}
	res, err := s.Code(ctx, node.Code{Text: text, Language: lang, Session: session, Dir: c.Dir, Env: env,
		Stdout: out.stream("stdout"), Stderr: out.stream("stderr"), Rich: out.rich})
	switch {
	case ctx.Err() != nil:
		return nil // nobody reads any more
	case err != nil:
		h.log.Debug("run code", "sandbox", s.Sandbox.ID, "err", err)
		out.failed(&node.CodeError{Name: "UnexpectedEndOfExecution", Value: err.Error()})
	case c.Language == "bash" && res.Status != 0:
		out.failed(&node.CodeError{Value: statusText(res.Status)})
	case c.Language != "bash" && res.Status != 0 && !out.wrong:
		out.failed(&node.CodeError{Name: "UnexpectedEndOfExecution", Value: "the context's interpreter ended, or was restarted, while the text ran"})
	}
	return nil
}

// unindent takes the indentation of a text's first line from all that have it: clients write texts within their own.
func unindent(text string) string {
	first := ""
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			first = line
			break
		}
	}
	indent := first[:len(first)-len(strings.TrimLeft(first, " \t"))]
	if indent == "" {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(line, indent))
	}
	return b.String()
}

// message is a line of an answer.
type message struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	Timestamp string `json:"timestamp,omitempty"`
	Count     int    `json:"execution_count,omitempty"`
}

// forms are the names on the wire of the forms of a result.
var forms = map[string]string{
	"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg",
	"application/pdf": "pdf", "text/latex": "latex", "application/json": "json", "application/javascript": "javascript", "e2b/data": "data", "e2b/chart": "chart",
}

// result makes the line of a result. Text that is a string's literal loses its quotes, as clients expect.
func result(m node.Rich) map[string]any {
	line := map[string]any{"type": "result", "is_main_result": m.Main}
	extra := map[string]json.RawMessage{}
	for media, data := range m.Data {
		name, known := forms[media]
		if !known {
			extra[media] = data
			continue
		}
		line[name] = data
		if name == "text" {
			var s string
			if json.Unmarshal(data, &s) == nil {
				if n := len(s); n >= 2 && (s[0] == '\'' || s[0] == '"') && s[n-1] == s[0] {
					s = s[1 : n-1]
				}
				line[name] = s
			}
		}
	}
	line["extra"] = extra
	return line
}

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }
