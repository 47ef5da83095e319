package rest_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/serve/rest"
)

// forked returns a world with "base" and its fork "task", which differ: a changed, b deleted, c added.
func forked(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, rest.Options{})
	w.create("base")
	w.put("base", "dir/a", "one")
	w.put("base", "dir/b", "two")
	if _, err := w.CreateBucket(t.Context(), api.CreateBucket{Name: "task", ForkOf: "base"}); err != nil {
		t.Fatal(err)
	}
	w.put("task", "dir/a", "changed")
	w.put("task", "c", "new")
	w.remove("task", "dir/b")
	return w
}

func TestDiff(t *testing.T) {
	w := forked(t)
	task, err := w.Bucket(t.Context(), "task")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, prefix, want string }{
		{"base", "task", "", "added c, modified dir/a, deleted dir/b"},
		{"task", "base", "", "deleted c, modified dir/a, added dir/b"},
		{"base", "task", "dir/", "modified dir/a, deleted dir/b"},
		{"base", "base", "", ""},
		{"task@" + task.Parent.Snapshot.String(), "task", "", "added c, modified dir/a, deleted dir/b"},
	} {
		var got []string
		res, err := w.Diff(t.Context(), c.from, c.to, c.prefix, func(ch *api.Change) error {
			got = append(got, ch.Kind+" "+ch.Key)
			if (ch.Old == nil) != (ch.Kind == "added") || (ch.New == nil) != (ch.Kind == "deleted") {
				t.Errorf("%s: %+v", c.from, ch)
			}
			return nil
		})
		if err != nil || strings.Join(got, ", ") != c.want || res.Added+res.Modified+res.Deleted+res.Metadata != len(got) {
			t.Errorf("%s to %s: %q, %+v, %v", c.from, c.to, got, res, err)
		}
	}
	if _, err := w.Diff(t.Context(), "base", "tusk", "", nil); !errs.Is(err, errs.NotFound) || errs.HintOf(err) != "did you mean 'task'?" {
		t.Errorf("a missing bucket: %v, %q", err, errs.HintOf(err))
	}
}

func TestMerge(t *testing.T) {
	w := forked(t)
	ctx := t.Context()
	res, err := w.Merge(ctx, "task", api.Merge{DryRun: true}, nil)
	if err != nil || !res.DryRun || res.Added != 1 || res.Modified != 1 || res.Deleted != 1 || res.Target != "base" {
		t.Errorf("dry run: %+v, %v", res, err)
	}
	w.put("base", "dir/a", "otherwise")
	res, err = w.Merge(ctx, "task", api.Merge{}, nil)
	if !errs.Is(err, errs.Conflict) || res == nil || len(res.Conflicts) != 1 || res.Conflicts[0].Key != "dir/a" ||
		res.Conflicts[0].Base.Size != 3 || res.Conflicts[0].Ours.Size != 9 || res.Conflicts[0].Theirs.Size != 7 {
		t.Errorf("a conflict: %+v, %v", res, err)
	}
	// Without a stream: one answer, or one problem.
	status, p := w.send("POST", "/v1/buckets/task/merge", rootKey, api.JSON, `{}`)
	if status != 409 || p.Merge == nil || len(p.Merge.Conflicts) != 1 {
		t.Errorf("a conflict without a stream: %d %+v", status, p)
	}
	if status, _ := w.send("POST", "/v1/buckets/task/merge", rootKey, api.JSON, `{"conflicts":"theirs"}`); status != 200 {
		t.Errorf("theirs: %d", status)
	}
	if r, err := w.ReadObject(ctx, "base", "", "dir/a"); err != nil {
		t.Error(err)
	} else if b, _ := io.ReadAll(r); string(b) != "changed" {
		t.Errorf("base holds %q", b)
	}
	w.put("base", "d", "later")
	if res, err := w.Rebase(ctx, "task", api.Merge{}, nil); err != nil || res.Added != 1 {
		t.Errorf("rebase: %+v, %v", res, err)
	}
	if err := w.DeleteBucket(ctx, "base", true); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Merge(ctx, "task", api.Merge{}, nil); !errs.Is(err, errs.NotFound) || !strings.Contains(err.Error(), "base was deleted") {
		t.Errorf("a merge into a deleted parent: %v", err)
	}
}

func TestMaintenance(t *testing.T) {
	w := forked(t)
	ctx := t.Context()
	u, err := w.Usage(ctx, "task")
	if err != nil || u.Objects != 2 || u.Bytes != 10 || u.Unique != 10 || u.Shared != 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if s, err := w.StoreUsage(ctx); err != nil || s.Buckets != 2 || s.Objects != 4 || s.Bytes != 16 {
		t.Errorf("usage of the store %+v, %v", s, err)
	}
	if _, err := w.GC(ctx); err != nil {
		t.Error(err)
	}
	if r, err := w.Fsck(ctx, api.Fsck{Payload: true}, nil); err != nil || r.Buckets != 2 || len(r.Defects) != 0 {
		t.Errorf("fsck %+v, %v", r, err)
	}
	// Which form the answer has is the client's choice.
	for accept, want := range map[string]string{"": api.JSON, "*/*": api.JSON, api.NDJSON: api.NDJSON, "text/html, " + api.NDJSON + ";q=0.5": api.NDJSON} {
		req, _ := http.NewRequestWithContext(ctx, "POST", w.url+"/v1/fsck", nil)
		req.Header.Set("Authorization", "Bearer "+rootKey)
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		sc := bufio.NewScanner(resp.Body)
		var last string
		for sc.Scan() {
			last = sc.Text()
			if !json.Valid([]byte(last)) {
				t.Errorf("Accept %q: %s", accept, last)
			}
		}
		resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); got != want || strings.HasPrefix(last, `{"result":`) != (want == api.NDJSON) {
			t.Errorf("Accept %q: %s %s", accept, got, last)
		}
	}
	list, err := w.Buckets(ctx)
	if err != nil || !slices.IsSortedFunc(list, func(a, b api.Bucket) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("buckets aren't sorted: %v, %v", list, err)
	}
}
