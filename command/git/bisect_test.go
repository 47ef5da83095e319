package git

import "testing"

func TestBisect(t *testing.T) {
	script(t, `
		init -q -b main
		w f 0\n
		add f
		commit -qm c0
		tag c0
		w f 1\n
		commit -qam c1
		w f 2\n
		commit -qam c2
		w f 3\n
		commit -qam c3
		w f 4\n
		commit -qam c4
		w f 5\n
		commit -qam c5
		w f 6\n
		commit -qam c6
		bisect bad
		bisect log
		bisect start
		bisect bad
		bisect good c0
		status
		bisect good
		bisect bad
		bisect log
		bisect bad
		bisect reset
		status
		bisect start HEAD c0
		bisect skip
		bisect good
		bisect reset
		bisect reset
	`)
}

func TestWorktree(t *testing.T) {
	_, b := script(t, `
		m a
		cd a
		init -q -b main
		w f 0\n
		add f
		commit -qm c0
		branch other
		worktree add ../b
		worktree list
		worktree add ../c other
		worktree add ../d other
		worktree add -b new ../e HEAD
		worktree add --detach ../g
		worktree list
		worktree list --porcelain
		branch
		checkout other
		cd c
		status
		w f 1\n
		commit -qam c1
		log --oneline
		rev-parse --git-common-dir --is-inside-work-tree
		cd a
		log --oneline other
		worktree remove ../b
		worktree remove ../nope
		w ../e/x x
		worktree remove ../e
		worktree remove --force ../e
		branch -D other
		worktree list
		d ../g
		worktree prune
		worktree list
	`)
	fsck(t, b, "/task/a")
}
