package git

import (
	"strings"
	"unicode/utf8"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// verb is a subcommand. outside is set for those that need no repository.
type verb struct {
	name    string
	run     func(r *repo, args []string) int
	outside bool
	help    string
}

// verbs returns all subcommands.
func verbs() []verb {
	return []verb{
		{"add", (*repo).cmdAdd, false, "Add file contents to the index"},
		{"branch", (*repo).cmdBranch, false, "List, create, or delete branches"},
		{"checkout", (*repo).cmdCheckout, false, "Switch branches or restore working tree files"},
		{"clean", (*repo).cmdClean, false, "Remove untracked files from the working tree"},
		{"commit", (*repo).cmdCommit, false, "Record changes to the repository"},
		{"config", (*repo).cmdConfig, true, "Get and set repository or global options"},
		{"diff", (*repo).cmdDiff, true, "Show changes between commits, commit and working tree, etc"},
		{"for-each-ref", (*repo).cmdForEachRef, false, "Output information on each ref"},
		{"help", (*repo).cmdHelp, true, "Display help"},
		{"init", (*repo).cmdInit, true, "Create an empty Git repository or reinitialize an existing one"},
		{"log", (*repo).cmdLog, false, "Show commit logs"},
		{"mv", (*repo).cmdMv, false, "Move or rename a file, a directory, or a symlink"},
		{"reset", (*repo).cmdReset, false, "Reset current HEAD to the specified state"},
		{"restore", (*repo).cmdRestore, false, "Restore working tree files"},
		{"rm", (*repo).cmdRm, false, "Remove files from the working tree and from the index"},
		{"show", (*repo).cmdShow, false, "Show various types of objects"},
		{"status", (*repo).cmdStatus, false, "Show the working tree status"},
		{"switch", (*repo).cmdSwitch, false, "Switch branches"},
		{"tag", (*repo).cmdTag, false, "Create, list, delete a tag object"},
		{"version", (*repo).cmdVersion, true, "Display version information"},
		{"cat-file", (*repo).cmdCatFile, false, "Provide content or type of repository objects"},
		{"check-attr", (*repo).cmdCheckAttr, false, "Display gitattributes information"},
		{"check-ignore", (*repo).cmdCheckIgnore, false, "Debug gitignore / exclude files"},
		{"cherry-pick", (*repo).cmdCherryPick, false, "Apply the changes introduced by some existing commits"},
		{"commit-tree", (*repo).cmdCommitTree, false, "Create a new commit object"},
		{"hash-object", (*repo).cmdHashObject, true, "Compute object ID and optionally create an object"},
		{"ls-files", (*repo).cmdLsFiles, false, "Show information about files in the index and the working tree"},
		{"ls-tree", (*repo).cmdLsTree, false, "List the contents of a tree object"},
		{"merge", (*repo).cmdMerge, false, "Join two or more development histories together"},
		{"merge-base", (*repo).cmdMergeBase, false, "Find as good common ancestors as possible for a merge"},
		{"merge-file", (*repo).cmdMergeFile, true, "Run a three-way file merge"},
		{"mktag", (*repo).cmdMktag, false, "Creates a tag object"},
		{"mktree", (*repo).cmdMktree, false, "Build a tree-object from ls-tree formatted text"},
		{"rebase", (*repo).cmdRebase, false, "Reapply commits on top of another base tip"},
		{"stash", (*repo).cmdStash, false, "Stash the changes in a dirty working directory away"},
		{"blame", (*repo).cmdBlame, false, "Show what revision and author last modified each line of a file"},
		{"annotate", (*repo).cmdBlame, false, "Annotate file lines with commit information"},
		{"credential", (*repo).cmdCredential, true, "Retrieve and store user credentials"},
		{"credential-cache", (*repo).cmdCredentialCache, true, "Helper to temporarily store passwords in memory"},
		{"credential-store", (*repo).cmdCredentialStore, true, "Helper to store credentials on disk"},
		{"describe", (*repo).cmdDescribe, false, "Give an object a human readable name"},
		{"reflog", (*repo).cmdReflog, false, "Manage reflog information"},
		{"shortlog", (*repo).cmdShortlog, false, "Summarize 'git log' output"},
		{"clone", (*repo).cmdClone, true, "Clone a repository into a new directory"},
		{"fetch", (*repo).cmdFetch, false, "Download objects and refs from another repository"},
		{"ls-remote", (*repo).cmdLsRemote, true, "List references in a remote repository"},
		{"pull", (*repo).cmdPull, false, "Fetch from and integrate with another repository or a local branch"},
		{"push", (*repo).cmdPush, false, "Update remote refs along with associated objects"},
		{"remote", (*repo).cmdRemote, false, "Manage set of tracked repositories"},
		{"archive", (*repo).cmdArchive, false, "Create an archive of files from a named tree"},
		{"cherry", (*repo).cmdCherry, false, "Find commits yet to be applied to upstream"},
		{"check-ref-format", (*repo).cmdCheckRefFormat, true, "Ensures that a reference name is well formed"},
		{"count-objects", (*repo).cmdCountObjects, false, "Count unpacked number of objects and their disk consumption"},
		{"diff-files", (*repo).cmdDiffFiles, false, "Compares files in the working tree and the index"},
		{"diff-index", (*repo).cmdDiffIndex, false, "Compare a tree to the working tree or index"},
		{"diff-tree", (*repo).cmdDiffTree, false, "Compares the content and mode of blobs found via two tree objects"},
		{"fsck", (*repo).cmdFsck, false, "Verifies the connectivity and validity of the objects in the database"},
		{"gc", (*repo).cmdGC, false, "Cleanup unnecessary files and optimize the local repository"},
		{"grep", (*repo).cmdGrep, false, "Print lines matching a pattern"},
		{"pack-refs", (*repo).cmdPackRefs, false, "Pack heads and tags for efficient repository access"},
		{"prune", (*repo).cmdPrune, false, "Prune all unreachable objects from the object database"},
		{"repack", (*repo).cmdGC, false, "Pack unpacked objects in a repository"},
		{"stripspace", (*repo).cmdStripspace, true, "Remove unnecessary whitespace"},
		{"submodule", (*repo).cmdSubmodule, false, "Initialize, update or inspect submodules"},
		{"update-index", (*repo).cmdUpdateIndex, false, "Register file contents in the working tree to the index"},
		{"whatchanged", (*repo).cmdWhatchanged, false, "Show logs with differences each commit introduces"},
		{"am", (*repo).cmdAm, false, "Apply a series of patches from a mailbox"},
		{"apply", (*repo).cmdApply, true, "Apply a patch to files and/or to the index"},
		{"format-patch", (*repo).cmdFormatPatch, false, "Prepare patches for e-mail submission"},
		{"name-rev", (*repo).cmdNameRev, false, "Find symbolic names for given revs"},
		{"bisect", (*repo).cmdBisect, false, "Use binary search to find the commit that introduced a bug"},
		{"worktree", (*repo).cmdWorktree, false, "Manage multiple working trees"},
		{"read-tree", (*repo).cmdReadTree, false, "Reads tree information into the index"},
		{"rev-list", (*repo).cmdRevList, false, "List commit objects in reverse chronological order"},
		{"rev-parse", (*repo).cmdRevParse, true, "Pick out and massage parameters"},
		{"revert", (*repo).cmdRevert, false, "Revert some existing commits"},
		{"show-ref", (*repo).cmdShowRef, false, "List references in a local repository"},
		{"symbolic-ref", (*repo).cmdSymbolicRef, false, "Read, modify and delete symbolic refs"},
		{"update-ref", (*repo).cmdUpdateRef, false, "Update the object name stored in a ref safely"},
		{"var", (*repo).cmdVar, true, "Show a Git logical variable"},
		{"write-tree", (*repo).cmdWriteTree, false, "Create a tree object from the current index"},
	}
}

const usage = `usage: git [-v | --version] [-h | --help] [-C <path>] [-c <name>=<value>]
           [--git-dir=<path>] [--work-tree=<path>] [--bare]
           <command> [<args>]
`

// Git runs a subcommand.
func Git(t *tool.T) int {
	r := &repo{t: t}
	args := t.Args()[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		a := args[0]
		args = args[1:]
		take := func() string {
			if len(args) == 0 {
				r.die(129, "no %s given for '%s'\n%s", map[string]string{"-C": "directory", "-c": "config key"}[a], a, strings.TrimSuffix(usage, "\n"))
			}
			v := args[0]
			args = args[1:]
			return v
		}
		name, value, has := strings.Cut(a, "=")
		switch name {
		case "-C":
			if d := take(); d != "" {
				if err := t.Chdir(d); err != nil {
					r.fatal("cannot change to '%s': %s", d, strerror(err))
				}
			}
		case "-c":
			k, v, hasValue := strings.Cut(take(), "=")
			key, ok := canonKey(k)
			if !ok {
				r.say("error: key does not contain a section: %s", k)
				r.fatal("unable to parse command-line config")
			}
			r.overrides = append(r.overrides, setting{key: key, value: v, bare: !hasValue, file: "command line"})
		case "--git-dir", "--work-tree":
			if !has {
				value = take()
			}
			env := "GIT_DIR"
			if name == "--work-tree" {
				env = "GIT_WORK_TREE"
			}
			t.SetEnviron(append(append([]string(nil), t.Environ()...), env+"="+value))
		case "-v", "--version":
			return r.cmdVersion(nil)
		case "-h", "--help":
			return r.cmdHelp(nil)
		case "--no-pager", "-p", "--paginate", "-P", "--literal-pathspecs", "--no-optional-locks", "--no-replace-objects", "--bare", "--no-advice":
		case "--exec-path", "--html-path", "--man-path", "--info-path":
			r.printf("/usr/lib/git-core\n")
			return 0
		default:
			r.die(129, "unknown option: %s\n%s", a, strings.TrimSuffix(usage, "\n"))
		}
	}
	if len(args) == 0 {
		r.cmdHelp(nil)
		return 1
	}
	return r.dispatch(args, 0)
}

// dispatch runs a subcommand or an alias of one; aliases that begin with "!" are run by the sandbox's shell.
func (r *repo) dispatch(args []string, depth int) int {
	for _, v := range verbs() {
		if v.name != args[0] {
			continue
		}
		if len(args) == 2 && (args[1] == "--help" || args[1] == "-h") {
			r.printf("git-%s - %s\n\nThis is AgentRun's own git; it follows git 2.39. Options are those of git-%s(1).\n", v.name, v.help, v.name)
			return 0
		}
		if r.dir == "" && !r.open() && !v.outside {
			r.fatal("not a git repository (or any of the parent directories): .git")
		}
		return v.run(r, args[1:])
	}
	if r.dir == "" {
		r.open()
	}
	if alias, ok := r.config().get("alias." + args[0]); ok && depth < 10 {
		if strings.HasPrefix(alias, "!") {
			return r.shellAlias(alias[1:], args)
		}
		if words := strings.Fields(alias); len(words) > 0 {
			return r.dispatch(append(words, args[1:]...), depth+1)
		}
	}
	r.say("git: '%s' is not a git command. See 'git --help'.", args[0])
	r.suggest(args[0])
	return 1
}

// shellAlias runs an alias that is a shell command.
func (r *repo) shellAlias(script string, args []string) int {
	files := map[int]vfs.File{}
	line := append([]string{"/bin/sh", "-c", script + ` "$@"`, script}, args[1:]...)
	return r.spawn(line, []string{"GIT_PREFIX=" + r.prefix}, files)
}

// suggest names commands that look like a mistyped one.
func (r *repo) suggest(name string) {
	var near []string
	best := 6
	for _, v := range verbs() {
		d := distance(name, v.name)
		if strings.HasPrefix(v.name, name) {
			d = -1
		}
		if d >= best+1 || d > 5 {
			continue
		}
		if d < best {
			near, best = nil, d
		}
		near = append(near, v.name)
	}
	switch len(near) {
	case 0:
	case 1:
		r.say("\nThe most similar command is\n\t%s", near[0])
	default:
		r.say("\nThe most similar commands are\n\t%s", strings.Join(near, "\n\t"))
	}
}

// distance is how much it takes to make b of a, as git weighs it: to swap neighbours is free, to add a letter costs 1, to change one
// 2, to drop one 3.
func distance(a, b string) int {
	if len(a) > 40 {
		return 40
	}
	row0, row1, row2 := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row1 {
		row1[j] = j
	}
	for i := range len(a) {
		row2[0] = (i + 1) * 3
		for j := range len(b) {
			row2[j+1] = row1[j]
			if a[i] != b[j] {
				row2[j+1] += 2
			}
			if i > 0 && j > 0 && a[i-1] == b[j] && a[i] == b[j-1] {
				row2[j+1] = min(row2[j+1], row0[j-1])
			}
			row2[j+1] = min(row2[j+1], row1[j+1]+3, row2[j]+1)
		}
		row0, row1, row2 = row1, row2, row0
	}
	return row1[len(b)]
}

func (r *repo) cmdVersion([]string) int {
	r.printf("git version 2.39.5\n")
	return 0
}

func (r *repo) cmdHelp([]string) int {
	r.printf("%s\nThese are the commands:\n\n", usage)
	for _, v := range verbs() {
		r.printf("   %-14s%s\n", v.name, v.help)
	}
	r.printf("\nThis is AgentRun's own git. It follows git 2.39.\n")
	return 0
}

func firstRune(s string) (rune, int) { return utf8.DecodeRuneInString(s) }

// displayWidth is how many columns a text takes, roughly: its characters.
func displayWidth(s string) int { return utf8.RuneCountInString(s) }

// options walks over arguments with git's habits: options anywhere before "--", joined short ones, --name=value.
type options struct {
	r     *repo
	verb  string
	args  []string
	rest  []string // operands
	after []string // what follows "--"
	dash  bool     // there was a "--"
	name  string   // current option: "-m" or "--message"
	value string   // of --name=value, or what is left of a cluster
	has   bool
	queue string // letters left of a cluster

	negate bool // operands are revisions to leave out, after --not
}

func (r *repo) options(verb string, args []string) *options {
	return &options{r: r, verb: verb, args: args}
}

// next moves to the next option.
func (o *options) next() bool {
	o.has, o.value = false, ""
	if o.queue != "" {
		o.name, o.queue = "-"+o.queue[:1], o.queue[1:]
		return true
	}
	for len(o.args) > 0 {
		a := o.args[0]
		o.args = o.args[1:]
		switch {
		case a == "--":
			o.after, o.dash, o.args = o.args, true, nil
		case strings.HasPrefix(a, "--"):
			o.name, o.value, o.has = strings.Cut(a, "=")
			return true
		case len(a) > 1 && a[0] == '-':
			o.name, o.queue = a[:2], a[2:]
			return true
		default:
			if o.negate {
				if n, ok := strings.CutPrefix(a, "^"); ok {
					a = n
				} else {
					a = "^" + a
				}
			}
			o.rest = append(o.rest, a)
		}
	}
	return false
}

// arg returns the current option's argument.
func (o *options) arg() string {
	switch {
	case o.has:
		return o.value
	case o.queue != "":
		v := o.queue
		o.queue = ""
		return v
	case len(o.args) > 0:
		v := o.args[0]
		o.args = o.args[1:]
		return v
	}
	kind, name := "switch", strings.TrimLeft(o.name, "-")
	if strings.HasPrefix(o.name, "--") {
		kind = "option"
		o.r.die(129, "error: option `%s' requires a value", name)
	}
	o.r.die(129, "error: %s `%s' requires a value", kind, name)
	return ""
}

// optional returns an argument only if it is joined to the option.
func (o *options) optional() string {
	if o.has {
		return o.value
	}
	v := o.queue
	o.queue = ""
	return v
}

// whole is the current option as it was given.
func (o *options) whole() string {
	if o.has {
		return o.name + "=" + o.value
	}
	if !strings.HasPrefix(o.name, "--") {
		return o.name + o.queue
	}
	return o.name
}

// unknown ends the command.
func (o *options) unknown() {
	name := strings.TrimLeft(o.name, "-")
	if strings.HasPrefix(o.name, "--") {
		o.r.die(129, "error: unknown option `%s'\nusage: git %s [<options>]", name, o.verb)
	}
	o.r.die(129, "error: unknown switch `%s'\nusage: git %s [<options>]", name, o.verb)
}

// operands are the operands and what follows "--" together.
func (o *options) operands() []string { return append(append([]string(nil), o.rest...), o.after...) }
