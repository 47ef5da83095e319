package git

import "testing"

func TestSubfolder(t *testing.T) {
	_, b := script(t, setupMerge+`
		m d/e
		w d/e/y y\n
		add .
		commit -qm y
		cd d
		w x changed\n
		w e/new n\n
		w ../f changed\n
		status
		status -s
		status --porcelain
		diff
		diff --stat
		diff --relative
		diff .
		diff --name-only
		add .
		status -s
		add -u ..
		status -s
		reset -q
		checkout x
		status -s
		checkout -- ../f
		log --oneline -- x
		log --oneline ../f
		ls-files
		ls-files --full-name
		ls-tree HEAD
		ls-tree --full-tree HEAD
		ls-tree -r --name-only HEAD
		show HEAD:./x
		show HEAD:d/x
		show HEAD:x
		rev-parse --show-prefix
		rev-parse --show-cdup
		rev-parse --git-dir
		grep y
		grep -l x ..
		mv x z
		status -s
		mv z ../z
		commit -qam moved
		show --stat
		rm ../z
		clean -n
		clean -f
		stash
		stash pop
		reset --hard
		restore ../f
		blame e/y
		rm -r e
		commit -m gone
		status
		branch -a
		diff HEAD~1 --stat -- e
		diff HEAD~1 HEAD -- ../d
		log --name-status --oneline -1
		log --pretty=format: --name-only -2
		log --pretty=format:%h --name-status -2
		log --pretty=tformat:%h --stat -2
		log --format= --numstat -1
		log -1 --format=%s%n%+b%-b
		log --oneline -3 --no-decorate
		log --decorate=full --oneline -2
		log --first-parent --oneline
		log --all --source --oneline
		log -n1 -p --stat
		log --stat=40 -1
		log --summary -2 --format=%h
		log --no-patch -1
		log --patch-with-stat -1
		log --max-count=1 --date=relative --format=%ar
		log -1 --date=raw
		log -1 --date=iso-strict
		log -1 --date=rfc
		log -1 --date=local
		log --abbrev-commit -1
		log --abbrev=12 --abbrev-commit --oneline -1
		log --grep=gone --grep=moved --oneline
		log --grep=GONE -i --oneline
		log --author=nobody --oneline
		log --committer=Mitter --oneline -1
		log --oneline HEAD~2..HEAD
		log --oneline ^HEAD~1 HEAD
		log --oneline HEAD --not HEAD~1
		log --oneline HEAD...topic
		log --oneline --left-right HEAD...topic
		log --boundary --oneline HEAD~1..
		log --oneline --date-order
		log --oneline --parents -2
		log --graph --format=%h%n%s -2
		log --cherry-pick --oneline HEAD...topic
		log --diff-filter=D --name-only --oneline
		shortlog -s -n HEAD
		diff topic..HEAD --name-status
		diff topic...HEAD --name-status
		diff --diff-filter=A topic HEAD --name-only
		diff --summary topic HEAD
		diff --raw topic HEAD
		diff -M100% topic HEAD --stat
		diff --compact-summary topic HEAD
		diff --check
		diff --cached --quiet
		diff nope
		diff -- nope
		diff HEAD nope
		show nope
		show --format=%H -s HEAD HEAD~1
		show --oneline -s
		show --stat --format=fuller
		show --name-status HEAD~1
		show HEAD^{tree}
		show :d/nope
		rev-parse HEAD:./
		rev-parse :/gone
		rev-parse HEAD^{/moved}
		rev-parse HEAD@{1}
		rev-parse main@{0}
		rev-parse @
		rev-parse HEAD~100
		rev-parse --symbolic --branches
		rev-parse --short=10 HEAD
		rev-parse --is-bare-repository --is-inside-git-dir
		rev-parse --abbrev-ref main
		name-rev HEAD
		branch --list t*
		branch new HEAD~1
		branch new
		branch -f new HEAD
		branch -d nope new
		branch -D main
		branch bad..name
		branch --show-current
		branch -v --no-abbrev
		branch --sort=-committerdate
		branch --format=%(refname:short)
		branch -m topic renamed
		branch -c renamed copy
		branch --no-merged
		branch -u nope
		branch -m
		switch nope
		switch -c fresh topic
		switch -c fresh renamed
		switch -
		switch --detach
		switch main
		checkout --orphan orphan
		status
		commit -m orphaned
		log --oneline
		checkout -f main
		checkout HEAD -- x
		checkout HEAD~1 -- e/y
		status -s
		checkout -b main
		checkout nope -- x
		checkout -q --detach HEAD~1
		commit --allow-empty -qm detached
		checkout main
		tag -l
		tag a b c
		tag bad..name
		tag -m annotated ann
		tag -n ann
		tag -f ann HEAD~1
		tag --points-at HEAD~1
		tag --contains HEAD~1
		tag -d nope
		tag --sort=-creatordate
		tag ann
		commit
		commit --amend -m x --author nobody
		commit --amend -m "with author" --author "Some One <one@x>"
		commit --amend --no-edit --date=2020-01-02T03:04:05+0000
		commit --allow-empty -F - <<< from stdin\n\nbody\n
		commit --allow-empty -m ""
		commit --allow-empty --allow-empty-message -m ""
		commit --allow-empty -s -m signed
		commit --allow-empty -m a -m b --trailer "Key: value"
		commit --allow-empty --fixup HEAD~1
		commit --allow-empty -C HEAD~2
		commit --dry-run
		commit --short
		commit nope -m x
		log -3 --format=%B
		reset --soft HEAD~1
		reset --mixed HEAD~1
		reset HEAD~1 -- x
		reset nope
		reset --hard nope
		reset --keep HEAD~1
		reset --merge ORIG_HEAD
		reflog -2
		config --get-regexp user.*
		config a.b c
		config --add a.b d
		config --get-all a.b
		config a.b
		config a.b e
		config --replace-all a.b e
		config --unset a.b
		config --unset a.b
		config --bool core.bare
		config --int a.n 2k
		config --list --local --name-only
		config --get nope.x
		config nope
		config --global user.name Glob
		config --global --list
		config user.name
		config --show-origin user.name
		config --type=bool a.c yes
		config a.c
		config sub.Sect.Key V
		config --remove-section a
		config --rename-section sub.Sect sub.New
		config --list --local
	`)
	_ = b
}
