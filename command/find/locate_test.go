package find_test

import (
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
)

func TestLocate(t *testing.T) {
	set := command.NewSet(map[string]proc.Program{"sh": shell.New(true)})
	table := commandtest.Table{Setup: []string{"d d", "f d/alpha.txt x", "f d/Beta.txt x", "d d/skip", "f d/skip/alpha.c x", "f d/new\nline x", "f bad nothing", "f cut \x00LOCATE02\x00\x00/a", "f wrong \x00LOCATE02\x00\x05/a\x00", "f none \x00LOCATE02\x00"}}
	for line, want := range map[string]string{
		"locate alpha": "/task/d/alpha.txt\n/task/d/skip/alpha.c\n",
		"updatedb -o db -U /task/d && locate -d db alpha":                                             "/task/d/alpha.txt\n/task/d/skip/alpha.c\n",
		"updatedb -o db -U /task/d -e /task/d/skip && locate -d db alpha":                             "/task/d/alpha.txt\n",
		"updatedb -o db -U /task/d -n skip && locate -d db c":                                         "",
		"updatedb -o db -U /task/d && rm d/alpha.txt && locate -d db -e alpha; locate -d db -E alpha": "/task/d/skip/alpha.c\n/task/d/alpha.txt\n",
		"locate -i BETA":             "/task/d/Beta.txt\n",
		"locate -c txt":              "2\n",
		"locate -l 1 txt":            "/task/d/Beta.txt\n",
		"locate '*.c'":               "/task/d/skip/alpha.c\n",
		"locate -b 'alpha.?'":        "/task/d/skip/alpha.c\n",
		"locate -A alpha skip":       "/task/d/skip/alpha.c\n",
		"locate -r 'alpha\\.t.t$'":   "/task/d/alpha.txt\n",
		"locate -0 Beta":             "/task/d/Beta.txt\x00",
		"locate nosuchfile; echo $?": "1\n",
		"locate -d bad x; locate -d cut x; locate -d wrong x; locate -qd bad x; locate -d none x; echo $?": "1\nlocate: bad: not a database of locate's\nlocate: cut: not a database of locate's\nlocate: wrong: not a database of locate's\n",
		"locate -d nope x": "locate: nope: No such file or directory\n",
		"locate":           "locate: missing operand\nTry 'locate --help' for more information.\n",
		"HOME=/task updatedb; HOME=/task locate -S | head -1 | cut -c1-15; ls -d .cache/locatedb /var/cache/locate/locatedb 2>/dev/null | wc -l": "All Filenames: \n1\n",
		"updatedb x":         "updatedb: extra operand 'x'\nTry 'updatedb --help' for more information.\n",
		"updatedb -o /no/db": "updatedb: cannot open /no/db: No such file or directory\n",
	} {
		r := table.Sandbox(t, set, []string{"sh", "-c", line}, "")
		if got := strings.NewReplacer("‘", "'", "’", "'").Replace(r.Stdout + r.Stderr); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
