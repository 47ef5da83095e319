package s3

import (
	"archive/tar"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentrun.dev/access"
)

type headers = map[string]string

// snapshot takes one and returns its version.
func (s *server) snapshot(name, label string) string {
	s.t.Helper()
	value := "true"
	if label != "" {
		value += "; name=" + label
	}
	v := s.must(200, req{method: "PUT", path: "/" + name + "/", header: headers{"X-Tigris-Snapshot": value}}).header.Get("X-Tigris-Snapshot-Version")
	if v == "" {
		s.t.Fatal("no snapshot version")
	}
	return v
}

func (s *server) fork(base, name string) {
	s.t.Helper()
	s.must(200, req{method: "PUT", path: "/" + name + "/", header: headers{"X-Tigris-Fork-Source-Bucket": base}})
}

func TestSnapshots(t *testing.T) {
	s := start(t)
	s.must(200, req{method: "PUT", path: "/base/", header: headers{"X-Tigris-Enable-Snapshot": "true"}})
	s.put("/base/a", "old")
	v := s.snapshot("base", "first%20one")
	s.put("/base/a", "new")
	s.put("/base/b", "b")
	at := headers{"X-Tigris-Snapshot-Version": v}
	if a := s.must(200, req{path: "/base/a", header: at}); a.body != "old" {
		t.Errorf("at the snapshot: %q", a.body)
	}
	s.fails(404, "NoSuchKey", req{path: "/base/b", header: at})
	if a := s.must(200, req{path: "/base?list-type=2", header: at}); strings.Contains(a.body, "<Key>b</Key>") || !strings.Contains(a.body, "<Key>a</Key>") {
		t.Error(a.body)
	}
	s.must(200, req{method: "PUT", path: "/base/c", header: headers{"X-Tigris-Snapshot-Version": v, "X-Amz-Copy-Source": "base/a"}})
	if a := s.must(200, req{path: "/base/c"}); a.body != "old" {
		t.Errorf("copied from the snapshot: %q", a.body)
	}
	a := s.must(200, req{path: "/?x-id=ListBuckets", header: headers{"X-Tigris-Snapshot": "base"}})
	if !strings.Contains(a.body, "<Name>"+v+"; name=first one</Name>") {
		t.Error(a.body)
	}
	a = s.must(200, req{method: "HEAD", path: "/base"})
	if a.header.Get("X-Tigris-Enable-Snapshot") != "true" || a.header.Get("X-Tigris-Is-Fork-Parent") != "false" {
		t.Error(a.header)
	}
	s.must(204, req{method: "DELETE", path: "/base/", header: at})
	s.fails(404, "NoSuchSnapshot", req{method: "DELETE", path: "/base/", header: at})
	s.fails(400, "InvalidArgument", req{method: "PUT", path: "/base/", header: headers{"X-Tigris-Snapshot": "false"}})
}

func TestForksAndMerges(t *testing.T) {
	s := start(t)
	s.mkBucket("base")
	s.put("/base/a", "1")
	s.put("/base/b", "1")
	v := s.snapshot("base", "")
	s.put("/base/a", "2")
	s.fork("base", "fork")
	s.must(200, req{method: "PUT", path: "/past", header: headers{"X-Tigris-Fork-Source-Bucket": "base", "X-Tigris-Fork-Source-Bucket-Snapshot": v}})
	if a := s.must(200, req{path: "/past/a"}); a.body != "1" {
		t.Errorf("fork of the snapshot: %q", a.body)
	}
	a := s.must(200, req{method: "HEAD", path: "/past"})
	if a.header.Get("X-Tigris-Fork-Source-Bucket") != "base" || a.header.Get("X-Tigris-Fork-Source-Bucket-Snapshot") != v {
		t.Error(a.header)
	}

	var list struct {
		Buckets struct {
			Bucket []struct {
				Name     string
				ForkInfo struct {
					HasChildren bool
					Parents     []struct{ BucketName, Snapshot string }
				}
			}
		}
	}
	a = s.must(200, req{path: "/", header: headers{"Accept": "application/json", "X-Tigris-Fork": "base"}})
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || len(list.Buckets.Bucket) != 2 || list.Buckets.Bucket[0].ForkInfo.Parents[0].BucketName != "base" {
		t.Fatal(a.body, err)
	}
	var info struct {
		Type     int `json:"type"`
		Size     int `json:"estimated_size"`
		ForkInfo struct{ HasChildren bool }
	}
	a = s.must(200, req{path: "/base?metadata&with-size=true", header: headers{"Accept": "application/json"}})
	if err := json.Unmarshal([]byte(a.body), &info); err != nil || info.Size != 2 || !info.ForkInfo.HasChildren || info.Type != 0 {
		t.Fatal(a.body, err)
	}
	s.must(200, req{method: "PATCH", path: "/base", body: `{"type":1}`, header: headers{"Content-Type": "application/json"}})
	a = s.must(501, req{method: "PATCH", path: "/base", body: `{"soft_delete":{}}`, header: headers{"Content-Type": "application/json"}})
	if !strings.Contains(a.body, `"Message"`) {
		t.Error(a.body)
	}

	s.put("/fork/b", "forked")
	s.put("/fork/c", "forked")
	a = s.must(200, req{method: "PUT", path: "/base", header: headers{"X-Tigris-Merge-Source-Bucket": "fork"}})
	if a.header.Get("X-Tigris-Snapshot-Version") == "" || s.must(200, req{path: "/base/b"}).body != "forked" || s.must(200, req{path: "/base/c"}).body != "forked" {
		t.Error(a)
	}
	s.put("/base/b", "base's")
	s.put("/fork/b", "fork's")
	merge := req{method: "PUT", path: "/base", header: headers{"X-Tigris-Merge-Source-Bucket": "fork"}}
	a = s.fails(409, "MergeConflict", merge)
	var doc struct {
		Conflicts struct {
			Conflict []struct{ Key, Ours, Theirs string }
		}
	}
	if err := xml.Unmarshal([]byte(a.body), &doc); err != nil || len(doc.Conflicts.Conflict) != 1 || doc.Conflicts.Conflict[0].Key != "b" {
		t.Error(a.body, err)
	}
	merge.header["Accept"] = "application/json"
	a = s.must(409, merge)
	var conflict mergeAnswer
	if err := json.Unmarshal([]byte(a.body), &conflict); err != nil || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Key != "b" || conflict.Message == "" {
		t.Error(a.body, err)
	}
	if s.must(200, req{path: "/base/b"}).body != "base's" {
		t.Error("a refused merge changed the target")
	}
	merge.header["X-Tigris-Merge-Conflicts"] = "theirs"
	merge.header["X-Tigris-Merge-Dry-Run"] = "true"
	s.must(200, merge)
	if s.must(200, req{path: "/base/b"}).body != "base's" {
		t.Error("a dry run changed the target")
	}
	delete(merge.header, "X-Tigris-Merge-Dry-Run")
	s.must(200, merge)
	if s.must(200, req{path: "/base/b"}).body != "fork's" {
		t.Error("the merge didn't take the fork's side")
	}
	s.put("/base/new", "x")
	s.must(200, req{method: "PUT", path: "/past", header: headers{"X-Tigris-Rebase": "true"}})
	if s.must(200, req{path: "/past/new"}).body != "x" {
		t.Error("the rebase brought nothing")
	}
	s.must(204, req{method: "DELETE", path: "/base", header: headers{"Tigris-Force-Delete": "true"}})
	if s.must(200, req{path: "/fork/a"}).body != "2" {
		t.Error("the fork lost data with its parent")
	}
}

func TestRename(t *testing.T) {
	s := start(t)
	s.mkBucket("bkt")
	s.put("/bkt/old%20name", "text")
	s.must(200, req{method: "PUT", path: "/bkt/new?x-id=CopyObject", header: headers{"X-Amz-Copy-Source": "bkt/old%20name", "X-Tigris-Rename": "true"}})
	s.fails(404, "NoSuchKey", req{path: "/bkt/old%20name"})
	if a := s.must(200, req{path: "/bkt/new"}); a.body != "text" {
		t.Error(a.body)
	}
	s.fails(404, "NoSuchKey", req{method: "PUT", path: "/bkt/x", header: headers{"X-Amz-Copy-Source": "bkt/none", "X-Tigris-Rename": "true"}})
	s.fails(400, "InvalidArgument", req{method: "PUT", path: "/bkt/x", header: headers{"X-Amz-Copy-Source": "other/none", "X-Tigris-Rename": "true"}})
}

func TestBundle(t *testing.T) {
	s := start(t)
	s.mkBucket("bkt")
	want := map[string]string{"a": "1", "dir/b": strings.Repeat("2", 100_000), "leer": ""}
	for k, v := range want {
		s.put("/bkt/"+k, v)
	}
	body := `{"keys":["a","dir/b","leer","missing"]}`
	a := s.must(200, req{method: "POST", path: "/bkt?bundle=", body: body, header: headers{"X-Tigris-Bundle-Format": "tar"}})
	tr := tar.NewReader(strings.NewReader(a.body))
	n := 0
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil || string(data) != want[h.Name] {
			t.Errorf("%s: %d bytes, %v", h.Name, len(data), err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d files", n)
	}
	s.must(200, req{method: "POST", path: "/bkt?bundle=", body: body, header: headers{"X-Tigris-Bundle-Compression": "zstd"}})
	s.must(200, req{method: "POST", path: "/bkt?bundle=", body: body, header: headers{"X-Tigris-Bundle-Compression": "gzip"}})
	s.must(404, req{method: "POST", path: "/bkt?bundle=", body: body, header: headers{"X-Tigris-Bundle-On-Error": "fail"}})
	s.must(400, req{method: "POST", path: "/bkt?bundle=", body: "{", header: headers{}})
	s.must(400, req{method: "POST", path: "/bkt?bundle=", body: `{"keys":[]}`})
}

// iamCall makes a call as Tigris' IAM clients do.
func (s *server) iamCall(action, formBody string, id, secret string) answer {
	s.t.Helper()
	return s.do(req{method: "POST", path: "/?Action=" + action, body: formBody, id: id, secret: secret,
		header: headers{"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}})
}

func TestScopedKeys(t *testing.T) {
	s := start(t)
	for _, b := range []string{"base", "other"} {
		s.mkBucket(b)
		s.put("/"+b+"/a", b)
	}
	s.fork("base", "fork")
	makeKey := func(role string) (id, secret string) {
		form := url.Values{"Req": {`{"req_uuid":"x","name":"agent","buckets_role":[{"bucket":"fork","role":"` + role + `"}]}`}}
		a := s.iamCall("CreateAccessKeyWithBucketsRole", form.Encode(), "", "")
		var out struct {
			CreateAccessKeyResult struct {
				AccessKey struct{ AccessKeyId, SecretAccessKey string }
			}
		}
		if err := json.Unmarshal([]byte(a.body), &out); err != nil || a.status != 200 {
			t.Fatal(a, err)
		}
		return out.CreateAccessKeyResult.AccessKey.AccessKeyId, out.CreateAccessKeyResult.AccessKey.SecretAccessKey
	}
	rw, rwSecret := makeKey("Editor")
	ro, roSecret := makeKey("ReadOnly")
	if !strings.HasPrefix(rw, "tid_") {
		t.Error(rw)
	}
	as := func(id, secret string, q req) req { q.id, q.secret = id, secret; return q }
	reads := []req{{path: "/fork/a"}, {path: "/fork?list-type=2"}, {method: "HEAD", path: "/fork"}, {path: "/fork?location"}, {path: "/fork?versioning"}}
	writes := []req{{method: "PUT", path: "/fork/w", body: "x"}, {method: "POST", path: "/fork?delete", body: "<Delete><Object><Key>w</Key></Object></Delete>"},
		{method: "POST", path: "/fork/m?uploads"}, {method: "PUT", path: "/fork/c", header: headers{"X-Amz-Copy-Source": "fork/a"}}}
	never := []req{{path: "/base/a"}, {path: "/other?list-type=2"}, {method: "HEAD", path: "/other"}, {path: "/missing/a"}, {method: "PUT", path: "/fork/c", header: headers{"X-Amz-Copy-Source": "other/a"}},
		{method: "PUT", path: "/new"}, {method: "DELETE", path: "/fork"}, {method: "PUT", path: "/new", header: headers{"X-Tigris-Fork-Source-Bucket": "fork"}},
		{method: "PUT", path: "/fork", header: headers{"X-Tigris-Snapshot": "true"}}, {method: "PUT", path: "/fork", header: headers{"X-Tigris-Rebase": "true"}},
		{method: "PUT", path: "/base", header: headers{"X-Tigris-Merge-Source-Bucket": "fork"}}, {method: "PUT", path: "/fork", header: headers{"X-Tigris-Merge-Source-Bucket": "other"}},
		{method: "PUT", path: "/fork?versioning", body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"},
		{method: "PUT", path: "/fork?cors", body: "<x/>"}, {method: "PATCH", path: "/fork", body: `{"type":1}`}, {method: "POST", path: "/?Action=ListAccessKeys"},
		{path: "/", header: headers{"X-Tigris-Snapshot": "other"}}, {path: "/", header: headers{"X-Tigris-Fork": "base", "Accept": "application/json"}},
		{method: "DELETE", path: "/fork", header: headers{"X-Tigris-Snapshot-Version": "1"}}}
	for _, q := range reads {
		s.must(200, as(rw, rwSecret, q))
		s.must(200, as(ro, roSecret, q))
	}
	for _, q := range writes {
		if a := s.do(as(ro, roSecret, q)); a.status != 403 {
			t.Errorf("a read-only key may %s %s: %d", q.method, q.path, a.status)
		}
		s.must(200, as(rw, rwSecret, q))
	}
	for _, q := range never {
		for id, secret := range map[string]string{rw: rwSecret, ro: roSecret} {
			if a := s.do(as(id, secret, q)); a.status != 403 {
				t.Errorf("a scoped key may %s %s %v: %d %s", q.method, q.path, q.header, a.status, a.body)
			}
		}
	}
	if a := s.must(200, as(rw, rwSecret, req{path: "/"})); strings.Contains(a.body, "<Name>base<") || !strings.Contains(a.body, "<Name>fork<") {
		t.Error(a.body)
	}
	// Deleting the fork revokes its keys, even if the name comes back.
	s.must(204, req{method: "DELETE", path: "/fork", header: headers{"Tigris-Force-Delete": "true"}})
	s.fork("base", "fork")
	s.fails(403, "AccessDenied", as(rw, rwSecret, req{path: "/fork/a"}))

	a := s.iamCall("ListAccessKeys", "MaxItems=10", "", "")
	var listed struct{ Keys []keyEntry }
	if err := json.Unmarshal([]byte(a.body), &listed); err != nil || len(listed.Keys) != 2 {
		t.Fatal(a.body, err)
	}
	if a := s.iamCall("DeleteAccessKey", "AccessKeyId="+rw, "", ""); a.status != 200 {
		t.Error(a)
	}
	s.fails(403, "InvalidAccessKeyId", as(rw, rwSecret, req{path: "/fork/a"}))
	a = s.iamCall("RotateAccessKey", "AccessKeyId="+ro, "", "")
	if a.status != 200 || !strings.Contains(a.body, "new_secret") {
		t.Error(a)
	}
	s.fails(403, "SignatureDoesNotMatch", as(ro, roSecret, req{path: "/fork/a"}))
	a = s.iamCall("UpdateAccessKeyWithBucketsRole", url.Values{"Req": {`{"id":"` + ro + `","buckets_role":[]}`}}.Encode(), "", "")
	if a.status != 200 {
		t.Error(a)
	}
	for _, bad := range []string{"", "{", `{"buckets_role":[{"bucket":"fork","role":"King"}]}`, `{"buckets_role":[{"bucket":"*","role":"Editor"}]}`, `{"buckets_role":[{"bucket":"missing","role":"Editor"}]}`} {
		if a := s.iamCall("CreateAccessKeyWithBucketsRole", url.Values{"Req": {bad}}.Encode(), "", ""); a.status != 400 && a.status != 404 {
			t.Errorf("%q: %d", bad, a.status)
		}
	}
}

// TestServerPresign lets the server make presigned URLs, as Tigris' SDK asks it to.
func TestServerPresign(t *testing.T) {
	s := start(t)
	s.mkBucket("bkt")
	s.put("/bkt/a%20b", "text")
	ask := func(body string, id, secret string) answer {
		return s.do(req{method: "POST", path: "/?func=presign", body: body, id: id, secret: secret, header: headers{"Content-Type": "application/json"}})
	}
	a := ask(`{"bucket":"bkt","key":"a b","type":"get","expires_in":60,"key_id":"`+rootID+`"}`, "", "")
	var out struct{ URL string }
	if err := json.Unmarshal([]byte(a.body), &out); err != nil || a.status != 200 {
		t.Fatal(a, err)
	}
	resp, err := http.Get(out.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.read(resp); got.status != 200 || got.body != "text" {
		t.Fatal(got)
	}
	key, err := s.keys.Create(t.Context(), access.NewKey{Name: "scoped"})
	if err != nil {
		t.Fatal(err)
	}
	if a := ask(`{"bucket":"bkt","key":"a b","type":"get","expires_in":60,"key_id":"`+rootID+`"}`, key.ID, key.Secret); a.status != 403 {
		t.Error("a scoped key got a URL of the root key:", a)
	}
	for _, bad := range []string{`{`, `{"bucket":"bkt","key":"a","type":"delete","expires_in":60}`, `{"bucket":"bkt","key":"a","type":"get","expires_in":9999999}`,
		`{"bucket":"B","key":"a","type":"get","expires_in":60}`, `{"bucket":"bkt","key":"","type":"get","expires_in":60}`} {
		if a := ask(bad, "", ""); a.status != 400 || !strings.Contains(a.body, `"Message"`) {
			t.Errorf("%s: %v", bad, a)
		}
	}
}
