package web_test

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"agentrun.dev/command/commandtest"
)

// TestWget compares output, files and statuses with GNU wget; its log names times, so of that only whether there is one.
func TestWget(t *testing.T) {
	server := httptest.NewServer(handler())
	defer server.Close()
	table := commandtest.Table{Services: open(), Loose: true,
		Setup: []string{"f data.txt line one\nline two\n", "f file.txt 0123", "f list.txt " + server.URL + "/raw\n" + server.URL + "/chunks\n",
			"f jar.txt # HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tin\tjar\n"}}
	for _, l := range []string{
		"-q URL/raw", "URL/raw", "-nv URL/raw", "-q URL/file.txt", "-q -O - URL/echo", "-qO- URL/echo?a=1", "-q -O out.txt URL/echo URL/raw", "-q -c URL/file.txt", "-q -nc URL/file.txt", "-q -P dir/sub URL/raw",
		"-q --header 'X-Custom: 1' --header 'Accept: x/y' -O- URL/echo", "-q -U agent -O- URL/echo", "-q --referer http://r/ -O- URL/echo", "-q --post-data a=1 -O- URL/echo", "-q --post-file data.txt -O- URL/echo",
		"-q --method PUT --body-data x -O- URL/echo", "-q --method DELETE -O- URL/echo", "-q -O- URL/redirect/2", "-q URL/redirect/1", "-q --trust-server-names URL/redirect/1", "-q --max-redirect 1 -O- URL/redirect/3", "-q --max-redirect 0 URL/redirect/3",
		"-q URL/status/404", "URL/status/404", "-nv URL/status/404", "-q --content-on-error -O- URL/status/404", "-q URL/status/204", "-q --spider URL/raw", "--spider URL/raw", "--spider URL/status/404", "-q -S -O- URL/raw",
		"-q --content-disposition URL/attach", "-q URL/attach", "-q --save-headers -O- URL/raw", "-q -i list.txt", "-q -i none.txt", "-q --load-cookies jar.txt -O- URL/echo", "-q URL/chunks -O c.txt", "-q -N URL/raw", "-q http://127.0.0.1:1/", "http://127.0.0.1:1/",
		"", "--foo", "-q foo://x", "-q URL/", "-q 'URL/up/a?b=c&d' ", "-q -O /nonexistent/x URL/raw", "-q --user u --password p --auth-no-challenge -O- URL/echo", "-o log.tmp -O /dev/null -q URL/raw", "-q -nd -nH URL/raw", "-q URL/raw URL/raw", "-q --tries 1 URL/short", "-q -t 1 URL/empty",
	} {
		table.Lines = append(table.Lines, strings.TrimSpace("wget "+strings.ReplaceAll(l, "URL", server.URL)))
	}
	commandtest.Run(t, commands, table)
}

var moments = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\([0-9.]+ [KMG]?B/s\)| *[0-9.]+[KMG]?=[0-9.]+s`)

// TestWgetLog checks the wording of the log.
func TestWgetLog(t *testing.T) {
	server := httptest.NewServer(handler())
	defer server.Close()
	table := commandtest.Table{Services: open()}
	r := table.Sandbox(t, commands, []string{"wget", server.URL + "/file.txt"}, "")
	host := strings.TrimPrefix(server.URL, "http://")
	want := "--T--  URL/file.txt\nConnecting to " + host + "... connected.\nHTTP request sent, awaiting response... 200 OK\nLength: 17 [text/plain]\n" +
		"Saving to: ‘file.txt’\n\n     0K                                                       100%T\n\nT T - ‘file.txt’ saved [17/17]\n\n"
	if got := moments.ReplaceAllString(strings.ReplaceAll(r.Stderr, server.URL, "URL"), "T"); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
