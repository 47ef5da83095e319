package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/serve/mcp"
)

// TestTools goes through what every tool does, over both transports.
func TestTools(t *testing.T) {
	w := newWorld(t)
	for name, connect := range map[string]func() *model{
		"stdio": func() *model { return w.stdio(rootKey, mcp.Options{}) },
		"http":  func() *model { return w.http(rootKey, "") },
	} {
		t.Run(name, func(t *testing.T) {
			m := connect()
			m.t = t
			t.Run("commands", func(t *testing.T) { m.t = t; commands(m) })
			t.Run("files", func(t *testing.T) { m.t = t; files(m) })
			t.Run("search", func(t *testing.T) { m.t = t; search(m) })
			t.Run("forks", func(t *testing.T) { m.t = t; forks(m) })
			t.Run("states", func(t *testing.T) { m.t = t; states(m) })
			m.t = t
		})
	}
}

func commands(m *model) {
	t := m.t
	out := m.does("exec", args{"command": "echo out; echo err >&2; exit 3"})
	if out["exit_code"] != 3.0 || out["stdout"] != "out\n" || out["stderr"] != "err\n" || out["timed_out"] != nil {
		t.Errorf("exec: %v", out)
	}
	if s := m.says("exec", args{"command": "echo out; echo err >&2; exit 3"}); !strings.Contains(s, "out\n[stderr]\nerr\n[exit code 3") {
		t.Errorf("exec says %q", s)
	}
	out = m.does("exec", args{"command": "cat; echo $A; pwd", "stdin": "in", "env": args{"A": "b"}, "cwd": "/tmp"})
	if out["stdout"] != "inb\n/tmp\n" {
		t.Errorf("stdin, env, cwd: %v", out)
	}
	if out = m.does("exec", args{"command": "sleep 60", "timeout_seconds": 0.2}); out["exit_code"] != 124.0 || out["timed_out"] != true {
		t.Errorf("timeout: %v", out)
	}
	m.does("exec", args{"command": "cd /tmp; V=1", "session": "s"})
	if out = m.does("exec", args{"command": "echo $V $PWD", "session": "s"}); out["stdout"] != "1 /tmp\n" {
		t.Errorf("session: %v", out)
	}
	out = m.does("exec", args{"command": "echo begun; sleep 600", "background": true})
	pid, log := out["pid"].(float64), out["log_file"].(string)
	if list := m.says("list_processes", nil); !strings.Contains(list, fmt.Sprintf("%.0f\t", pid)) {
		t.Errorf("processes: %q", list)
	}
	until(t, "the log", func() bool {
		return !m.call("read_file", args{"path": log}).IsError && m.says("read_file", args{"path": log}) == "begun\n"
	})
	m.does("kill_process", args{"pid": pid, "signal": "SIGKILL"})
	until(t, "its end", func() bool { return !strings.Contains(m.says("list_processes", nil), fmt.Sprintf("%.0f\t", pid)) })

	m.fails("exec", args{"command": " "}, "empty")
	m.fails("exec", args{"command": "true", "timeout_seconds": 1e9}, "3600", "background")
	m.fails("exec", args{"command": "true", "sandbox": "nobody"}, "nobody", "list_sandboxes")
	m.fails("exec", args{"command": strings.Repeat("x", 2<<20)}, "write_file")
	m.fails("exec", args{"comand": "true"}, "comand")
	m.fails("exec", nil, "command")
	m.fails("exec", args{"command": 3}, "command")
	m.fails("kill_process", args{"pid": 99999})
	m.fails("run_code", args{"language": "cobol", "code": "x"}, "python or javascript")
	m.fails("run_code", args{"language": "python", "code": "1"}, "interpreter") // there is none in these tests
	if _, err := m.CallTool(t.Context(), &sdk.CallToolParams{Name: "no_such_tool"}); err == nil {
		t.Error("there is a tool no_such_tool")
	}
}

func files(m *model) {
	t := m.t
	out := m.does("write_file", args{"path": "d/e/f.txt", "content": "one\ntwo\n"})
	if out["path"] != "/workspace/d/e/f.txt" || out["size"] != 8.0 || !strings.HasSuffix(out["uri"].(string), "/workspace/d/e/f.txt") {
		t.Errorf("write: %v", out)
	}
	m.does("write_file", args{"path": "d/e/f.txt", "content": "three\n", "append": true})
	if s := m.says("read_file", args{"path": "/workspace/d/e/f.txt"}); s != "one\ntwo\nthree\n" {
		t.Errorf("read: %q", s)
	}
	m.does("write_file", args{"path": "run", "content": "#!/bin/sh\necho ran\n", "executable": true})
	m.does("edit_file", args{"path": "run", "old_string": "ran", "new_string": "was run"})
	if s := m.sh("./run"); s != "was run\n" {
		t.Errorf("an edited file keeps its mode: %q", s)
	}
	m.does("write_file", args{"path": "b", "content": "AAEC\n/w==", "encoding": "base64"})
	if s := m.sh("od -An -tx1 b"); strings.TrimSpace(s) != "00 01 02 ff" {
		t.Errorf("base64: %q", s)
	}
	if r := m.call("read_file", args{"path": "b"}); r.IsError || len(r.Content) != 2 || !strings.Contains(words(r), "binary: 4 bytes") {
		t.Errorf("binary: %+v", r.Content)
	}
	m.sh(`printf '\x89PNG\r\n\x1a\n\0\0' > i.png; : > nothing; seq 1 5000 > many; head -c 200000 /dev/zero | tr '\0' x > long`)
	if r := m.call("read_file", args{"path": "i.png"}); r.Content[0].(*sdk.ImageContent).MIMEType != "image/png" {
		t.Errorf("image: %+v", r.Content[0])
	}
	for _, c := range []struct {
		in          args
		begin, ends string
	}{
		{args{"path": "nothing"}, "[the file is empty]", "]"},
		{args{"path": "many"}, "1\n2\n", "\n2000\n[lines 1 to 2000 of a file of 23893 bytes; go on with offset: 2001]"},
		{args{"path": "many", "offset": 4999}, "4999\n5000\n[lines 4999 to 5000, the end", "file]"},
		{args{"path": "many", "offset": 10, "limit": 2}, "10\n11\n[lines 10 to 11", "offset: 12]"},
		{args{"path": "many", "offset": 6000}, "[nothing at line 6000: the file has 5000]", "]"},
		{args{"path": "long"}, "xxx", "x\n[the first 60000 of 200000 bytes, cut within a line; go on with byte_offset: 60000]"},
		{args{"path": "long", "byte_offset": 180000}, "xxx", "x"},
		{args{"path": "long", "byte_offset": 999999}, "[nothing at byte 999999: the file has 200000]", "]"},
	} {
		if s := m.says("read_file", c.in); !strings.HasPrefix(s, c.begin) || !strings.HasSuffix(s, c.ends) {
			t.Errorf("%v: %q … %q", c.in, s[:min(60, len(s))], s[max(0, len(s)-100):])
		}
	}
	list := m.does("list_files", args{"path": "d", "depth": 2})
	if text(list, "entries", 0, "path") != "/workspace/d/e" || text(list, "entries", 1, "path") != "/workspace/d/e/f.txt" {
		t.Errorf("list: %v", list)
	}
	first := m.does("list_files", args{"limit": 1})
	second := m.does("list_files", args{"limit": 1, "cursor": first["next_cursor"]})
	if text(first, "entries", 0, "path") == text(second, "entries", 0, "path") {
		t.Errorf("pages: %v, %v", first, second)
	}
	m.fails("edit_file", args{"path": "d/e/f.txt", "old_string": "o", "new_string": "x"}, "2 times", "lines 1, 2", "replace_all")
	m.fails("edit_file", args{"path": "d/e/f.txt", "old_string": "four", "new_string": "x"}, "isn't in the file")
	m.fails("edit_file", args{"path": "d/e/f.txt", "old_string": "", "new_string": "x"}, "empty")
	m.fails("edit_file", args{"path": "gone", "old_string": "a", "new_string": "x"}, "no such file")
	if out := m.does("edit_file", args{"path": "d/e/f.txt", "old_string": "t", "new_string": "T", "replace_all": true}); out["replacements"] != 2.0 || out["line"] != 2.0 {
		t.Errorf("replace_all: %v", out)
	}
	m.fails("read_file", args{"path": "gone"}, "no such file")
	m.fails("read_file", args{"path": "d"}, "directory", "list_files")
	m.fails("write_file", args{"path": "d", "content": ""}, "directory")
	m.fails("write_file", args{"path": "x", "content": "%", "encoding": "base64"}, "base64")
	m.fails("write_file", args{"path": "x", "content": "y", "encoding": "latin1"}, "utf-8 or base64")
	m.fails("list_files", args{"path": "gone"}, "no such file")
}

func search(m *model) {
	t := m.t
	m.sh("mkdir -p s/.git s/a/b && cd s && printf 'Needle 1\nhay\nneedle 2\n' > a/x.go && printf 'needle (3\n' > a/b/y.txt && printf 'needle\n' > .git/z && printf 'needle\\0' > bin")
	out := m.does("search_files", args{"pattern": "needle [0-9]", "path": "s"})
	if text(out, "matches") != "[map[line:3 path:s/a/x.go text:needle 2]]" {
		t.Errorf("search: %v", out)
	}
	all := m.does("search_files", args{"pattern": "needle", "path": "s", "ignore_case": true, "limit": 2})
	if len(at(all, "matches").([]any)) != 2 || all["next_offset"] != 2.0 {
		t.Errorf("search: %v", all)
	}
	rest := m.does("search_files", args{"pattern": "needle", "path": "s", "ignore_case": true, "limit": 2, "offset": 2})
	if len(at(rest, "matches").([]any)) != 1 || rest["next_offset"] != nil {
		t.Errorf("search: %v", rest)
	}
	if out = m.does("search_files", args{"pattern": "needle (", "path": "s", "literal": true, "glob": "*.txt"}); len(at(out, "matches").([]any)) != 1 {
		t.Errorf("literal: %v", out)
	}
	m.fails("search_files", args{"pattern": "needle (", "path": "s"}, "literal")
	m.fails("search_files", args{"pattern": "needle", "path": "gone"}, "gone")
	m.fails("search_files", args{"pattern": ""}, "pattern")
	if s := m.says("search_files", args{"pattern": "nothing like this", "path": "s"}); s != "[no line matches]" {
		t.Errorf("none: %q", s)
	}
	for pattern, want := range map[string]string{"*.go": "[s/a/x.go]", "**/*.txt": "[s/a/b/y.txt]", "a/*": "[s/a/x.go]", "a/**": "[s/a/b/y.txt s/a/x.go]", "z": "[]", "*.{go,txt}": "[s/a/b/y.txt s/a/x.go]"} {
		if out := m.does("find_files", args{"pattern": pattern, "path": "s"}); text(out, "paths") != want {
			t.Errorf("find %s: %v, want %s", pattern, out, want)
		}
	}
	if out := m.does("find_files", args{"pattern": "/workspace/s/**/*.go"}); text(out, "paths") != "[/workspace/s/a/x.go]" {
		t.Errorf("absolute: %v", out)
	}
	if out := m.does("find_files", args{"pattern": "**", "path": "s", "limit": 1, "offset": 1}); out["total"] != 3.0 || out["next_offset"] != 2.0 {
		t.Errorf("pages: %v", out)
	}
	m.fails("find_files", args{"pattern": "{a"}, "closed")
	m.fails("find_files", args{"pattern": "*", "path": "gone"}, "gone")
}

func forks(m *model) {
	t := m.t
	m.does("write_file", args{"path": "shared", "content": "base"})
	own := m.does("get_sandbox", nil)["id"].(string)
	out := m.does("fork_sandbox", args{"count": 2})
	one, two := text(out, "sandboxes", 0, "id"), text(out, "sandboxes", 1, "id")
	if text(out, "sandboxes", 0, "parent") != own {
		t.Errorf("fork: %v", out)
	}
	m.does("write_file", args{"path": "new", "content": "one", "sandbox": one})
	m.does("write_file", args{"path": "shared", "content": "two", "sandbox": two})
	m.fails("read_file", args{"path": "new"}, "no such file")
	diff := m.does("diff_sandboxes", args{"from": own, "to": one})
	if diff["added"] != 1.0 || text(diff, "changes") != "[map[kind:added new_size:3 path:/workspace/new]]" {
		t.Errorf("diff: %v", diff)
	}
	if d := m.does("diff_sandboxes", args{"from": two}); d["modified"] != 1.0 {
		t.Errorf("diff since the fork: %v", d)
	}
	if out := m.does("merge_sandbox", args{"source": one}); out["merged"] != true || out["added"] != 1.0 || out["into"] != own {
		t.Errorf("merge: %v", out)
	}
	if s := m.says("read_file", args{"path": "new"}); s != "one" {
		t.Errorf("merged: %q", s)
	}
	m.does("write_file", args{"path": "shared", "content": "mine"})
	if r := m.call("merge_sandbox", args{"source": two}); !r.IsError || !strings.Contains(words(r), "/workspace/shared") || at(r.StructuredContent, "merged") != false {
		t.Errorf("conflict: %v: %s", r.StructuredContent, words(r))
	}
	if s := m.says("read_file", args{"path": "shared"}); s != "mine" {
		t.Errorf("a merge with conflicts: %q", s)
	}
	m.does("merge_sandbox", args{"source": two, "conflicts": "theirs"})
	if s := m.says("read_file", args{"path": "shared"}); s != "two" {
		t.Errorf("theirs: %q", s)
	}
	m.fails("merge_sandbox", args{"source": two, "conflicts": "mine"}, "ours or theirs")
	m.fails("merge_sandbox", args{"source": own}, "wasn't forked")
	m.fails("fork_sandbox", args{"count": 1000}, "100")
	m.does("use_sandbox", args{"sandbox": one})
	if out := m.does("get_sandbox", nil); out["id"] != one || out["own"] != true {
		t.Errorf("use: %v", out)
	}
	m.does("use_sandbox", args{"sandbox": "own"})
	if out := m.does("get_sandbox", nil); out["id"] != own {
		t.Errorf("use own: %v", out)
	}
	for _, id := range []string{one, two} {
		m.does("terminate_sandbox", args{"sandbox": id})
	}
	m.fails("exec", args{"command": "true", "sandbox": one}, "has ended")
}

func states(m *model) {
	t := m.t
	m.sh("echo kept > kept")
	if out := m.does("hibernate_sandbox", nil); out["state"] != api.StateHibernated {
		t.Errorf("hibernate: %v", out)
	}
	if out := m.does("resume_sandbox", nil); out["state"] != api.StateRunning {
		t.Errorf("resume: %v", out)
	}
	m.does("hibernate_sandbox", nil)
	if s := m.sh("cat kept"); s != "kept\n" {
		t.Errorf("used while it slept: %q", s)
	}
	snap := m.does("snapshot_sandbox", args{"name": ""})["id"]
	if s := m.says("list_snapshots", nil); !strings.Contains(s, fmt.Sprint(snap)) {
		t.Errorf("snapshots: %q", s)
	}
	old := m.does("create_sandbox", args{"snapshot": snap})["id"]
	if s := m.says("read_file", args{"path": "kept", "sandbox": old}); s != "kept\n" {
		t.Errorf("of a snapshot: %q", s)
	}
	further := m.does("create_sandbox", args{"env": args{"A": "b"}})["id"]
	if out := m.does("exec", args{"command": "echo $A", "sandbox": further}); out["stdout"] != "b\n" {
		t.Errorf("create: %v", out)
	}
	if s := m.says("list_sandboxes", args{"limit": 1}); !strings.Contains(s, "cursor") {
		t.Errorf("list: %q", s)
	}
	if s := m.says("list_templates", nil); !strings.Contains(s, mcp.DefaultTemplate+": ready") {
		t.Errorf("templates: %q", s)
	}
	m.fails("create_sandbox", args{"template": "gone"}, "gone")
	m.fails("create_sandbox", args{"name": "NOT A NAME"}, "NOT A NAME")
	m.fails("terminate_sandbox", args{"sandbox": ""}, "which")
	m.does("terminate_sandbox", args{"sandbox": further})
	m.does("terminate_sandbox", args{"sandbox": old})
	if s := m.says("terminate_sandbox", args{"sandbox": "own"}); !strings.Contains(s, "gets a new one") {
		t.Errorf("terminate: %q", s)
	}
	m.fails("read_file", args{"path": "kept"}, "no such file")
}

// TestOutput: of what is too long the beginning and the end come, and all of it is in a file.
func TestOutput(t *testing.T) {
	w := newWorld(t)
	m := w.stdio(rootKey, mcp.Options{})
	out := m.does("exec", args{"command": "seq 1 20000; seq 1 10000 >&2"})
	stdout := out["stdout"].(string)
	if len(stdout) > 21_000 || !strings.HasPrefix(stdout, "1\n2\n") || !strings.HasSuffix(stdout, "\n20000\n") || !strings.Contains(stdout, "bytes left out here") {
		t.Errorf("%d bytes: %.100q", len(stdout), stdout)
	}
	file := out["stdout_file"].(string)
	if !strings.Contains(stdout, file) || out["stdout_bytes"] != 108894.0 {
		t.Errorf("the result doesn't say where the rest is: %v", out["stdout_bytes"])
	}
	if s := m.sh("cksum < " + file + "; seq 1 20000 | cksum"); s[:len(s)/2] != s[len(s)/2:] {
		t.Errorf("the file has something else: %s", s)
	}
	if s := m.says("read_file", args{"path": out["stderr_file"], "offset": 9999}); !strings.HasPrefix(s, "9999\n10000\n") {
		t.Errorf("stderr: %q", s)
	}
	if out := m.does("exec", args{"command": `head -c 9000000 /dev/zero | tr '\0' x`}); out["stdout_bytes"] != 9e6 || !strings.Contains(out["stdout"].(string), "the first 8388608 of 9000000 bytes") {
		t.Errorf("more than is kept: %v", out["stdout_bytes"])
	}
}

// TestProgress: what a command writes is told as it does.
func TestProgress(t *testing.T) {
	w := newWorld(t)
	m := w.stdio(rootKey, mcp.Options{})
	m.sh("mkfifo go")
	var res *sdk.CallToolResult
	done := make(chan error, 1)
	go func() {
		var err error
		p := &sdk.CallToolParams{Name: "exec", Arguments: args{"command": "echo first; cat go; echo last"}}
		p.SetProgressToken("token")
		res, err = m.CallTool(t.Context(), p)
		done <- err
	}()
	said := func() string {
		m.mu.Lock()
		defer m.mu.Unlock()
		var b strings.Builder
		var before float64
		for _, p := range m.progress {
			if p.ProgressToken != "token" || p.Progress <= before {
				t.Errorf("progress: %+v after %v", p, before)
			}
			before = p.Progress
			b.WriteString(p.Message)
		}
		return b.String()
	}
	until(t, "progress", func() bool { return strings.Contains(said(), "first\n") })
	m.sh("echo second > go")
	if err := <-done; err != nil || res.IsError {
		t.Fatal(err, res)
	}
	until(t, "all of the progress", func() bool { return strings.Contains(said(), "second\n") && strings.Contains(said(), "last\n") })
}

// TestCancel: a call that is cancelled ends its command.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	for name, m := range map[string]*model{"stdio": w.stdio(rootKey, mcp.Options{}), "http": w.http(rootKey, "")} {
		t.Run(name, func(t *testing.T) {
			m.t = t
			m.sh("true")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := m.CallTool(ctx, &sdk.CallToolParams{Name: "exec", Arguments: args{"command": "sleep 600"}})
				done <- err
			}()
			until(t, "the command", func() bool { return strings.Contains(m.says("list_processes", nil), "sleep") })
			cancel()
			if err := <-done; err == nil {
				t.Error("it was not cancelled")
			}
			until(t, "the command's end", func() bool { return !strings.Contains(m.says("list_processes", nil), "sleep") })
		})
	}
}

// TestDenied: a denial is a result that names the rule, and no error of the protocol.
func TestDenied(t *testing.T) {
	w := newWorld(t)
	m := w.stdio(rootKey, mcp.Options{})
	m.sh("echo hers > f")
	id := text(m.does("get_sandbox", nil), "id")
	if _, err := w.ChangeSandbox(t.Context(), id, api.ChangeSandbox{Visibility: ptr(api.All)}); err != nil {
		t.Fatal(err)
	}
	viewer := w.stdio(w.user("vera", api.RoleViewer), mcp.Options{})
	if s := viewer.says("read_file", args{"path": "f", "sandbox": id}); s != "hers\n" {
		t.Errorf("a viewer reads %q", s)
	}
	r := viewer.fails("exec", args{"command": "rm f", "sandbox": id}, "Denied: ", "The rule that denied it: ", "trying again changes nothing")
	if e, ok := r.Meta[mcp.MetaError].(map[string]any); !ok || e["kind"] != "denied" || e["rule"] == "" {
		t.Errorf("_meta: %v", r.Meta)
	}
	viewer.fails("write_file", args{"path": "f", "content": "x", "sandbox": id}, "Denied: ")
	viewer.fails("terminate_sandbox", args{"sandbox": id}, "Denied: ")
	viewer.fails("exec", args{"command": "true"}, "Denied: ") // it may not have a sandbox of its own either
	user := w.stdio(w.user("uwe", api.RoleUser), mcp.Options{})
	if s := user.sh("echo mine"); s != "mine\n" {
		t.Errorf("a user: %q", s)
	}
}

func ptr[T any](v T) *T { return &v }

// TestConversation: a conversation has one sandbox, made when it is needed, which hibernates or ends with it.
func TestConversation(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	if _, err := w.PutTemplate(ctx, "special", api.TemplateSpec{Env: map[string]string{"A": "special"}}); err != nil {
		t.Fatal(err)
	}
	until(t, "the template", func() bool { tm, err := w.Template(ctx, "special", 0); return err == nil && tm.State == api.BuildReady })
	state := func(id string) string {
		sb, err := w.Sandbox(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return sb.State
	}
	m := w.stdio(rootKey, mcp.Options{})
	if list, err := w.Sandboxes(ctx, client.SandboxFilter{}); err != nil || len(list.Sandboxes) != 0 {
		t.Fatalf("there is a sandbox before any is needed: %+v, %v", list, err)
	}
	ids := make(chan string, 4)
	for range 4 {
		go func() {
			r, err := m.CallTool(ctx, &sdk.CallToolParams{Name: "get_sandbox"})
			if err != nil {
				t.Error(err)
			}
			ids <- text(r.StructuredContent, "id")
		}()
	}
	id := <-ids
	for range 3 {
		if other := <-ids; other != id {
			t.Errorf("one conversation, two sandboxes: %s and %s", id, other)
		}
	}
	sb, err := w.Sandbox(ctx, id)
	if err != nil || sb.Labels[mcp.LabelClient] != "the-tests" || sb.Lease.Sleep != 24*60*60 {
		t.Errorf("labels %v, lease %+v, %v", sb.Labels, sb.Lease, err)
	}
	m.end()
	if s := state(id); s != api.StateHibernated {
		t.Errorf("after the conversation: %s", s)
	}
	m = w.stdio(rootKey, mcp.Options{Base: mcp.Base{Template: "special"}, OnEnd: api.End})
	if s := m.sh("echo $A > a; cat a"); s != "special\n" {
		t.Errorf("the template: %q", s)
	}
	id = text(m.does("get_sandbox", nil), "id")
	forked := w.stdio(rootKey, mcp.Options{Base: mcp.Base{Fork: id}})
	if s := forked.sh("cat a"); s != "special\n" || text(forked.does("get_sandbox", nil), "parent") != id {
		t.Errorf("a fork: %q", s)
	}
	snap, err := w.SnapshotSandbox(ctx, id, api.TakeSandboxSnapshot{})
	if err != nil {
		t.Fatal(err)
	}
	if s := w.http(rootKey, "?onEnd=end&snapshot="+snap.ID).sh("cat a"); s != "special\n" {
		t.Errorf("a snapshot: %q", s)
	}
	if s := w.http(rootKey, "?fork="+id).sh("cat a"); s != "special\n" {
		t.Errorf("a fork over HTTP: %q", s)
	}
	inside := w.http(rootKey, "?sandbox="+id)
	inside.sh("echo changed > a")
	inside.end()
	if s := m.sh("cat a"); s != "changed\n" {
		t.Errorf("the sandbox itself: %q", s)
	}
	m.end()
	if s := state(id); s != api.StateEnded {
		t.Errorf("after the conversation: %s", s)
	}
	if err := mcp.Serve(ctx, w.Client, strings.NewReader(""), nil, mcp.Options{Base: mcp.Base{Template: "a", Fork: "b"}}); err == nil {
		t.Error("a base of two things")
	}
}

// TestEnded: a sandbox that ends under a conversation is said to have, and the next call gets another.
func TestEnded(t *testing.T) {
	w := newWorld(t)
	m := w.stdio(rootKey, mcp.Options{})
	m.sh("echo x > f")
	id := text(m.does("get_sandbox", nil), "id")
	if err := w.EndSandbox(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	m.fails("read_file", args{"path": "f"}, id, "has ended", "gets a new one")
	m.fails("read_file", args{"path": "f"}, "no such file")
	if now := text(m.does("get_sandbox", nil), "id"); now == id {
		t.Error("it is the same")
	}
}

// TestAfterEOF: a client that says all and closes is answered all the same.
func TestAfterEOF(t *testing.T) {
	w := newWorld(t)
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"command":"sleep 0.3; echo answered"}}}`, ""}, "\n")
	var out strings.Builder
	begun := time.Now()
	if err := mcp.Serve(t.Context(), w.Client, strings.NewReader(in), &out, mcp.Options{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"id":2`) || !strings.Contains(out.String(), "answered") {
		t.Errorf("after %v: %s", time.Since(begun), out.String())
	}
}
