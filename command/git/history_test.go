package git

import "testing"

func TestHistory(t *testing.T) {
	_, b := script(t, setupMerge+`
		w f 1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\n
		commit -qam "four" -m "Signed-off-by: X <x@y>"
		tag -a v1.0 -m v1.0
		w f 1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\neleven\n
		e GIT_AUTHOR_NAME=Other Person
		commit -qam "eleven"
		e GIT_AUTHOR_NAME=A U Thor
		mv f moved
		commit -qm "moved"
		tag light
		w moved 1\n2\n3\nfour\nfive\n6\n7\n8\n9\n10\neleven\n
		commit -qam "five"
		blame moved
		blame -L 2,5 moved
		blame -s moved
		blame -e moved
		blame --porcelain moved
		blame HEAD~2 -- f
		blame -l moved
		blame nope
		describe
		describe --tags
		describe --always HEAD~4
		describe --long v1.0
		describe --exact-match
		shortlog HEAD
		shortlog -sn HEAD
		shortlog -sne HEAD
		reflog
		reflog show main
		log -g --oneline
		log -g -2
		log --author=Other --oneline
		log --grep=moved --oneline
		log -S eleven --oneline
		log -G four --oneline
		log --since=2023-11-14T22:40:00Z --oneline
		log --until=2023-11-14T22:40:00Z --oneline
		log --format=%h|%p|%an|%ar-%cn|%s|%d|%D --abbrev=10 -2
		log --format=%C(red)%h%Creset%x09%aI%x09%cs
		log --format=format:%s
		log --pretty=short -2
		log --pretty=full -1
		log --pretty=raw -1
		log --pretty=reference -2
		log --oneline --name-status
		log --oneline --name-only -2
		log --oneline --numstat -3
		log --oneline --shortstat -3
		log --oneline --raw -3
		log --follow --oneline -- moved
		log --oneline -- f
		log --oneline f
		log --oneline --reverse
		log --oneline --skip=1 -n 2
		log --date=short -1
		log --date=iso -1
		log --date=unix --format=%ad -1
		log --date=format:%Y/%m/%d --format=%ad -1
		log nope
		log v1.0..
		log --oneline v1.0^..v1.0
		log --oneline --graph --decorate --all
		log --format=%(trailers) v1.0 -1
		log --format=%<(10)%an|%>(8)%h|%<(6,trunc)%s -3
		rev-parse v1.0^{} v1.0^{tree} HEAD~2 HEAD^
		rev-parse nope
		rev-parse --verify -q nope
		rev-parse --verify HEAD
		rev-list HEAD -- f
		rev-list --max-count=2 HEAD
		rev-list --parents HEAD
		rev-list --objects HEAD~4
		diff v1.0 HEAD --stat
		diff v1.0..HEAD
		diff HEAD~3 -M --summary
		diff --no-renames HEAD~2 HEAD --name-status
		diff -U0 HEAD~1
		diff -R HEAD~1
		diff --numstat HEAD~3
		diff --shortstat HEAD~3
		diff --exit-code HEAD~1 --quiet
		diff HEAD:moved HEAD~2:f
		w g g  g\n
		diff -w
		diff -b
		check-ignore nope
		cat-file -p v1.0
		cat-file -e nope
		cat-file --batch-check <<< HEAD\nHEAD:moved\nnope\n
		tag -l v*
		tag -d light
		branch --contains v1.0
		branch --merged
		branch -vv
		show v1.0 --stat
		show HEAD~1 --name-only --format=%s
		show -s --format=%ct
		ls-files --others
		ls-files -m
	`)
	fsck(t, b, "/task")
}

func TestIgnore(t *testing.T) {
	script(t, `
		init -q -b main
		w .gitignore *.o\n/build/\n!keep.o\ndoc/*.txt\n**/tmp\n
		m build
		w build/x x
		w a.o x
		w keep.o x
		m doc/sub
		w doc/a.txt x
		w doc/sub/b.txt x
		m src/tmp
		w src/tmp/x x
		w src/a.c x
		status
		status --ignored
		status -s -uall
		status -s --ignored
		check-ignore -v a.o build/x keep.o doc/a.txt doc/sub/b.txt src/tmp/x
		add a.o
		add -f a.o
		add .
		status -s
		commit -qm x
		clean -n
		clean -nd
		clean -ndx
		clean -f
		clean -fdX
		status --ignored -s
		ls-files -o --exclude-standard
		ls-files -oi --exclude-standard
		ls-files
		rm a.o --cached
		rm -r doc
		rm keep.o
		w src/a.c changed
		rm src/a.c
		rm -f src/a.c
		rm nope
		status
		mv .gitignore src
		mv nope x
	`)
}
