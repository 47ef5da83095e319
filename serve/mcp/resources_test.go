package mcp_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/serve/mcp"
)

func (m *model) read(uri string) (*sdk.ResourceContents, error) {
	r, err := m.ReadResource(m.t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	return r.Contents[0], nil
}

func TestResources(t *testing.T) {
	w := newWorld(t)
	m := w.stdio(rootKey, mcp.Options{})
	if r, err := m.ListResources(t.Context(), nil); err != nil || len(r.Resources) != 0 {
		t.Fatalf("before there is a sandbox: %+v, %v", r, err)
	}
	if r, err := m.ListResourceTemplates(t.Context(), nil); err != nil || len(r.ResourceTemplates) != 1 || r.ResourceTemplates[0].URITemplate != "sandbox://{id}/{+path}" {
		t.Fatalf("templates: %+v, %v", r, err)
	}
	m.sh(`mkdir -p d && echo text > d/a.txt && printf '\0\377' > d/b.bin && echo odd > "d/ä b#?%41.txt" && ln -s d/a.txt link`)
	id := text(m.does("get_sandbox", nil), "id")
	base := "sandbox://" + id + "/workspace/"
	if c, err := m.read(base + "d/a.txt"); err != nil || c.Text != "text\n" || !strings.HasPrefix(c.MIMEType, "text/plain") || c.Blob != nil {
		t.Errorf("text: %+v, %v", c, err)
	}
	if c, err := m.read(base + "d/b.bin"); err != nil || string(c.Blob) != "\x00\xff" || c.Text != "" {
		t.Errorf("binary: %+v, %v", c, err)
	}
	if c, err := m.read(base + "d"); err != nil || c.MIMEType != "inode/directory" || !strings.Contains(c.Text, "a.txt\nb.bin\n") {
		t.Errorf("directory: %+v, %v", c, err)
	}
	for _, uri := range []string{base + "d/gone", "sandbox://nobody/workspace/d/a.txt", "sandbox://", "http://example.org/", "sandbox://" + id + "/%00"} {
		if c, err := m.read(uri); err == nil {
			t.Errorf("%s: %+v", uri, c)
		}
	}
	var uris []string
	for r, err := range m.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, r.URI)
		if c, err := m.read(r.URI); err != nil {
			t.Errorf("%s is listed, and can't be read: %v", r.URI, err)
		} else if strings.HasSuffix(r.Title, "%41.txt") && c.Text != "odd\n" {
			t.Errorf("%s: %+v", r.URI, c)
		}
	}
	if len(uris) != 5 {
		t.Errorf("listed: %q", uris)
	}
	m.sh("mkdir many && cd many && for i in `seq 250`; do echo > $i; done")
	n := 0
	for range m.Resources(t.Context(), nil) {
		n++
	}
	if n != 5+1+250 {
		t.Errorf("%d are listed", n)
	}
	for ref, want := range map[[3]string]string{{"id", id[:20], ""}: id, {"path", "workspace/d/a", id}: "workspace/d/a.txt", {"path", "work", id}: "workspace/"} {
		p := &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "sandbox://{id}/{+path}"}, Argument: sdk.CompleteParamsArgument{Name: ref[0], Value: ref[1]}}
		if ref[2] != "" {
			p.Context = &sdk.CompleteContext{Arguments: map[string]string{"id": ref[2]}}
		}
		if r, err := m.Complete(t.Context(), p); err != nil || !slices.Contains(r.Completion.Values, want) {
			t.Errorf("complete %v: %+v, %v", ref, r, err)
		}
	}
}

// TestSubscribe: whoever has subscribed to a file hears of it, whoever changes it and however.
func TestSubscribe(t *testing.T) {
	w := newWorld(t)
	for name, m := range map[string]*model{"http": w.http(rootKey, "")} {
		t.Run(name, func(t *testing.T) {
			m.t = t
			subscribe(m)
		})
	}
}

func subscribe(m *model) {
	t := m.t
	m.sh("mkdir -p d && echo 1 > f && echo 1 > other")
	id := text(m.does("get_sandbox", nil), "id")
	file, dir := "sandbox://"+id+"/workspace/f", "sandbox://"+id+"/workspace/d"
	for _, uri := range []string{file, dir} {
		if err := m.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Subscribe(t.Context(), &sdk.SubscribeParams{URI: file + "gone"}); err == nil {
		t.Error("a file that isn't there")
	}
	told := func(uri string) int {
		m.mu.Lock()
		defer m.mu.Unlock()
		n := 0
		for _, u := range m.updated {
			if u == uri {
				n++
			} else if u != file && u != dir {
				t.Errorf("told of %s", u)
			}
		}
		return n
	}
	hears := func(uri string, do func()) {
		t.Helper()
		before := told(uri)
		do()
		until(t, "an update of "+uri, func() bool { return told(uri) > before })
	}
	hears(file, func() { m.sh("echo 2 >> f") })
	hears(file, func() { m.does("write_file", args{"path": "f", "content": "3"}) })
	hears(file, func() { m.sh("mv other f") })
	hears(dir, func() { m.sh("mkdir -p d/e && echo > d/e/new") })
	hears(file, func() { m.sh("rm f") })
	if err := m.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: file}); err != nil {
		t.Fatal(err)
	}
	hears(dir, func() { m.sh("echo > d/barrier") }) // notifications come in order
	before := told(file)
	hears(dir, func() { m.sh("echo 4 > f; sleep 0.3; echo > d/again") })
	if n := told(file); n != before {
		t.Errorf("told of a file after the subscription's end: %d, %d", n, before)
	}
	// A sandbox that sleeps isn't woken up by whoever watches it, and is watched again once it is awake.
	m.does("hibernate_sandbox", nil)
	hears(dir, func() { m.sh("echo 5 > d/awake") })
	hears(dir, func() { m.sh("echo 6 > d/awake") })
}

// TestPrompts: there are some, and instructions.
func TestPrompts(t *testing.T) {
	w := newWorld(t)
	m := w.http(rootKey, "")
	if s := m.InitializeResult().Instructions; !strings.Contains(s, "fork_sandbox") {
		t.Errorf("instructions: %q", s)
	}
	r, err := m.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "try_variants", Arguments: map[string]string{"task": "sort it"}})
	if err != nil || !strings.Contains(r.Messages[0].Content.(*sdk.TextContent).Text, "sort it") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := m.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "review_changes"}); err != nil {
		t.Error(err)
	}
	tools, err := m.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tools.Tools {
		if x.Description == "" || x.Annotations == nil || x.Annotations.Title == "" {
			t.Errorf("%s isn't described", x.Name)
		}
		if x.Annotations.ReadOnlyHint && x.Annotations.DestructiveHint != nil {
			t.Errorf("%s reads and destroys", x.Name)
		}
		for name, p := range x.InputSchema.(map[string]any)["properties"].(map[string]any) {
			if d, _ := p.(map[string]any)["description"].(string); d == "" && name != "ignore_case" {
				t.Errorf("%s: %s isn't described", x.Name, name)
			}
		}
	}
}

// TestDocument: the page for users names every tool, prompt and resource, as they are.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	m := w.http(rootKey, "")
	tools, err := m.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{mcp.MetaError, "sandbox://ID/"}
	for _, x := range tools.Tools {
		names = append(names, x.Name)
	}
	prompts, err := m.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range prompts.Prompts {
		names = append(names, p.Name)
	}
	for _, n := range names {
		if !strings.Contains(string(page), "`"+n) {
			t.Errorf("docs/mcp.md doesn't name %s", n)
		}
	}
}
