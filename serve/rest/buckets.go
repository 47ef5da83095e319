package rest

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentrun.dev"
	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
)

func (s *server) describe(w http.ResponseWriter, r *request) error {
	return answer(w, r, http.StatusOK, api.Server{Version: s.Version, S3Endpoint: s.s3Endpoint(r), Region: s.Region, Started: s.started})
}

// s3Endpoint returns where S3 is; an endpoint without a host is on the one that the request was sent to.
func (s *server) s3Endpoint(r *request) string {
	u, err := url.Parse(s.S3Endpoint)
	if err != nil || u.Port() == "" || u.Hostname() != "" {
		return s.S3Endpoint
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	u.Host = net.JoinHostPort(host, u.Port())
	return u.String()
}

func (s *server) storeUsage(w http.ResponseWriter, r *request) error {
	if err := s.buckets(r); err != nil {
		return err
	}
	var u api.StoreUsage
	err := s.store.List(r.Context(), func(i *bucket.Info) error {
		u.Buckets++
		u.Objects += i.Objects
		u.Bytes += i.Bytes
		return nil
	})
	if err == nil && s.Stored != nil {
		u.Payload, u.Index, err = s.Stored(r.Context())
	}
	if err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, u)
}

// listBuckets lists all buckets, or the living forks of one. A scoped key sees its own among them. Without a limit a page is as large as
// pages may be, for clients from before there were pages.
func (s *server) listBuckets(_ http.ResponseWriter, r *request) (any, error) {
	limit := int(r.number("limit"))
	if limit == 0 {
		limit = api.MaxPage
	}
	after, err := r.place()
	if err != nil {
		return nil, err
	}
	out := &api.Buckets{Buckets: []api.Bucket{}}
	add := func(i *bucket.Info) error {
		if !r.key.Allows(access.Read, i.ID) {
			return nil
		}
		if len(out.Buckets) == limit {
			out.Next = cursorAt(out.Buckets[limit-1].Name)
			return io.EOF
		}
		out.Buckets = append(out.Buckets, wireBucket(i))
		return nil
	}
	if !r.q.Has("forksOf") {
		err := s.store.ListPage(r.Context(), bucket.Page{After: after}, add)
		return out, err
	}
	base := r.text("forksOf")
	if _, err := s.allowed(r, access.Read, base); err != nil {
		return nil, err
	}
	forks, err := s.store.ForksOf(r.Context(), base)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(forks, func(a, b *bucket.Info) int { return strings.Compare(a.Name, b.Name) })
	for _, i := range forks {
		if i.Name > after && add(i) != nil {
			break
		}
	}
	return out, nil
}

func (s *server) createBucket(w http.ResponseWriter, r *request) error {
	if err := s.buckets(r); err != nil {
		return err
	}
	var in api.CreateBucket
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if err := bucket.CheckName(in.Name); err != nil {
		return err
	}
	if in.ForkOf == "" {
		if in.At != "" {
			return errs.Msg(errs.Invalid, "create bucket", in.Name, "'at' goes with 'forkOf' only")
		}
		o := bucket.CreateOptions{Snapshots: in.Snapshots}
		if in.Versioning {
			o.Versioning = bucket.Versioned
		}
		info, err := s.store.Create(r.Context(), in.Name, o)
		if err != nil {
			return err
		}
		return created(w, r, info)
	}
	if in.Versioning || in.Snapshots {
		return errs.Msg(errs.Invalid, "fork", in.Name, "a fork has its parent's settings")
	}
	if _, err := s.allowed(r, access.Manage, in.ForkOf); err != nil {
		return err
	}
	var at agentrun.Version
	if in.At != "" {
		var err error
		if _, at, err = s.store.Point(r.Context(), in.ForkOf+"@"+in.At); err != nil {
			return err
		}
	}
	info, err := s.store.Fork(r.Context(), in.ForkOf, in.Name, bucket.ForkOptions{At: at})
	if err != nil {
		return err
	}
	return created(w, r, info)
}

func created(w http.ResponseWriter, r *request, info *bucket.Info) error {
	w.Header().Set("Location", "/v1/buckets/"+info.Name)
	return answer(w, r, http.StatusCreated, wireBucket(info))
}

func (s *server) bucketInfo(w http.ResponseWriter, r *request) error {
	info, err := s.allowed(r, access.Read, r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, wireBucket(info))
}

func (s *server) deleteBucket(w http.ResponseWriter, r *request) error {
	force, name := r.flag("force"), r.PathValue("name")
	if _, err := s.allowed(r, access.Manage, name); err != nil {
		return err
	}
	if err := s.store.Delete(r.Context(), name, bucket.DeleteOptions{Force: force}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) bucketUsage(w http.ResponseWriter, r *request) error {
	name := r.PathValue("name")
	if _, err := s.allowed(r, access.Read, name); err != nil {
		return err
	}
	u, err := s.store.Usage(r.Context(), name)
	if err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, api.Usage{Objects: u.Objects, Bytes: u.Bytes, Unique: u.Unique, Shared: u.Shared, Metadata: u.Metadata})
}

// readObject sends an object's bytes, as they are now or were at a version, snapshot or time. Whatever they are, a browser must not take
// them for a page of this server's.
func (s *server) readObject(w http.ResponseWriter, r *request) error {
	name := r.PathValue("name")
	if _, err := s.allowed(r, access.Read, name); err != nil {
		return err
	}
	var at agentrun.Version
	var err error
	if r.text("at") != "" {
		if _, at, err = s.store.Point(r.Context(), name+"@"+r.text("at")); err != nil {
			return err
		}
	}
	v, err := s.store.View(r.Context(), name, at)
	if err != nil {
		return err
	}
	defer v.Close()
	if !r.key.Allows(access.Read, v.Info().ID) { // the name may have passed to another bucket since
		return errs.Msg(errs.Denied, r.op(), name, "this key may not read this bucket")
	}
	o, err := v.Get(r.Context(), r.text("key"))
	if err != nil {
		return err
	}
	body, err := v.Open(r.Context(), o)
	if err != nil {
		return err
	}
	defer body.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(o.Size, 10))
	h.Set("ETag", `"`+o.ETag+`"`)
	r.begun = true
	w.WriteHeader(http.StatusOK)
	if _, err := io.Copy(&patient{w: w, rc: http.NewResponseController(w), patience: s.patience}, body); err != nil {
		if errs.Is(err, errs.Corrupt) {
			s.Log.Error("object can't be read", "request", r.id, "bucket", name, "error", err)
		}
		panic(http.ErrAbortHandler) // cuts the connection, so that the client sees that bytes are missing
	}
	return nil
}

// patient gives the client a while for each write, not for the whole.
type patient struct {
	w        io.Writer
	rc       *http.ResponseController
	patience time.Duration
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.patience))
	return p.w.Write(b)
}

func (s *server) listSnapshots(w http.ResponseWriter, r *request) error {
	name := r.PathValue("name")
	if _, err := s.allowed(r, access.Read, name); err != nil {
		return err
	}
	list, err := s.store.Snapshots(r.Context(), name)
	if err != nil {
		return err
	}
	out := api.Snapshots{Snapshots: make([]api.Snapshot, len(list))}
	for i, sn := range list {
		out.Snapshots[i] = wireSnapshot(name, sn)
	}
	return answer(w, r, http.StatusOK, out)
}

func (s *server) takeSnapshot(w http.ResponseWriter, r *request) error {
	name := r.PathValue("name")
	if _, err := s.allowed(r, access.Manage, name); err != nil {
		return err
	}
	var in api.TakeSnapshot
	if err := decode(w, r, &in); err != nil {
		return err
	}
	expires, err := s.expiry("snapshot", name, in.Lifetime)
	if err != nil {
		return err
	}
	sn, err := s.store.TakeSnapshot(r.Context(), name, bucket.SnapshotOptions{Name: in.Name, Expires: expires})
	if err != nil {
		return err
	}
	return answer(w, r, http.StatusCreated, wireSnapshot(name, sn))
}

// expiry turns a lifetime in seconds into a moment. 0 is none.
func (s *server) expiry(op, thing string, lifetime int64) (time.Time, error) {
	const century = 100 * 365 * 24 * 60 * 60
	if lifetime < 0 || lifetime > century {
		return time.Time{}, errs.Msg(errs.Invalid, op, thing, "a lifetime is from 0 seconds to a century")
	}
	if lifetime == 0 {
		return time.Time{}, nil
	}
	return s.Now().UTC().Add(time.Duration(lifetime) * time.Second), nil
}

// deleteSnapshot takes the snapshot's version or its name.
func (s *server) deleteSnapshot(w http.ResponseWriter, r *request) error {
	name, ref := r.PathValue("name"), r.PathValue("version")
	if _, err := s.allowed(r, access.Manage, name); err != nil {
		return err
	}
	list, err := s.store.Snapshots(r.Context(), name)
	if err != nil {
		return err
	}
	// Only what is a snapshot may be deleted: a Point would also take any moment of the history.
	for _, sn := range list {
		if sn.Name == ref || sn.Version.String() == ref {
			if err := s.store.DeleteSnapshot(r.Context(), name, sn.Version); err != nil {
				return err
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	return errs.Msg(errs.NotFound, "delete snapshot", name+"@"+clip(ref), "no such snapshot").
		WithHint("list them with 'agentrun snapshots list " + name + "'")
}

// bucketOf returns the name of the bucket in a point such as "name@version".
func bucketOf(point string) string {
	name, _, _ := strings.Cut(point, "@")
	return name
}
