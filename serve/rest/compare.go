package rest

import (
	"context"
	"net/http"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
)

// diff streams what changed from one point to another.
func (s *server) diff(w http.ResponseWriter, r *request) error {
	var points [2]api.Point
	for i, name := range []string{"from", "to"} {
		if _, err := s.allowed(r, access.Read, bucketOf(r.text(name))); err != nil {
			return err
		}
		b, at, err := s.store.Point(r.Context(), r.text(name))
		if err != nil {
			return err
		}
		points[i] = api.Point{Bucket: b, Version: api.Version(at)}
	}
	st := newStream[api.Change, api.DiffResult](s, w, r, true)
	res := api.DiffResult{From: points[0], To: points[1]}
	err := s.store.Diff(r.Context(), r.text("from"), r.text("to"), r.text("prefix"), func(c bucket.Change) error {
		switch c.Kind {
		case bucket.Added:
			res.Added++
		case bucket.Modified:
			res.Modified++
		case bucket.Deleted:
			res.Deleted++
		case bucket.Metadata:
			res.Metadata++
		}
		return st.item(&api.Change{Key: c.Key, Kind: c.Kind.String(), Old: wireObject(c.Old), New: wireObject(c.New)})
	})
	return st.end(&res, err, nil)
}

func (s *server) merge(w http.ResponseWriter, r *request) error {
	return s.join(w, r, func(in api.Merge, source *bucket.Info) (string, error) {
		if in.Into != "" {
			return in.Into, nil
		}
		if source.Parent == nil {
			return "", errs.Msg(errs.Invalid, "merge", source.Name, "it isn't a fork").WithHint("say which bucket to merge into")
		}
		parent, err := s.store.ByID(r.Context(), source.Parent.ID)
		if errs.Is(err, errs.NotFound) {
			return "", errs.Msg(errs.NotFound, "merge", source.Name, "its parent "+source.Parent.Name+" was deleted").WithHint("say which bucket to merge into")
		}
		if err != nil {
			return "", err
		}
		return parent.Name, nil
	}, s.store.Merge)
}

func (s *server) rebase(w http.ResponseWriter, r *request) error {
	return s.join(w, r, func(in api.Merge, _ *bucket.Info) (string, error) {
		if in.Into != "" {
			return "", errs.Msg(errs.Invalid, "rebase", in.Into, "a fork is rebased on its parent, and on nothing else")
		}
		return "", nil
	}, s.store.Rebase)
}

// join is what merge and rebase have in common.
func (s *server) join(w http.ResponseWriter, r *request, target func(api.Merge, *bucket.Info) (string, error),
	do func(context.Context, string, bucket.MergeOptions) (*bucket.MergeResult, error)) error {
	name := r.PathValue("name")
	source, err := s.allowed(r, access.Manage, name)
	if err != nil {
		return err
	}
	var in api.Merge
	if err := decode(w, r, &in); err != nil {
		return err
	}
	strategy, ok := map[string]bucket.Strategy{"": bucket.Fail, api.Fail: bucket.Fail, api.Ours: bucket.Ours, api.Theirs: bucket.Theirs}[in.Conflicts]
	if !ok {
		return errs.Msg(errs.Invalid, "merge", name, "conflicts: want fail, ours or theirs")
	}
	into, err := target(in, source)
	if err != nil {
		return err
	}
	if into != "" {
		if _, err := s.allowed(r, access.Manage, into); err != nil {
			return err
		}
	}
	st := newStream[api.None, api.MergeResult](s, w, r, accepts(r, api.NDJSON))
	res, err := do(r.Context(), name, bucket.MergeOptions{Into: into, Conflicts: strategy, DryRun: in.DryRun, Progress: st.progress})
	wire := wireMerge(res, in.DryRun)
	return st.end(wire, err, wire)
}

func (s *server) gc(w http.ResponseWriter, r *request) error {
	if err := s.root(r); err != nil {
		return err
	}
	var in struct{}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	res, err := s.store.GC(r.Context())
	if err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, api.GCResult{Views: res.Views, Nodes: res.Nodes, Slots: res.Slots, Bytes: res.Bytes})
}

func (s *server) fsck(w http.ResponseWriter, r *request) error {
	if err := s.root(r); err != nil {
		return err
	}
	var in api.Fsck
	if err := decode(w, r, &in); err != nil {
		return err
	}
	st := newStream[api.None, api.FsckResult](s, w, r, accepts(r, api.NDJSON))
	report, err := s.store.Fsck(r.Context(), bucket.FsckOptions{Repair: in.Repair, Payload: in.Payload, Progress: st.progress})
	if err != nil {
		return st.end(nil, err, nil)
	}
	return st.end(wireFsck(report), nil, nil)
}
