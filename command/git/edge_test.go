package git

import "testing"

func TestEdges(t *testing.T) {
	script(t, `
		--version
		version
		status
		log
		add x
		-C nope status
		--git-dir=nope status
		rev-parse --git-dir
		config user.name
		config --global a.b c
		init -q -b main r
		init -q --bare bare.git
		init -b main r
		init -b other r
		init -b bad..name x
		? init a b c
		-C r status
		-C bare.git status
		-C bare.git log
		-C bare.git rev-parse --is-bare-repository
		cd r
		log
		diff HEAD
		show
		branch
		branch x
		checkout x
		checkout -b x
		branch
		switch -c main
		rev-parse HEAD
		rev-list HEAD
		reset --hard
		reset HEAD
		stash
		stash list
		merge x
		rebase x
		tag v1
		cherry-pick x
		blame x
		describe
		ls-files
		commit -m x
		commit --allow-empty -m first
		? commit --frob
		? commit -x
		? status --frob
		log --frob
		diff --frob
		? add --frob
		? checkout --frob
		? merge --frob
		w a 1\n
		w "b 1\n
		w sp\0 1\n
		add -v a
		add -n .
		add -A
		rm --cached -r .
		add --intent-to-add a
		status
		status -s
		diff
		add .
		commit -m "a and b"
		show --stat
		l link a
		add link
		x a
		status
		diff
		diff --cached
		commit -am "mode and link"
		show
		d link
		w link text\n
		status -s
		diff
		commit -qam typechange
		show --stat --summary
		diff HEAD~1 --name-status
		w a x
		diff
		commit -qam "no newline"
		w a x\n
		diff
		commit -qam "newline"
		m big
		w big/file 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\nfunc x() {\n22\n23\n24\n25\n26\n27\n28\n}\n
		add .
		commit -qm big
		w big/file 1\ntwo\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\nfunc x() {\n22\n23\n24\n25\n26\ntwentyseven\n28\n}\n
		diff
		diff -U1
		diff -U0
		diff --stat
		diff --shortstat
		diff --inter-hunk-context=30
		diff --no-prefix
		diff --src-prefix=x/ --dst-prefix=y/
		diff --full-index
		diff --abbrev=10
		diff -s
		diff --quiet
		diff --exit-code --stat
		diff -S two --name-only
		diff --output-indicator-new=> 
		diff a big/file
		diff --no-index a big/file
		diff --no-index a nope
		commit -qam change
		m copy
		w copy/file 1\ntwo\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\nfunc x() {\n22\n23\n24\n25\n26\ntwentyseven\n28\nmore\n
		rm -q big/file
		add .
		status
		status --no-renames
		commit -m rename
		log --stat -M -1
		log --oneline --follow copy/file
		show -M90 --stat
		show --no-renames --stat
		rm a
		status
		commit -m "removed a"
		checkout HEAD~1 a
		status -s
		restore --source=HEAD~2 --staged --worktree a
		restore --staged nope
		restore
		clean
		clean -fd
		? mv a
		mv a nope/x
		gc -q
		reflog expire --expire=now --all
		gc --prune=now -q
		fsck
		log --oneline
		prune
	`)
}
