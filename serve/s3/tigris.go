package s3

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
	"agentrun.dev/serve/s3/sigv4"
)

// sendJSON answers with a JSON document.
func (c *call) sendJSON(status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.started = true
	c.w.WriteHeader(status)
	_, err = c.w.Write(body)
	return err
}

// readJSON decodes the request's body.
func (c *call) readJSON(v any, limit int64) error {
	data, err := c.readDocument(limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fault.InvalidArgument.Text("The request's JSON document is malformed.")
	}
	return nil
}

// takeSnapshot answers PUT with X-Tigris-Snapshot: true[; name=n].
func (c *call) takeSnapshot() error {
	value := c.r.Header.Get("X-Tigris-Snapshot")
	flag, rest, _ := strings.Cut(value, ";")
	if !strings.EqualFold(strings.TrimSpace(flag), "true") {
		return fault.Argument("X-Tigris-Snapshot", value, "want true, or true; name=NAME")
	}
	name := strings.TrimPrefix(strings.TrimSpace(rest), "name=")
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	s, err := c.store.TakeSnapshot(c.r.Context(), c.name, bucket.SnapshotOptions{Name: name})
	if err != nil {
		return as(err, errs.Exists, fault.Conflict.Text("A snapshot of that name exists already."))
	}
	c.w.Header()["X-Tigris-Snapshot-Version"] = []string{s.Version.String()}
	c.w.Header()["Location"] = []string{"/" + c.name}
	return c.ok()
}

// deleteSnapshot answers DELETE with X-Tigris-Snapshot-Version.
func (c *call) deleteSnapshot() error {
	v, err := c.snapshotAt()
	if err != nil {
		return err
	}
	if v == 0 {
		return fault.NoSuchSnapshot
	}
	if err := c.store.DeleteSnapshot(c.r.Context(), c.name, v); err != nil {
		return as(err, errs.NotFound, fault.NoSuchSnapshot.With("SnapshotVersion", v.String()))
	}
	return c.noContent()
}

// fork answers PUT with X-Tigris-Fork-Source-Bucket.
func (c *call) fork(source string, attrs map[string]string) error {
	if _, err := c.openBucket(source); err != nil {
		return err
	}
	var o bucket.ForkOptions
	if text := c.r.Header.Get("X-Tigris-Fork-Source-Bucket-Snapshot"); text != "" {
		v, err := parseSnapshot(text)
		if err != nil {
			return err
		}
		o.At = v
	}
	if len(attrs) > 0 {
		info, err := c.store.Info(c.r.Context(), source)
		if err != nil {
			return err
		}
		o.Attributes = map[string]string{}
		for k, v := range info.Attributes {
			o.Attributes[k] = v
		}
		for k, v := range attrs {
			o.Attributes[k] = v
		}
	}
	if _, err := c.store.Fork(c.r.Context(), source, c.name, o); err != nil {
		if o.At != 0 && (errs.Is(err, errs.NotFound) || errs.Is(err, errs.Invalid)) {
			return fault.NoSuchSnapshot.With("SnapshotVersion", o.At.String())
		}
		if errs.Is(err, errs.NotFound) {
			return fault.NoSuchBucket.With("BucketName", source)
		}
		return c.createFault(err)
	}
	return c.created()
}

// mergeOptions reads AgentRun's headers beside Tigris': what to do about conflicts, and whether to only look.
func (c *call) mergeOptions() (o bucket.MergeOptions, err error) {
	switch s := strings.ToLower(c.r.Header.Get("X-Tigris-Merge-Conflicts")); s {
	case "", "fail":
	case "ours":
		o.Conflicts = bucket.Ours
	case "theirs":
		o.Conflicts = bucket.Theirs
	default:
		return o, fault.Argument("X-Tigris-Merge-Conflicts", s, "want fail, ours or theirs")
	}
	o.DryRun = strings.EqualFold(c.r.Header.Get("X-Tigris-Merge-Dry-Run"), "true")
	return o, nil
}

// merge answers PUT with X-Tigris-Merge-Source-Bucket: the source's changes come into this bucket.
func (c *call) merge() error {
	o, err := c.mergeOptions()
	if err != nil {
		return err
	}
	source := c.r.Header.Get("X-Tigris-Merge-Source-Bucket")
	if _, err := c.openBucket(source); err != nil {
		return err
	}
	o.Into = c.name
	res, err := c.store.Merge(c.r.Context(), source, o)
	return c.sendMerge(res, err)
}

// rebase answers PUT with X-Tigris-Rebase: the fork gets what its parent has gained.
func (c *call) rebase() error {
	o, err := c.mergeOptions()
	if err != nil {
		return err
	}
	res, err := c.store.Rebase(c.r.Context(), c.name, o)
	return c.sendMerge(res, err)
}

// mergeAnswer is a merge as JSON.
type mergeAnswer struct {
	Status    string          `json:"status"`
	Code      string          `json:"Code,omitempty"`
	Message   string          `json:"Message,omitempty"`
	Source    string          `json:"source"`
	Target    string          `json:"target"`
	Base      string          `json:"base"`
	Version   string          `json:"version,omitempty"`
	Added     int             `json:"added"`
	Modified  int             `json:"modified"`
	Deleted   int             `json:"deleted"`
	Metadata  int             `json:"metadata"`
	Conflicts []mergeConflict `json:"conflicts"`
	More      int             `json:"more_conflicts,omitempty"`
}

type mergeConflict struct {
	Key    string `json:"key"`
	Base   string `json:"base,omitempty"` // ETags; "" where a side doesn't have the key
	Ours   string `json:"ours,omitempty"`
	Theirs string `json:"theirs,omitempty"`
}

func etagOrNone(o *bucket.Object) string {
	if o == nil {
		return ""
	}
	return etagOf(o)
}

// sendMerge answers with what a merge did, or with the conflicts that kept it from doing anything.
func (c *call) sendMerge(res *bucket.MergeResult, err error) error {
	conflict := err != nil && errs.Is(err, errs.Conflict)
	if err != nil && (!conflict || res == nil) {
		return err
	}
	status := http.StatusOK
	a := mergeAnswer{Status: "success", Source: res.Source, Target: res.Target, Base: res.Base.String(), Added: res.Added, Modified: res.Modified,
		Deleted: res.Deleted, Metadata: res.Metadata, More: res.MoreConflicts, Conflicts: []mergeConflict{}}
	for _, x := range res.Conflicts {
		a.Conflicts = append(a.Conflicts, mergeConflict{x.Key, etagOrNone(x.Base), etagOrNone(x.Ours), etagOrNone(x.Theirs)})
	}
	if conflict {
		status = http.StatusConflict
		a.Status, a.Code = "error", "MergeConflict"
		a.Message = "both sides changed " + conflictList(res)
	} else {
		a.Version = res.Version.String()
		c.w.Header()["X-Tigris-Snapshot-Version"] = []string{a.Version}
	}
	if c.wantsJSON() {
		return c.sendJSON(status, a)
	}
	var x xmlDoc
	x.mergeResult(&a, conflict, c.id)
	return c.sendXML(status, &x)
}

func (x *xmlDoc) mergeResult(a *mergeAnswer, conflict bool, id string) {
	tag := "MergeResult"
	if conflict {
		tag = "Error"
	}
	x.open(tag)
	x.opt("Code", a.Code)
	x.opt("Message", a.Message)
	x.text("Source", a.Source)
	x.text("Target", a.Target)
	x.text("Base", a.Base)
	x.opt("Version", a.Version)
	x.int("Added", int64(a.Added))
	x.int("Modified", int64(a.Modified))
	x.int("Deleted", int64(a.Deleted))
	x.int("Metadata", int64(a.Metadata))
	x.open("Conflicts")
	for _, k := range a.Conflicts {
		x.open("Conflict")
		x.text("Key", k.Key)
		x.opt("Base", k.Base)
		x.opt("Ours", k.Ours)
		x.opt("Theirs", k.Theirs)
		x.close("Conflict")
	}
	x.close("Conflicts")
	if a.More > 0 {
		x.int("MoreConflicts", int64(a.More))
	}
	x.text("RequestId", id)
	x.close(tag)
}

// conflictList names the first few conflicts, for a message.
func conflictList(res *bucket.MergeResult) string {
	var keys []string
	for i := range res.Conflicts {
		if i == 5 {
			break
		}
		keys = append(keys, strconv.Quote(res.Conflicts[i].Key))
	}
	text := strings.Join(keys, ", ")
	if more := len(res.Conflicts) - len(keys) + res.MoreConflicts; more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

// forkInfo is Tigris' description of a bucket's place among forks.
type forkInfo struct {
	HasChildren bool         `json:"HasChildren"`
	Parents     []forkParent `json:"Parents"`
}

type forkParent struct {
	BucketName        string    `json:"BucketName"`
	ForkCreatedAt     time.Time `json:"ForkCreatedAt"`
	Snapshot          string    `json:"Snapshot"`
	SnapshotCreatedAt time.Time `json:"SnapshotCreatedAt"`
}

func describeFork(i *bucket.Info) *forkInfo {
	f := &forkInfo{HasChildren: i.HasForks, Parents: []forkParent{}}
	if p := i.Parent; p != nil {
		f.Parents = append(f.Parents, forkParent{p.Name, p.Forked.UTC(), p.Snapshot.String(), p.Snapshot.Time()})
	}
	return f
}

// listBucketsJSON answers the list of buckets, or of a bucket's forks, as Tigris' SDK takes it.
func (c *call) listBucketsJSON() error {
	type entry struct {
		Name         string    `json:"Name"`
		CreationDate time.Time `json:"CreationDate"`
		Type         string    `json:"Type,omitempty"`
		ForkInfo     *forkInfo `json:"ForkInfo,omitempty"`
	}
	var answer struct {
		Owner struct {
			ID          string `json:"ID"`
			DisplayName string `json:"DisplayName"`
		} `json:"Owner"`
		Buckets struct {
			Bucket []entry `json:"Bucket"`
		} `json:"Buckets"`
		ContinuationToken string `json:"ContinuationToken,omitempty"`
		Stats             *struct {
			ActiveBuckets      int    `json:"ActiveBuckets"`
			TotalObjects       uint64 `json:"TotalObjects"`
			TotalStorageBytes  uint64 `json:"TotalStorageBytes"`
			TotalUniqueObjects uint64 `json:"TotalUniqueObjects"`
		} `json:"Stats,omitempty"`
	}
	answer.Owner.ID, answer.Owner.DisplayName = c.owner(), c.owner()
	answer.Buckets.Bucket = []entry{}
	var infos []*bucket.Info
	if base := c.r.Header.Get("X-Tigris-Fork"); base != "" {
		all, err := c.forksOf(base)
		if err != nil {
			return err
		}
		infos = all
	} else {
		page, err := c.pageOfBuckets()
		if err != nil {
			return err
		}
		infos, answer.ContinuationToken = page.buckets, page.next
	}
	stats := c.q.Get("IncludeStats") == "true"
	for _, i := range infos {
		e := entry{Name: i.Name, CreationDate: i.Created.UTC(), ForkInfo: describeFork(i)}
		if i.Snapshots {
			e.Type = "snapshot"
		}
		answer.Buckets.Bucket = append(answer.Buckets.Bucket, e)
	}
	if stats {
		answer.Stats = &struct {
			ActiveBuckets      int    `json:"ActiveBuckets"`
			TotalObjects       uint64 `json:"TotalObjects"`
			TotalStorageBytes  uint64 `json:"TotalStorageBytes"`
			TotalUniqueObjects uint64 `json:"TotalUniqueObjects"`
		}{ActiveBuckets: len(infos)}
		for _, i := range infos {
			answer.Stats.TotalObjects += i.Objects
			answer.Stats.TotalStorageBytes += i.Bytes
			answer.Stats.TotalUniqueObjects += i.Objects
		}
	}
	return c.sendJSON(http.StatusOK, answer)
}

// forksOf lists a bucket's forks that the caller may see.
func (c *call) forksOf(base string) ([]*bucket.Info, error) {
	b, err := c.openBucket(base)
	if err != nil {
		if !c.key.Root {
			return nil, fault.AccessDenied
		}
		return nil, err
	}
	if !c.key.Allows(access.Read, b.ID()) {
		return nil, fault.AccessDenied
	}
	all, err := c.store.ForksOf(c.r.Context(), base)
	if err != nil {
		return nil, as(err, errs.NotFound, fault.NoSuchBucket.With("BucketName", base))
	}
	var seen []*bucket.Info
	for _, i := range all {
		if c.key.Allows(access.Read, i.ID) {
			seen = append(seen, i)
		}
	}
	return seen, nil
}

// tigrisInfo answers GET /b?metadata.
func (c *call) tigrisInfo() error {
	info, err := c.info()
	if err != nil {
		return err
	}
	kind := 0
	if info.Snapshots {
		kind = 1
	}
	answer := map[string]any{"name": info.Name, "id": info.ID.String(), "type": kind, "created_at": info.Created.UTC(), "storage_class": "STANDARD",
		"object_regions": "", "ForkInfo": describeFork(info),
		"estimated_size": info.Bytes, "estimated_rows": info.Objects, "estimated_unique_rows": info.Objects}
	cfg, err := c.cors()
	if err != nil {
		return err
	}
	if cfg != nil {
		rules := []tigrisCORS{}
		for _, r := range cfg.Rules {
			rules = append(rules, tigrisCORS{r.AllowedOrigins, r.AllowedMethods, r.AllowedHeaders, r.ExposeHeaders, r.MaxAge})
		}
		answer["cors"] = map[string]any{"rules": rules}
	}
	return c.sendJSON(http.StatusOK, answer)
}

type tigrisCORS struct {
	Origins []string `json:"allowedOrigin"`
	Methods []string `json:"allowedMethods"`
	Headers []string `json:"allowedHeaders"`
	Expose  []string `json:"exposeHeaders"`
	MaxAge  *int     `json:"maxAge,omitempty"`
}

// patchBucket answers PATCH /b: settings by Tigris' SDK, of which AgentRun has snapshots and CORS.
func (c *call) patchBucket() error {
	var fields map[string]json.RawMessage
	if err := c.readJSON(&fields, maxSettings); err != nil {
		return err
	}
	var kind *int
	var cors *corsConfig
	for name, raw := range fields {
		switch name {
		case "type":
			if err := json.Unmarshal(raw, &kind); err != nil || kind == nil || *kind < 0 || *kind > 1 {
				return fault.Argument("type", string(raw), "want 0 or 1")
			}
		case "cors":
			var err error
			if cors, err = readTigrisCORS(raw); err != nil {
				return err
			}
		default:
			return fault.NotImplemented.Text("AgentRun doesn't have the bucket setting "+strconv.Quote(name)+".").With("Setting", name)
		}
	}
	if len(fields) == 0 {
		return fault.NotImplemented.Text("The request changes no setting that AgentRun has.")
	}
	if kind != nil {
		if err := c.update(func(i *bucket.Info) error { i.Snapshots = *kind == 1; return nil }); err != nil {
			return err
		}
	}
	if cors != nil {
		if err := c.setCORS(cors); err != nil {
			return err
		}
	}
	return c.sendJSON(http.StatusOK, map[string]string{"status": "success"})
}

// readTigrisCORS reads rules; null is none.
func readTigrisCORS(raw json.RawMessage) (*corsConfig, error) {
	var in *struct {
		Rules []tigrisCORS `json:"rules"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fault.InvalidArgument.Text("The CORS rules are malformed.")
	}
	cfg := &corsConfig{}
	if in == nil {
		return cfg, nil
	}
	for _, r := range in.Rules {
		cfg.Rules = append(cfg.Rules, corsRule{AllowedOrigins: r.Origins, AllowedMethods: r.Methods, AllowedHeaders: r.Headers, ExposeHeaders: r.Expose, MaxAge: r.MaxAge})
	}
	if len(cfg.Rules) == 0 {
		return cfg, nil
	}
	return cfg, cfg.check()
}

// presign answers POST /?func=presign: a URL that lets its bearer get or put one object with the rights of a key.
func (c *call) presign() error {
	var req struct {
		Bucket    string `json:"bucket"`
		Key       string `json:"key"`
		KeyID     string `json:"key_id"`
		Type      string `json:"type"`
		ExpiresIn int64  `json:"expires_in"`
		VersionID string `json:"version_id"`
	}
	if err := c.readJSON(&req, maxSettings); err != nil {
		return err
	}
	method := map[string]string{"get": http.MethodGet, "put": http.MethodPut}[strings.ToLower(req.Type)]
	switch {
	case method == "":
		return fault.Argument("type", req.Type, "want get or put")
	case bucket.CheckName(req.Bucket) != nil:
		return fault.InvalidBucketName.With("BucketName", req.Bucket)
	case req.Key == "" || len(req.Key) > bucket.MaxKey:
		return fault.Argument("key", req.Key, "want 1 to 1,024 bytes")
	case req.ExpiresIn < 1 || req.ExpiresIn > int64(sigv4.MaxExpires/time.Second):
		return fault.Argument("expires_in", strconv.FormatInt(req.ExpiresIn, 10), "want 1 to 604,800 seconds")
	}
	key := c.key
	if req.KeyID != "" && req.KeyID != key.ID {
		if !c.key.Root {
			return fault.AccessDenied
		}
		var err error
		if key, err = c.lookup(req.KeyID); err != nil {
			return err
		}
	}
	path := "/" + req.Bucket + "/" + req.Key
	var q sigv4.Query
	if req.VersionID != "" {
		q = append(q, sigv4.Param{Name: "versionId", Value: req.VersionID})
	}
	scheme := "http://"
	if c.r.TLS != nil {
		scheme = "https://"
	}
	raw := sigv4.Presign(method, c.r.Host, path, q, key.ID, key.Secret, c.o.Region, c.o.Now(), time.Duration(req.ExpiresIn)*time.Second)
	return c.sendJSON(http.StatusOK, map[string]string{"url": scheme + c.r.Host + sigv4.EncodePath(path) + "?" + raw})
}

// setCORS stores rules; none of them removes the setting.
func (c *call) setCORS(cfg *corsConfig) error {
	text := ""
	if len(cfg.Rules) > 0 {
		var err error
		if text, err = cfg.document(); err != nil {
			return err
		}
	}
	return c.setAttribute(attrCORS, text)
}
