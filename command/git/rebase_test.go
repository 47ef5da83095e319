package git

import "testing"

func TestStash(t *testing.T) {
	_, b := script(t, setupMerge+`
		stash list
		stash
		w f changed\n
		w new new\n
		stash
		status -s
		stash list
		stash show
		stash show -p
		stash pop
		status -s
		add f
		a f more\n
		stash push -m "my message"
		stash list
		stash apply --index
		status
		reset -q --hard
		stash pop
		stash push -u
		status -s
		stash pop
		stash push f
		status -s
		w f conflict\n
		commit -qam conflict
		stash pop
		status
		r f
		checkout -q --theirs f
		reset -q
		stash drop
		stash drop
		stash pop
		log --oneline --all
	`)
	fsck(t, b, "/task")
}

func TestRebase(t *testing.T) {
	_, b := script(t, setupMerge+`
		w f 1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\n
		commit -qam main1
		w g gg\n
		commit -qam main2
		checkout -q topic
		w n n\n
		add n
		commit -qm topic1
		w d/x y\n
		commit -qam topic2
		rebase main
		log --graph --oneline --all
		log -2 --format=fuller
		status
		rebase main
		checkout -q -b t2 main~1
		w g other\n
		commit -qam t2a
		w h h\n
		add h
		commit -qm t2b
		rebase main
		status
		status -s
		branch
		diff
		r g
		rebase --abort
		status
		rebase main
		w g solved\n
		add g
		e GIT_EDITOR=true
		status
		rebase --continue
		log --oneline
		reflog -3
		rebase --onto main~2 main
		log --oneline
		rebase main~1
		rebase --skip
		rebase --quit
	`)
	fsck(t, b, "/task")
}
