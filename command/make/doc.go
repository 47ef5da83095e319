// Package make is make: POSIX's, with the extensions of GNU make 4.3 that makefiles use.
//
// A makefile is read into rules and variables, then targets are brought up to date. A target is a file or a name with the
// files that it depends on, its prerequisites, and the recipe that makes it: lines for the shell. A rule is explicit, or a
// pattern with a stem (%); a suffix rule is a pattern written in the old way. A variable is recursive, expanded whenever it
// is used, or simple, expanded when it is set. A frame is a set of variables that hides those of the frames below it: those
// of a target, of its rule's automatic variables, of a function's arguments. A job is a recipe that runs.
//
// Not here: archive members as targets, load, guile, remote jobs, and a jobserver: each make below another counts its own jobs.
package make

import "errors"

const (
	version     = "4.3"
	maxMakefile = 64 << 20 // bytes of one makefile
	maxText     = 64 << 20 // bytes of one expansion
	maxDepth    = 1000     // of expansions in expansions, includes in includes
	maxChain    = 5000     // of prerequisites of prerequisites
	maxTargets  = 1 << 20
	maxOutput   = 16 << 20 // bytes that $(shell) takes
	maxRestarts = 50       // how often makefiles that were remade are read again
)

var errTooLarge = errors.New("virtual memory exhausted")
