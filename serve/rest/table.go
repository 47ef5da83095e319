package rest

import (
	"context"
	"net/http"
	"reflect"

	"agentrun.dev/access"
	"agentrun.dev/api"
)

// t is a type of the API.
func t[T any]() reflect.Type { return reflect.TypeFor[T]() }

// tableOf returns all operations.
func (s *server) tableOf() []route {
	var all []route
	for _, part := range [][]route{s.serverRoutes(), s.bucketRoutes(), s.templateRoutes(), s.sandboxRoutes(), s.forkRoutes(), s.insideRoutes(), s.otherRoutes(), s.peopleRoutes()} {
		all = append(all, part...)
	}
	return all
}

func (s *server) serverRoutes() []route {
	paging := []param{{name: "limit", kind: numeric, min: 1, max: api.MaxPage, about: "how many at most; without it 1000"}, cursorParam}
	return []route{
		{"GET /v1/openapi.json", "openapi", "This document", nil, endpoint{status: 200, public: true, out: t[map[string]any](), handler: s.openapi}},
		{"GET /v1/server", "server", "Describe the server", nil, endpoint{status: 200, out: t[api.Server](), handler: s.describe}},
		{"GET /v1/usage", "storeUsage", "What the whole store takes", nil, endpoint{status: 200, out: t[api.StoreUsage](), handler: s.storeUsage}},
		{"POST /v1/gc", "collect", "Collect what nothing refers to", nil, endpoint{status: 200, in: t[struct{}](), out: t[api.GCResult](), handler: s.gc}},
		{"POST /v1/fsck", "check", "Check the store", nil, endpoint{status: 200, in: t[api.Fsck](), out: t[api.FsckResult](), item: t[api.None](), stream: lines, handler: s.fsck}},
		{"GET /v1/keys", "listKeys", "List access keys", append([]param{{name: "principal", about: "only this one's"}}, paging...), plain(nil, t[api.Keys](), 200, s.listKeys)},
		{"POST /v1/keys", "createKey", "Make an access key, whose secret is told this once", nil, secretly(repeatable(plain(t[api.CreateKey](), t[api.Key](), 201, s.createKey)))},
		{"POST /v1/keys/{id}/rotate", "rotateKey", "Give an access key a new secret", nil, ofGuard(plain(t[struct{}](), t[api.Key](), 200, s.rotateKey))},
		{"DELETE /v1/keys/{id}", "revokeKey", "End an access key", nil, endpoint{status: 204, handler: s.revokeKey}},
		{"GET /v1/exec", "exec", "Run a command over buckets, on a WebSocket", nil, endpoint{status: 101, stream: socket, handler: s.exec}},
	}
}

func (s *server) bucketRoutes() []route {
	at := param{name: "at", about: "a version, a snapshot or a time"}
	return []route{
		{"GET /v1/buckets", "listBuckets", "List the buckets that the key may see", []param{
			{name: "forksOf", about: "only the living forks of this bucket"},
			{name: "limit", kind: numeric, min: 1, max: api.MaxPage, about: "how many at most; without it 1000"}, cursorParam,
		}, plain(nil, t[api.Buckets](), 200, s.listBuckets)},
		{"POST /v1/buckets", "createBucket", "Make a bucket, or a fork of one", nil,
			repeatable(endpoint{status: 201, in: t[api.CreateBucket](), out: t[api.Bucket](), handler: s.createBucket})},
		{"GET /v1/buckets/{name}", "bucket", "Describe a bucket", nil, endpoint{status: 200, out: t[api.Bucket](), handler: s.bucketInfo}},
		{"DELETE /v1/buckets/{name}", "deleteBucket", "Delete a bucket", []param{{name: "force", kind: boolean, about: "even if it holds objects"}},
			endpoint{status: 204, handler: s.deleteBucket}},
		{"GET /v1/buckets/{name}/usage", "bucketUsage", "What a bucket takes", nil, endpoint{status: 200, out: t[api.Usage](), handler: s.bucketUsage}},
		{"GET /v1/buckets/{name}/object", "readObject", "Read an object", []param{{name: "key", about: "the object's", required: true}, at},
			endpoint{status: 200, raw: "out", handler: s.readObject}},
		{"GET /v1/buckets/{name}/snapshots", "listSnapshots", "List a bucket's snapshots", nil, endpoint{status: 200, out: t[api.Snapshots](), handler: s.listSnapshots}},
		{"POST /v1/buckets/{name}/snapshots", "takeSnapshot", "Freeze a bucket as it is", nil,
			repeatable(endpoint{status: 201, in: t[api.TakeSnapshot](), out: t[api.Snapshot](), handler: s.takeSnapshot})},
		{"DELETE /v1/buckets/{name}/snapshots/{version}", "deleteSnapshot", "Delete a snapshot, named by its version or name", nil,
			endpoint{status: 204, handler: s.deleteSnapshot}},
		{"POST /v1/buckets/{name}/merge", "merge", "Merge a bucket into another", nil,
			endpoint{status: 200, in: t[api.Merge](), out: t[api.MergeResult](), item: t[api.None](), stream: lines, handler: s.merge}},
		{"POST /v1/buckets/{name}/rebase", "rebase", "Bring into a fork what its parent has gained", nil,
			endpoint{status: 200, in: t[api.Merge](), out: t[api.MergeResult](), item: t[api.None](), stream: lines, handler: s.rebase}},
		{"GET /v1/diff", "diff", "What differs between two points of buckets", []param{
			{name: "from", about: "a bucket, NAME or NAME@SNAPSHOT", required: true}, {name: "to", about: "another", required: true},
			{name: "prefix", about: "only keys that begin with this"},
		}, endpoint{status: 200, out: t[api.DiffResult](), item: t[api.Change](), stream: lines, only: true, handler: s.diff}},
	}
}

func (s *server) templateRoutes() []route {
	c := s.Control
	version := param{name: "version", kind: numeric, min: 1, max: 1 << 31, about: "without it the newest"}
	return []route{
		{"GET /v1/templates", "listTemplates", "List templates by name", paged(), listed(c.Templates)},
		{"POST /v1/templates", "createTemplate", "Make a template, and build it", nil, repeatable(made(c.CreateTemplate))},
		{"GET /v1/templates/{name}", "template", "Describe a template", []param{version}, ofService(plain(nil, t[api.Template](), 200, s.template))},
		{"PUT /v1/templates/{name}", "putTemplate", "Make a template, or a version of it if the spec differs from the newest: 201 then, else 200", nil,
			ofService(endpoint{status: 200, in: t[api.TemplateSpec](), out: t[api.Template](), also: 201, handler: s.putTemplate})},
		{"DELETE /v1/templates/{name}", "deleteTemplate", "Delete a template that no pool uses", nil, removed(c.DeleteTemplate)},
		{"GET /v1/templates/{name}/versions", "listTemplateVersions", "List a template's versions, newest first", paged(), ofService(plain(nil, t[api.Templates](), 200, s.templateVersions))},
		{"POST /v1/templates/{name}/build", "rebuildTemplate", "Build the newest version again", nil, acted(c.Rebuild)},
		{"GET /v1/templates/{name}/log", "buildLog", "The log of a build", []param{version, {name: "follow", kind: boolean, about: "go on until the build has ended"}},
			ofService(endpoint{status: 200, item: t[api.BuildLine](), stream: feeds, resumes: true, handler: s.buildLog})},
		{"GET /v1/pools", "listPools", "List pools by name", paged(), listed(c.Pools)},
		{"GET /v1/pools/{name}", "pool", "Describe a pool", nil, found(c.Pool)},
		{"PUT /v1/pools/{name}", "putPool", "Make a pool or change it", nil, changed(200, c.PutPool)},
		{"DELETE /v1/pools/{name}", "deletePool", "Delete a pool with its warm sandboxes", nil, removed(c.DeletePool)},
		{"POST /v1/reservations", "reserve", "Hold a warm sandbox back for whoever is about to claim", nil, repeatable(made(c.Reserve))},
		{"DELETE /v1/reservations/{id}", "unreserve", "Give a reservation up early", nil, removed(c.Unreserve)},
	}
}

func (s *server) sandboxRoutes() []route {
	c := s.Control
	return []route{
		{"GET /v1/sandboxes", "listSandboxes", "List sandboxes, newest first", paged(
			param{name: "state", about: "only those in this state; any, or without it those that neither wait in a pool nor have ended",
				enum: []string{api.StateStarting, api.StateWarm, api.StateRunning, api.StateHibernating, api.StateHibernated, api.StateResuming, api.StateEnding, api.StateEnded, api.StateFailed, "any"}},
			param{name: "owner", about: "a principal's"}, param{name: "template", about: "made of this"}, param{name: "pool", about: "claimed from this"},
			param{name: "root", about: "of the tree of forks that this one is the first of"}, param{name: "parent", about: "forked from this"},
			param{name: "name", about: "of this name"}, param{name: "conversation", about: "attached to this"},
			param{name: "label", about: "NAME=VALUE, that it has", pattern: "^[^=]+=", many: true},
		), ofService(plain(nil, t[api.Sandboxes](), 200, s.sandboxes))},
		{"POST /v1/sandboxes", "createSandbox", "Make a sandbox, or claim one from a pool", nil, repeatable(made(c.CreateSandbox))},
		{"GET /v1/sandboxes/{id}", "sandbox", "Describe a sandbox by its id or name", nil, found(c.Sandbox)},
		{"PATCH /v1/sandboxes/{id}", "changeSandbox", "Change what is set", nil, changed(200, c.ChangeSandbox)},
		{"DELETE /v1/sandboxes/{id}", "endSandbox", "End a sandbox, and delete what it holds", nil, found(c.EndSandbox)},
		{"POST /v1/sandboxes/{id}/extend", "extendSandbox", "Move the end of its lease", nil, changed(200, c.ExtendSandbox)},
		{"POST /v1/sandboxes/{id}/hibernate", "hibernateSandbox", "Save it to disk and free its memory", nil, changed(200, c.HibernateSandbox)},
		{"POST /v1/sandboxes/{id}/resume", "resumeSandbox", "Wake it up", nil, acted(c.Resume)},
		{"POST /v1/sandboxes/{id}/release", "releaseSandbox", "Give it back to its pool", nil, gone(c.ReleaseSandbox)},
		{"POST /v1/sandboxes/{id}/credentials", "sandboxCredentials", "Make S3 keys for its buckets and nothing else", nil, secretly(repeatable(changed(201, func(ctx context.Context, who *access.Caller, id string, _ struct{}) (*api.Credentials, error) {
			return c.Credentials(ctx, who, id)
		})))},
		{"GET /v1/sandboxes/{id}/usage", "sandboxUsage", "What it used so far", nil, found(c.SandboxUsage)},
		{"GET /v1/sandboxes/{id}/metrics", "sandboxMetrics", "What it used over time", []param{
			{name: "from", about: "only samples from then on, RFC 3339"}, {name: "to", about: "only samples until then, RFC 3339"},
		}, ofService(plain(nil, t[api.SandboxMetrics](), 200, s.sandboxMetrics))},
		{"GET /v1/claims", "listClaims", "List claims by name", paged(), listed(c.Claims)},
		{"GET /v1/claims/{name}", "claim", "Describe a claim", nil, found(c.Claim)},
		{"PUT /v1/claims/{name}", "putClaim", "Claim a sandbox under a name, unless that was done", nil, changed(200, c.PutClaim)},
		{"DELETE /v1/claims/{name}", "deleteClaim", "End the sandbox of a claim, and forget it", nil, removed(c.DeleteClaim)},
	}
}

func (s *server) forkRoutes() []route {
	c := s.Control
	return []route{
		{"POST /v1/sandboxes/{id}/fork", "forkSandbox", "Make copies of a running sandbox, all of one instant", nil, repeatable(changed(201, c.ForkSandbox))},
		{"GET /v1/sandboxes/{id}/tree", "sandboxTree", "A sandbox with all that were forked from it", []param{{name: "root", kind: boolean, about: "from the first of its tree"}},
			ofService(plain(nil, t[api.Tree](), 200, s.tree))},
		{"GET /v1/sandboxes/{id}/diff", "sandboxDiff", "What differs between its files and another's", []param{
			{name: "to", about: "the other; without it, what changed since it was forked or claimed"}, {name: "path", about: "only at or beneath this", pattern: "^/", many: true},
		}, ofService(endpoint{status: 200, out: t[api.FileDiff](), item: t[api.FileChange](), stream: lines, only: true, handler: s.sandboxDiff})},
		{"POST /v1/sandboxes/{id}/merge", "mergeSandbox", "Merge its files into another's", nil,
			ofService(endpoint{status: 200, in: t[api.MergeSandbox](), out: t[api.FileMerge](), handler: s.mergeSandbox})},
		{"POST /v1/sandboxes/{id}/promote", "promoteSandbox", "Put a fork in its parent's place", nil, acted(c.Promote)},
		{"GET /v1/forks", "listForks", "List forks by name", paged(), listed(c.Forks)},
		{"GET /v1/forks/{name}", "fork", "Describe a fork", nil, found(c.Fork)},
		{"PUT /v1/forks/{name}", "putFork", "Make a fork under a name, unless it exists", nil, changed(200, c.PutFork)},
		{"DELETE /v1/forks/{name}", "deleteFork", "End the sandboxes of a fork, and forget it", nil, removed(c.DeleteFork)},
		{"POST /v1/sandboxes/{id}/snapshots", "snapshotSandbox", "Keep its files, or all of it, as they are", nil, repeatable(changed(201, c.TakeSnapshot))},
		{"GET /v1/sandboxes/{id}/snapshots", "listSnapshotsOfSandbox", "List its snapshots", paged(), ofService(plain(nil, t[api.SandboxSnapshots](), 200, s.sandboxSnapshots))},
		{"GET /v1/volumes", "listVolumes", "List volumes, oldest first", paged(), listed(c.Volumes)},
		{"POST /v1/volumes", "createVolume", "Make a volume that outlives sandboxes", nil, repeatable(made(c.CreateVolume))},
		{"GET /v1/volumes/{id}", "volume", "Describe a volume by its id or name", nil, found(c.Volume)},
		{"DELETE /v1/volumes/{id}", "deleteVolume", "Delete a volume with what it holds", nil, removed(c.DeleteVolume)},
		{"GET /v1/snapshots", "listSandboxSnapshots", "List snapshots of sandboxes", paged(param{name: "sandbox", about: "of this one"}),
			ofService(plain(nil, t[api.SandboxSnapshots](), 200, s.snapshots))},
		{"GET /v1/snapshots/{id}", "sandboxSnapshot", "Describe a snapshot of a sandbox", nil, found(c.Snapshot)},
		{"DELETE /v1/snapshots/{id}", "deleteSandboxSnapshot", "Delete a snapshot of a sandbox", nil, removed(c.DeleteSnapshot)},
	}
}

func (s *server) insideRoutes() []route {
	at := param{name: "path", about: "of the file; a relative one begins at the start directory", required: true}
	return []route{
		{"POST /v1/sandboxes/{id}/exec", "run", "Run a text or a command in a sandbox, to its end or as a stream", nil,
			ofService(endpoint{status: 200, in: t[api.Run](), out: t[api.RunResult](), item: t[api.RunEvent](), stream: feeds, handler: s.runIn})},
		{"GET /v1/sandboxes/{id}/exec", "execIn", "Run a text or a command in a sandbox, on a WebSocket", nil,
			ofService(endpoint{status: 101, stream: socket, handler: s.execIn})},
		{"GET /v1/sandboxes/{id}/processes", "listProcesses", "List the commands that run in it", nil, ofService(plain(nil, t[api.Processes](), 200, s.processes))},
		{"DELETE /v1/sandboxes/{id}/processes/{pid}", "signalProcess", "Send a signal to one of them",
			[]param{{name: "signal", about: "without it TERM", enum: []string{"HUP", "INT", "QUIT", "KILL", "TERM", "USR1", "USR2"}}}, ofService(plain(nil, nil, 204, s.signal))},
		{"GET /v1/sandboxes/{id}/files", "readFile", "Read a file, or with Range a part of it", []param{at},
			ofService(endpoint{status: 200, also: 206, raw: "out", statuses: []int{416}, handler: s.readFile})},
		{"PUT /v1/sandboxes/{id}/files", "writeFile", "Put a file into its place, once all of it has come", []param{at, {name: "mode", about: "permission bits in octal, such as 0644", pattern: "^0?[0-7]{1,4}$"}},
			rawIn(ofService(plain(nil, t[api.FileInfo](), 200, s.writeFile)))},
		{"DELETE /v1/sandboxes/{id}/files", "removeFile", "Delete a file", []param{at, {name: "recursive", kind: boolean, about: "a directory with all that is in it"}},
			ofService(plain(nil, nil, 204, s.removeFile))},
		{"GET /v1/sandboxes/{id}/files/stat", "statFile", "Describe a file", []param{at}, ofService(plain(nil, t[api.FileInfo](), 200, s.statFile))},
		{"GET /v1/sandboxes/{id}/files/list", "listFiles", "List a directory", paged(param{name: "path", about: "without it the start directory"},
			param{name: "depth", kind: numeric, min: 1, max: 100, about: "how many levels; without it 1"}), ofService(plain(nil, t[api.Files](), 200, s.listFiles))},
		{"POST /v1/sandboxes/{id}/files/mkdir", "makeDirectory", "Make a directory, with those above it", nil, ofService(plain(t[api.FileAction](), t[api.FileInfo](), 200, s.makeDirectory))},
		{"POST /v1/sandboxes/{id}/files/move", "moveFile", "Move a file", nil, ofService(plain(t[api.FileAction](), t[api.FileInfo](), 200, s.moveFile))},
		{"GET /v1/sandboxes/{id}/files/watch", "watchFiles", "Tell of changes of files, until the client goes", []param{at, {name: "recursive", kind: boolean, about: "beneath directories, too"}},
			ofService(endpoint{status: 200, item: t[api.FileEvent](), stream: feeds, handler: s.watchFiles})},
		s.portRoute(),
	}
}

func (s *server) otherRoutes() []route {
	c := s.Control
	return []route{
		{"GET /v1/events", "events", "What happened, as a page or as a stream that goes on", []param{
			{name: "after", kind: numeric, about: "the position after which it begins; Last-Event-ID goes before"},
			{name: "sandbox", about: "only of this one"}, {name: "kind", about: "only of this kind"}, limitParam,
			{name: "follow", kind: boolean, about: "lines of JSON go on, as server-sent events always do"},
		}, ofService(endpoint{status: 200, out: t[api.Events](), item: t[api.Event](), stream: feeds, resumes: true, handler: s.events})},
		{"GET /v1/nodes", "listNodes", "List nodes", paged(), listed(c.Nodes)},
		{"GET /v1/nodes/{name}", "node", "Describe a node", nil, found(c.Node)},
		{"POST /v1/nodes/{name}/drain", "drainNode", "Give a node no new sandboxes", nil, s.drain(true)},
		{"POST /v1/nodes/{name}/undrain", "undrainNode", "Give it new sandboxes again", nil, s.drain(false)},
		{"GET /v1/agents", "listAgents", "List agents", paged(), listed(c.Agents)},
		{"GET /v1/agents/{name}", "agent", "Describe an agent", nil, found(c.Agent)},
		{"PUT /v1/agents/{name}", "putAgent", "Make an agent or change it", nil, changed(200, s.putAgent)},
		{"DELETE /v1/agents/{name}", "deleteAgent", "Forget an agent", nil, removed(c.DeleteAgent)},
		{"GET /v1/conversations/{id}", "conversation", "What is attached to a conversation", nil, found(c.Conversation)},
		{"POST /v1/conversations/{id}/attach", "attach", "Attach a sandbox to a conversation", nil, repeatable(changed(200, c.Attach))},
		{"POST /v1/conversations/{id}/detach", "detach", "Detach it", nil, acted(c.Detach)},
		{"DELETE /v1/conversations/{id}", "endConversation", "End a conversation", nil, removed(c.EndConversation)},
		{"GET /v1/mounts", "mounts", "What stands behind the mounts that templates may name", nil, ofService(plain(nil, t[api.Mounts](), 200, func(_ http.ResponseWriter, r *request) (any, error) {
			return c.Mounts(r.Context(), r.caller)
		}))},
		{"PUT /v1/mounts", "putMounts", "Say what stands behind them", nil, changed(200, func(ctx context.Context, who *access.Caller, _ string, m api.Mounts) (*api.Mounts, error) {
			return c.PutMounts(ctx, who, m)
		})},
		{"GET /v1/principals/{name}/usage", "principalUsage", "What a principal's sandboxes used so far", nil, found(c.PrincipalUsage)},
	}
}

func (s *server) peopleRoutes() []route {
	return []route{
		{"GET /v1/me", "me", "Who the caller is", nil, plain(nil, t[api.Principal](), 200, s.me)},
		{"GET /v1/principals", "listPrincipals", "List principals by name", paged(), ofGuard(plain(nil, t[api.Principals](), 200, s.listPrincipals))},
		{"GET /v1/principals/{name}", "principal", "Describe a principal", nil, ofGuard(plain(nil, t[api.Principal](), 200, s.getPrincipal))},
		{"PUT /v1/principals/{name}", "putPrincipal", "Make a principal: 201; or change it: 200", nil,
			ofGuard(endpoint{status: 200, also: 201, in: t[api.Principal](), out: t[api.Principal](), handler: s.putPrincipal})},
		{"DELETE /v1/principals/{name}", "deletePrincipal", "Delete a principal and its keys", nil, ofGuard(plain(nil, nil, 204, s.deletePrincipal))},
		{"GET /v1/secrets", "listSecrets", "List secrets by name, without their values", paged(), ofGuard(plain(nil, t[api.Secrets](), 200, s.listSecrets))},
		{"GET /v1/secrets/{name}", "secret", "Describe a secret, without its values", nil, ofGuard(plain(nil, t[api.Secret](), 200, s.getSecret))},
		{"PUT /v1/secrets/{name}", "putSecret", "Make a secret: 201; or replace all its values: 200", nil,
			ofGuard(endpoint{status: 200, also: 201, in: t[api.Secret](), out: t[api.Secret](), handler: s.putSecret})},
		{"DELETE /v1/secrets/{name}", "deleteSecret", "Delete a secret", nil, ofGuard(plain(nil, nil, 204, s.deleteSecret))},
		{"GET /v1/audit", "audit", "Decisions, oldest first; as lines of JSON, all of them", []param{
			{name: "after", kind: numeric, about: "the position after which it begins"}, limitParam,
			{name: "principal", about: "only this one's"}, {name: "action", about: "only this verb, or those that begin with what stands before a *"},
			{name: "thing", about: "only about this, KIND/ID, or those that begin with what stands before a *"}, {name: "request", about: "only of this request"},
			{name: "allowed", kind: boolean, about: "only what was allowed, or refused"},
		}, ofGuard(endpoint{status: 200, out: t[api.Audit](), item: t[api.AuditEntry](), stream: feeds, noEvents: true, handler: s.audit})},
		{"DELETE /v1/audit", "cutAudit", "Cut off the beginning of the audit log", []param{{name: "before", about: "entries that are older than this, RFC 3339", required: true}},
			ofGuard(plain(nil, t[api.AuditCut](), 200, s.cutAudit))},
		{"GET /v1/audit/verify", "verifyAudit", "Check the chain of the audit log", nil, ofGuard(plain(nil, t[api.AuditCheck](), 200, s.verifyAudit))},
	}
}
