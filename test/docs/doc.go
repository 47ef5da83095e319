// Package docs tests the documents: what they print is run, what they name must be there.
//
// A document's fenced blocks of sh, console, python, js and go run in their order, in one session with a folder, a home
// and ports of its own. In a console block, lines that begin with "$ " are commands and the others what they print:
// what differs from run to run (versions, times, keys, ids) is taken as equal, and … stands for anything, alone on a line
// for any lines. A command that fails is followed by "$ echo $?". 'agentrun up' runs in the background.
//
// A comment above a block, which readers don't see, says what can't be seen from it:
//
//	<!-- test: skip: REASON -->     the block isn't run; the test lists it
//	<!-- test: file NAME -->        the block is written to a file of the session's folder, and not run
//	<!-- test: run                  further commands, which run here
//	COMMANDS
//	-->
//
// With -update, the outputs in the documents are replaced by what the commands printed.
package docs
