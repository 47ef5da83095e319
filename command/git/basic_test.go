package git

import "testing"

func TestBasics(t *testing.T) {
	_, b := script(t, `
		status
		init -b main
		init
		status
		w a one\ntwo\nthree\n
		status
		status -s
		add a
		status
		commit -m first
		log
		status
		a a four\n
		m dir/sub
		w dir/sub/b hello\n
		w c.txt x\n
		status
		status -s
		status -sb
		status --porcelain=v2 --branch
		diff
		diff --stat
		add -A
		status
		diff --cached
		diff --cached --stat
		diff HEAD --name-status
		commit -m "second commit" -m "body text"
		log --oneline
		log --stat
		log -p
		log -1 --format=fuller
		log --format=%H%n%an%n%ae%n%ad%n%s%n%b
		log --oneline --decorate
		log --graph
		log --graph --oneline
		show
		show HEAD~1
		show --stat --oneline
		show HEAD:a
		show HEAD:dir
		branch
		branch topic
		branch -v
		checkout topic
		status
		checkout -b other
		w a changed\n
		checkout main
		status
		checkout -- a
		checkout a
		switch topic
		switch -c new
		switch -
		log --all --oneline
		commit -m nothing
		commit --allow-empty -m empty
		commit --amend -m "empty, amended"
		checkout HEAD~1
		status
		branch
		switch main
		branch -d new
		branch -D topic
		branch -d nope
		branch -m main trunk
		branch
		rm c.txt
		status
		reset
		status -s
		reset --hard
		mv a b
		status
		commit -qm renamed
		show --stat
		log --follow --oneline b
		diff HEAD~1
		tag v1
		tag -a v2 -m "version two"
		tag
		tag -n
		show v2
		log --oneline --decorate
		restore --staged b
		checkout nope
		add nope
		config user.name
		config user.name X
		config user.name
		config --list
		commit --amend --no-edit --reset-author
		log -2
	`)
	fsck(t, b, "/task")
}
