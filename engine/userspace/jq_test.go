package userspace

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"agentrun.dev/proc"
	"agentrun.dev/wasm/guests"
)

// TestJq runs jq itself: what other implementations get wrong, and its bounds.
func TestJq(t *testing.T) {
	if !guests.Has("jq.wasm") {
		t.Skip("NO GUESTS HERE: jq.wasm is missing; 'make guests' builds it, and 'make test' does so first")
	}
	g := NewGuests(GuestOptions{CacheDir: t.TempDir()})
	defer g.Close()
	s, err := New(context.Background(), Options{Commands: g, Limits: proc.Limits{SandboxMemory: 256 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	for _, tc := range []struct{ in, args, want string }{
		{`["b","a"]`, `-c 'map({(.):1})|add'`, "{\"b\":1,\"a\":1}\n"},
		{`{"z":1,"a":2}`, `-c 'to_entries|reverse|from_entries'`, "{\"a\":2,\"z\":1}\n"},
		{`{"b":1}`, `-c '{"a":2} + .'`, "{\"a\":2,\"b\":1}\n"},
		{`{"b":1,"a":2}`, `-c 'keys,keys_unsorted,tojson'`, "[\"a\",\"b\"]\n[\"b\",\"a\"]\n\"{\\\"b\\\":1,\\\"a\\\":2}\"\n"},
		{`{"b":1,"a":2}`, `-S -c .`, "{\"a\":2,\"b\":1}\n"},
		{`[100000000000000000000,1.10]`, `-c .`, "[100000000000000000000,1.10]\n"},
		{`null`, `-cn '$ARGS' --arg k v --args a b`, "{\"positional\":[\"a\",\"b\"],\"named\":{\"k\":\"v\"}}\n"},
		{`{"a":[1,{"b":2}]}`, `--stream -c .`, "[[\"a\",0],1]\n[[\"a\",1,\"b\"],2]\n[[\"a\",1,\"b\"]]\n[[\"a\",1]]\n[[\"a\"]]\n"},
		{`"aXbx"`, `-r 'gsub("x";"-";"i"), @base64, (.|test("^A";"i"))'`, "a-b-\nYVhieA==\ntrue\n"},
		{`1`, `'if . == 1 then "one" end, (try error("x") catch .), ltrimstr(1), ([limit(2;repeat(1))]|length), (0|todate)'`, "\"one\"\n\"x\"\n1\n2\n\"1970-01-01T00:00:00Z\"\n"},
		{`{"a":1}`, `--indent 1 . `, "{\n \"a\": 1\n}\n"},
		{`{`, `. ; echo $?`, "5\n"},
		{`1`, `'.[' ; echo $?`, "3\n"},
		{`1`, `-e 'false' ; echo $?`, "false\n1\n"},
		{`1`, `. /tmp/nothing; echo $?`, "2\n"},
		{`1`, `-n 'input_filename, $ENV.HOME, env.SECRET'`, "null\n\"/home/user\"\nnull\n"},
		{`1`, `-n '[range(1e10)]|length' || echo ended`, "ended\n"},
		{`1`, `-n '"a"|until(false;.+.)|length' || echo ended`, "ended\n"},
		{`1`, `-n 'def f: f; f' & p=$!; sleep 0.2; kill $p; wait $p; echo $?`, "143\n"},
	} {
		var out, errOut bytes.Buffer
		status, err := s.Run(context.Background(), Cmd{Args: []string{"bash", "-c", "jq " + tc.args}, Stdin: strings.NewReader(tc.in), Stdout: &out, Stderr: &errOut})
		if err != nil || out.String() != tc.want {
			t.Errorf("jq %s\ngot  %q\nwant %q\nstatus %d, %v, %.300s", tc.args, out.String(), tc.want, status, err, errOut.String())
		}
	}
}
