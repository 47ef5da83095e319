package git

import (
	"path"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// writeIndexQuietly stores what was learnt about files; it doesn't matter if that fails.
func (r *repo) writeIndexQuietly() {
	if _, err := r.t.Lstat(r.indexFile() + ".lock"); err == nil || !r.index().changed || r.t.Access(r.dir, 2) != nil {
		return
	}
	r.writeIndex()
}

// initOptions say what a new repository is like.
type initOptions struct {
	bare, quiet bool
	branch      string
}

func (r *repo) cmdInit(args []string) int {
	var io initOptions
	o := r.options("init", args)
	separate := ""
	for o.next() {
		switch o.name {
		case "-q", "--quiet":
			io.quiet = true
		case "--bare":
			io.bare = true
		case "-b", "--initial-branch":
			io.branch = o.arg()
			if !validBranch(io.branch) {
				r.fatal("invalid initial branch name: '%s'", io.branch)
			}
		case "--template", "--shared":
			if o.name == "--template" {
				o.arg()
			}
		case "--separate-git-dir":
			separate = r.abs(o.arg())
		case "--object-format":
			if f := o.arg(); f != "sha1" {
				r.fatal("unknown hash algorithm '%s'", f)
			}
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) > 1 {
		r.die(129, "usage: git init [-q | --quiet] [--bare] [--template=<template-directory>] [--separate-git-dir <git-dir>] [--object-format=<format>] [-b <branch-name> | --initial-branch=<branch-name>] [--shared[=<permissions>]] [<directory>]")
	}
	dir := r.t.Getwd()
	if len(rest) == 1 {
		dir = r.abs(rest[0])
		if err := r.mkdirAll(dir); err != nil {
			r.fatal("cannot mkdir %s: %s", rest[0], strerror(err))
		}
	}
	git := path.Join(dir, ".git")
	if d := r.t.Getenv("GIT_DIR"); d != "" {
		git = r.abs(d)
	} else if io.bare || r.bareInit {
		io.bare, git = true, dir
	} else if d := r.dotGit(git); d != "" {
		git = d
	}
	if separate != "" {
		if err := r.t.Mkdir(dir, 0o777); err == nil || true {
			r.must(r.writeFile(git, []byte("gitdir: "+separate+"\n"), 0o666))
		}
		git = separate
	}
	again := r.initAt(git, io)
	if !io.quiet {
		what := "Initialized empty"
		if again {
			what = "Reinitialized existing"
		}
		r.printf("%s Git repository in %s/\n", what, strings.TrimSuffix(git, "/"))
	}
	return 0
}

// must ends the command after an error that only a full or read-only filesystem explains.
func (r *repo) must(err error) {
	if err != nil {
		r.fatal("%s", strerror(err))
	}
}

const branchHint = `hint: Using 'master' as the name for the initial branch. This default branch name
hint: is subject to change. To configure the initial branch name to use in all
hint: of your new repositories, which will suppress this warning, call:
hint: 
hint: 	git config --global init.defaultBranch <name>
hint: 
hint: Names commonly chosen instead of 'master' are 'main', 'trunk' and
hint: 'development'. The just-created branch can be renamed via this command:
hint: 
hint: 	git branch -m <name>`

// defaultBranch is the name of a new repository's branch.
func (r *repo) defaultBranch(quiet bool) string {
	if b := r.t.Getenv("GIT_TEST_DEFAULT_INITIAL_BRANCH_NAME"); b != "" {
		return b
	}
	if b, ok := r.config().get("init.defaultbranch"); ok {
		if !validBranch(b) {
			r.fatal("invalid branch name: init.defaultBranch = %s", b)
		}
		return b
	}
	if !quiet {
		r.say("%s", branchHint)
	}
	return "master"
}

// initAt makes a repository's folder, or adds what one lacks; again tells that there was one.
func (r *repo) initAt(git string, o initOptions) (again bool) {
	again = r.isGitDir(git)
	r.dir, r.common, r.conf = "", "", nil
	branch := o.branch
	if !again && branch == "" {
		branch = r.defaultBranch(o.quiet)
	} else if again && branch != "" {
		r.say("warning: re-init: ignored --initial-branch=%s", branch)
	}
	for _, d := range []string{"", "/branches", "/hooks", "/info", "/objects/info", "/objects/pack", "/refs/heads", "/refs/tags"} {
		if err := r.mkdirAll(git + d); err != nil {
			r.fatal("cannot mkdir %s: %s", git+d, strerror(err))
		}
	}
	r.dir, r.common, r.packed = git, git, nil
	put := func(name, text string) {
		if _, err := r.t.Lstat(git + "/" + name); err != nil {
			r.must(r.writeFile(git+"/"+name, []byte(text), 0o666))
		}
	}
	if !again {
		put("HEAD", "ref: refs/heads/"+branch+"\n")
	}
	put("description", "Unnamed repository; edit this file 'description' to name the repository.\n")
	put("info/exclude", "# git ls-files --others --exclude-from=.git/info/exclude\n# Lines that start with '#' are comments.\n# For a project mostly in C, the following would be a good set of\n# exclude patterns (uncomment them if you want to use them):\n# *.[oa]\n# *~\n")
	bare, logs := "false", "\tlogallrefupdates = true\n"
	if o.bare {
		bare, logs = "true", ""
	}
	put("config", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = "+bare+"\n"+logs)
	r.conf = nil
	return again
}
