package rest

import (
	"io"
	"net/http"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// Handlers of principals, secrets and the audit log, all of which the guard decides about.

// me tells who the caller is.
func (s *server) me(_ http.ResponseWriter, r *request) (any, error) {
	if err := s.principal(r); err != nil {
		return nil, err
	}
	p := r.caller.Principal
	return &p, nil
}

// sameName gives a body the name that the path has.
func sameName(r *request, name *string) error {
	if *name != "" && *name != r.name() {
		return errs.Msg(errs.Invalid, r.op(), r.name(), "the body has another name")
	}
	*name = r.name()
	return nil
}

// put answers for what was made or changed.
func put(w http.ResponseWriter, r *request, v any, created bool, err error) error {
	if err != nil {
		return err
	}
	if created {
		w.Header().Set("Location", location(v))
		return answer(w, r, http.StatusCreated, v)
	}
	return answer(w, r, http.StatusOK, v)
}

func (s *server) listPrincipals(_ http.ResponseWriter, r *request) (any, error) {
	after, err := r.place()
	if err != nil {
		return nil, err
	}
	out, err := s.Guard.ListPrincipals(r.Context(), r.caller, after, int(r.number("limit")))
	if err == nil && out.Next != "" {
		out.Next = cursorAt(out.Next)
	}
	return out, err
}

func (s *server) getPrincipal(_ http.ResponseWriter, r *request) (any, error) {
	return s.Guard.GetPrincipal(r.Context(), r.caller, r.name())
}

func (s *server) putPrincipal(w http.ResponseWriter, r *request) error {
	var in api.Principal
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if err := sameName(r, &in.Name); err != nil {
		return err
	}
	p, created, err := s.Guard.PutPrincipal(r.Context(), r.caller, in)
	return put(w, r, p, created, err)
}

func (s *server) deletePrincipal(_ http.ResponseWriter, r *request) (any, error) {
	return nil, s.Guard.DeletePrincipal(r.Context(), r.caller, r.name())
}

func (s *server) listSecrets(_ http.ResponseWriter, r *request) (any, error) {
	after, err := r.place()
	if err != nil {
		return nil, err
	}
	out, err := s.Guard.Secrets(r.Context(), r.caller, after, int(r.number("limit")))
	if err == nil && out.Next != "" {
		out.Next = cursorAt(out.Next)
	}
	return out, err
}

func (s *server) getSecret(_ http.ResponseWriter, r *request) (any, error) {
	return s.Guard.Secret(r.Context(), r.caller, r.name())
}

func (s *server) putSecret(w http.ResponseWriter, r *request) error {
	var in api.Secret
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if err := sameName(r, &in.Name); err != nil {
		return err
	}
	out, created, err := s.Guard.PutSecret(r.Context(), r.caller, in)
	return put(w, r, out, created, err)
}

func (s *server) deleteSecret(_ http.ResponseWriter, r *request) (any, error) {
	return nil, s.Guard.DeleteSecret(r.Context(), r.caller, r.name())
}

// audit answers with a page of the log, or with all of it as lines.
func (s *server) audit(w http.ResponseWriter, r *request) error {
	f := access.AuditFilter{Principal: r.text("principal"), Action: r.text("action"), Thing: r.text("thing"), Request: r.text("request"), Limit: int(r.number("limit"))}
	if r.q.Has("allowed") {
		allowed := r.flag("allowed")
		f.Allowed = &allowed
	}
	after := r.number("after")
	if !accepts(r, api.NDJSON) {
		page, err := s.Guard.Audit(r.Context(), r.caller, after, f)
		if err != nil {
			return err
		}
		return answer(w, r, http.StatusOK, page)
	}
	if f != (access.AuditFilter{}) {
		return errs.Msg(errs.Invalid, "audit", "", "lines are all that comes after a position: nothing selects among them")
	}
	out := &late{w: w, r: r, to: &patient{w: w, rc: http.NewResponseController(w), patience: s.patience}}
	err := s.Guard.ExportAudit(r.Context(), r.caller, after, out)
	switch {
	case err != nil && !r.begun:
		return err
	case err != nil:
		s.problem(r, err, nil) // for the log
		panic(http.ErrAbortHandler)
	}
	_, _ = out.Write(nil)
	return nil
}

// late sends the header of lines with the first of them.
type late struct {
	w  http.ResponseWriter
	r  *request
	to io.Writer
}

func (l *late) Write(b []byte) (int, error) {
	if !l.r.begun {
		l.r.begun = true
		l.w.Header().Set("Content-Type", api.NDJSON)
		l.w.WriteHeader(http.StatusOK)
	}
	return l.to.Write(b)
}

func (s *server) verifyAudit(_ http.ResponseWriter, r *request) (any, error) {
	return s.Guard.VerifyAudit(r.Context(), r.caller)
}

func (s *server) cutAudit(_ http.ResponseWriter, r *request) (any, error) {
	before, err := r.moment("before")
	if err != nil {
		return nil, err
	}
	if before.IsZero() {
		return nil, errs.Msg(errs.Invalid, "cut audit log", "before", "want a time like 2026-11-21T10:00:00Z")
	}
	n, err := s.Guard.CutAudit(r.Context(), r.caller, before)
	if err != nil {
		return nil, err
	}
	return &api.AuditCut{Entries: n}, nil
}
