package git

import "testing"

func TestPatches(t *testing.T) {
	_, b := script(t, setupMerge+`
		w f 1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\n
		w new n\n
		add .
		commit -qm "four: in words, which is a rather long subject that has to be folded somewhere" -m "with a body"
		rm -q g
		commit -qm "without g"
		mv f ff
		w ff 1\n2\n3\nfour\n5\n6\n7\n8\n9\nten\n
		add .
		commit -qm "renamed"
		format-patch -2
		format-patch --stdout HEAD~2
		format-patch topic -o ../out
		format-patch -1 --stdout HEAD~2
		checkout -q topic
		am ../out/0001-four-in-words-which-is-a-rather-long-subject-that-ha.patch
		log -1 --format=fuller
		am ../out/0002-without-g.patch ../out/0003-renamed.patch
		log --oneline
		am ../out/0002-without-g.patch
		status
		am --abort
		status
		reset -q --hard topic~3
		w f 1\n2\n3\nvier\n5\n6\n7\n8\n9\n10\n
		commit -qam vier
		apply --check ../out/0001-four-in-words-which-is-a-rather-long-subject-that-ha.patch
		apply --stat ../out/0001-four-in-words-which-is-a-rather-long-subject-that-ha.patch
		apply --numstat --summary ../out/0001-four-in-words-which-is-a-rather-long-subject-that-ha.patch
		apply ../out/0002-without-g.patch
		status -s
		apply -R ../out/0002-without-g.patch
		status -s
		apply --index ../out/0002-without-g.patch
		status -s
		apply <<< --- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n
		diff
		apply <<< garbage\n
		apply <<< --- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n
		apply <<< --- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+0\n
		apply <<< diff --git a/.git/hooks/x b/.git/hooks/x\nnew file mode 100755\n--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+0\n
		apply nope
	`)
	fsck(t, b, "/task")
}
