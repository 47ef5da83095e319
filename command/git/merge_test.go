package git

import "testing"

const setupMerge = `
		init -q -b main
		w f 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n
		w g g\n
		m d
		w d/x x\nxx\nxxx\nxxxx\n
		add .
		commit -qm base
		branch topic
`

func TestMergeClean(t *testing.T) {
	_, b := script(t, setupMerge+`
		w f 1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\n
		commit -qam ours
		checkout -q topic
		w f 1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n
		w n new\n
		add .
		commit -qm theirs
		checkout main
		merge topic
		log --graph --oneline
		log --graph
		log --graph --stat
		show
		show --stat
		status
		merge topic
		checkout -b ff HEAD^
		merge main
		reset --hard HEAD^
		merge --no-ff -m "no ff" main
		log --oneline --graph --all --decorate
		reset --hard HEAD^
		merge --squash topic
		status
		commit -m squashed
		log --oneline
		merge --ff-only topic
		merge nope
		rev-parse HEAD
		rev-parse --abbrev-ref HEAD
		rev-parse --short HEAD
		rev-parse --show-toplevel
		rev-parse --git-dir
		rev-parse --is-inside-work-tree
		rev-list --count HEAD
		rev-list --all
		rev-list main..topic
		rev-list topic...main --left-right
		merge-base main topic
		log main..ff --oneline
		cat-file -p HEAD
		cat-file -t HEAD^{tree}
		cat-file -s HEAD:f
		ls-tree HEAD
		ls-tree -r HEAD
		ls-tree -r --name-only HEAD d/
		ls-tree -l HEAD
		ls-files
		ls-files -s
		show-ref
		symbolic-ref HEAD
		hash-object f
		for-each-ref
		for-each-ref --format=%(refname:short)%(objectname:short)
		r .git/HEAD
	`)
	fsck(t, b, "/task")
}

func TestMergeConflict(t *testing.T) {
	_, b := script(t, setupMerge+`
		w f 1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\n
		w a add\nours\n
		add .
		rm -q g
		commit -qam ours
		checkout -q topic
		w f 1\n2\n3\nvier\n5\n6\n7\n8\n9\nten\n
		w g changed\n
		w a add\ntheirs\n
		add .
		commit -qm theirs
		checkout -q main
		merge topic
		status
		status -s
		status --porcelain=v2
		r f
		r a
		r .git/MERGE_MSG
		r .git/MERGE_HEAD
		diff
		diff --stat
		diff --name-only
		diff --name-status
		diff --ours
		ls-files -u
		ls-files -s
		commit -m x
		add f
		status
		merge --abort
		status
		r f
		merge topic
		checkout --theirs f
		r f
		checkout --ours a
		checkout -m a
		r a
		w f solved\n
		w a solved\n
		add -A
		status
		commit -m merged
		show
		show -m --stat
		log --cc -1
		log -c -1
		log -p --first-parent -2
		log --oneline --graph
		log --merges --oneline
		log --no-merges --oneline
	`)
	fsck(t, b, "/task")
}

func TestMergeRenames(t *testing.T) {
	_, b := script(t, setupMerge+`
		mv f ff
		commit -qm renamed
		checkout -q topic
		w f 1\n2\n3\nvier\n5\n6\n7\n8\n9\nten\n
		mv d e
		commit -qam theirs
		checkout -q main
		merge topic
		r ff
		show --stat -M
		log --stat -2
		checkout -q -b other HEAD^
		mv ff other
		w other 1\n2\ndrei\n4\n5\n6\n7\n8\n9\n10\n
		commit -qam "other name"
		checkout -q -b third topic
		mv f third
		commit -qm third
		merge other
		status
		status -s
		ls-files -s
		diff
	`)
	_ = b
}

func TestCrissCross(t *testing.T) {
	script(t, setupMerge+`
		w f 1\n2\nA\n4\n5\n6\n7\n8\n9\n10\n
		commit -qam a1
		checkout -q topic
		w f 1\n2\n3\n4\n5\n6\n7\nB\n9\n10\n
		commit -qam b1
		checkout -q -b m1 main
		merge -q topic
		checkout -q -b m2 topic
		merge -q main
		w f 1\n2\nA\n4\n5\n6\n7\nB\n9\nm2\n
		commit -qam m2more
		checkout -q m1
		w f m1\n2\nA\n4\n5\n6\n7\nB\n9\n10\n
		commit -qam m1more
		merge m2
		log --graph --oneline --all
		log --graph --format=%s --date-order
		r f
	`)
}

func TestPicks(t *testing.T) {
	_, b := script(t, setupMerge+`
		w f 1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\n
		commit -qam "four in words"
		w f 1\n2\n3\nfour\n5\n6\n7\n8\nnine\n10\n
		commit -qam "nine in words" -m "with a body"
		checkout -q topic
		cherry-pick main
		cherry-pick -x main~1
		log -2
		status
		revert --no-edit HEAD
		show
		cherry-pick main~1
		reset -q --hard HEAD~1
		w f 1\n2\n3\nvier\n5\n6\n7\n8\n9\n10\n
		commit -qam vier
		cherry-pick main~1
		status
		r f
		diff
		cherry-pick --abort
		status
		cherry-pick main~1
		w f 1\n2\n3\n4444\n5\n6\n7\n8\n9\n10\n
		add f
		status
		cherry-pick --continue
		log -1 --format=%B
		revert HEAD~1
		revert --abort
		cherry-pick main~2..main
		status
		cherry-pick --skip
		log --oneline
		cherry-pick nope
		revert -n HEAD
		status -s
	`)
	fsck(t, b, "/task")
}
