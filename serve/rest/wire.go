package rest

import (
	"agentrun.dev/api"
	"agentrun.dev/bucket"
)

func wireBucket(i *bucket.Info) api.Bucket {
	b := api.Bucket{Name: i.Name, ID: i.ID.String(), Created: i.Created.UTC(), Objects: i.Objects, Bytes: i.Bytes, Version: api.Version(i.Version),
		Versioning: [...]string{bucket.Unversioned: "off", bucket.Versioned: "on", bucket.Suspended: "suspended"}[i.Versioning],
		Snapshots:  i.Snapshots, HasForks: i.HasForks}
	if p := i.Parent; p != nil {
		b.Parent = &api.Origin{Name: p.Name, ID: p.ID.String(), Snapshot: api.Version(p.Snapshot), Forked: p.Forked.UTC()}
	}
	return b
}

func wireSnapshot(name string, s *bucket.Snapshot) api.Snapshot {
	out := api.Snapshot{Bucket: name, Version: api.Version(s.Version), Name: s.Name, Created: s.Created.UTC(), Objects: s.Objects, Bytes: s.Bytes}
	if !s.Expires.IsZero() {
		out.Expires = s.Expires.UTC()
	}
	return out
}

func wireObject(o *bucket.Object) *api.Object {
	if o == nil {
		return nil
	}
	return &api.Object{Size: o.Size, ETag: o.ETag, Modified: o.Modified.UTC(), Version: api.Version(o.Version), ContentType: o.Headers["Content-Type"]}
}

func wireMerge(m *bucket.MergeResult, dryRun bool) *api.MergeResult {
	if m == nil {
		return nil
	}
	out := &api.MergeResult{Source: m.Source, Target: m.Target, Base: api.Version(m.Base), Version: api.Version(m.Version), DryRun: dryRun,
		Added: m.Added, Modified: m.Modified, Deleted: m.Deleted, Metadata: m.Metadata, MoreConflicts: m.MoreConflicts}
	for _, c := range m.Conflicts {
		out.Conflicts = append(out.Conflicts, api.Conflict{Key: c.Key, Base: wireObject(c.Base), Ours: wireObject(c.Ours), Theirs: wireObject(c.Theirs)})
	}
	return out
}

func wireFsck(r *bucket.FsckReport) *api.FsckResult {
	out := &api.FsckResult{Buckets: r.Buckets, Snapshots: r.Snapshots, Views: r.Views, Nodes: r.Nodes, Slots: r.Slots, Objects: r.Objects,
		Bytes: r.Bytes, Repaired: r.Repaired, Defects: make([]api.Defect, 0, len(r.Problems))}
	for _, p := range r.Problems {
		out.Defects = append(out.Defects, api.Defect{Kind: p.Kind, Where: p.Where, What: p.What, Repaired: p.Repaired})
	}
	return out
}
