package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestDu(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup:  []string{"d d", "f d/a 0123456789", "f d/b x", "d d/s", "f d/s/c hello\n", "f d/s/e ", "l d/l a", "h h d/a", "f z zz", "f x *.c\nb\n", "f n d/a\x00z\x00", "l dl d", "d q"},
		Sorted: true,
		Lines:  []string{"du d", "du -l", "du -a d", "du -s d", "du -s d z", "du -c d z", "du -sc d/a z", "du z", "du -h d", "du -sh d", "du --si d", "du -b z", "du -ab d", "du -k d", "du -m d", "du -B 1 d", "du -BK d", "du -BM d", "du -B1K d", "du -B512 d", "du -BkB d", "du -Bx d", "du --block-size=x d", "du --block-size=2M d", "du -d 0 d", "du -d 1 -a d", "du -d x d", "du --max-depth=1 d", "du -s -d 0 d", "du -s -d 1 d", "du -sa d", "du -S d", "du -aS d", "du -l d", "du -al d", "du -L d", "du dl", "du -D dl", "du -H dl", "du dl/", "du nope", "du nope z", "du -0 d", "du --inodes d", "du --inodes -a d", "du --exclude=a -a d", "du --exclude='*/s' d", "du --exclude=d d", "du -a -X x d", "du -X nope d", "du -t 5K d", "du -t -5K -a d", "du --threshold=x d", "du --files0-from=n", "du --files0-from=n z", "du --files0-from=nope", "du --apparent-size -a d/b", "du -x d", "du d d", "du d/s d", "du d d/s", "du d/a h", "du -l d/a h", "du --time d/a", "du --time=x d", "du --time --time-style=iso z", "du --time --time-style=+%Y z"},
	})
}
