package rsync_test

import (
	"regexp"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

var commands = command.NewSet(nil)

var setup = []string{
	"d src", "f src/a.txt alpha\n", "f src/b.txt beta beta\n", "d src/sub", "f src/sub/c.c int main;\n", "x src/sub/run.sh #!/bin/sh\n", "d src/sub/deep", "f src/sub/deep/x.o object\n",
	"l src/link a.txt", "l src/bad /etc/passwd", "d src/empty", "d dst", "f dst/a.txt alpha\n", "f dst/old.txt old\n", "d dst/olddir", "f dst/olddir/y y\n", "f one.txt single\n", "f list a.txt\nsub/c.c\n",
	"f rules *.o\n# comment\nsub/deep\n", "d dst2", "f dst2/b.txt other content that is longer\n", "f newer.txt n\n",
}

// lines are compared with the real rsync, files and all.
var lines = []string{
	"rsync -a src/ out/", "rsync -a src out", "rsync -r src/ out", "rsync -av src/ out/", "rsync -av src out", "rsync -ai src/ out/", "rsync -aii src/ dst/", "rsync -avi src/ dst/", "rsync -a --delete src/ dst/", "rsync -av --delete src/ dst/",
	"rsync -ai --delete src/ dst/", "rsync -an --delete -v src/ dst/", "rsync -ain --delete src/ dst/", "rsync -ani src/ out/", "rsync one.txt copy.txt", "rsync one.txt dst", "rsync one.txt dst/", "rsync -t one.txt copy.txt", "rsync -p src/sub/run.sh out.sh", "rsync src out", "rsync -v src out",
	"rsync -d src/ out", "rsync -rl src/ out", "rsync -rt src/ out", "rsync -a src/a.txt src/b.txt dst2/", "rsync -ai src/a.txt src/b.txt dst2/", "rsync -aiu src/ dst2/", "rsync -aic src/ dst/", "rsync -ai --size-only src/ dst/", "rsync -aiI src/ dst/", "rsync -ai --existing src/ dst/",
	"rsync -ai --ignore-existing src/ dst/", "rsync -a --exclude '*.o' src/ out", "rsync -a --exclude sub src/ out", "rsync -a --exclude /sub/deep src/ out", "rsync -a --exclude deep/ src/ out", "rsync -a --include '*/' --include '*.c' --exclude '*' src/ out", "rsync -am --include '*/' --include '*.c' --exclude '*' src/ out",
	"rsync -a --exclude-from rules src/ out", "rsync -a -f '- *.o' src/ out", "rsync -a -f '-! */' src/ out", "rsync -a --exclude 'sub/**' src/ out", "rsync -a --exclude 'sub/***' src/ out", "rsync -a --exclude '[ab].txt' src/ out", "rsync -a --delete --exclude old.txt src/ dst/", "rsync -a --delete --delete-excluded --exclude b.txt src/ dst/",
	"rsync -a --files-from list src out", "rsync -aR src/sub/c.c out", "rsync -aR src/./sub/c.c out", "rsync -ab src/ dst2/", "rsync -a --suffix .orig -b src/ dst2/", "rsync -a --backup-dir ../bak -b src/ dst2/", "rsync -a --max-size 8 src/ out", "rsync -a --min-size 8 src/ out", "rsync -a --remove-source-files src/ out", "rsync -a nope out", "rsync -a nope src/ out",
	"rsync", "rsync --nope src out", "rsync -aL src/a.txt src/link out", "rsync -a --safe-links src/ out", "rsync -a --no-links src/ out", "rsync -a --no-whole-file src/ dst2/", "rsync -a --inplace src/ dst2/", "rsync -a --checksum src/ dst/", "rsync -aq src/ out", "rsync -a --out-format '%n %i' src/ out", "rsync -a src/sub/ src/empty/ out", "rsync -a src/a.txt src/a.txt out/",
	"rsync -a src/ one.txt", "rsync -a src/a.txt one.txt", "rsync -rC src/ out", "rsync -a --mkpath src/a.txt x/y/z/", "rsync -a src/a.txt x/y/z/", "rsync -a --delete src/ out", "rsync -av --delete-after src/ dst/", "rsync -a --max-delete 1 --delete src/ dst/", "rsync -avn src/ dst/", "rsync -rvi src/ dst/", "rsync -a --chmod-is-not u=r src out", "rsync -a src/sub dst/", "rsync -a src/sub/ dst",
}

var numbers = regexp.MustCompile(`(?m)^(sent .*|total size .*)$|code \d+\) at .*`)

func TestLocal(t *testing.T) {
	table := commandtest.Table{Setup: setup, Loose: true, Lines: []string{}}
	for _, l := range lines {
		if strings.Contains(l, "-v") || strings.Contains(l, "v ") || strings.Contains(l, "-avi") || strings.Contains(l, "vi ") || strings.Contains(l, "-avn") {
			continue // their summaries name byte counts; see TestVerbose
		}
		table.Lines = append(table.Lines, l)
	}
	commandtest.Run(t, commands, table)
}
