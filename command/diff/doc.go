// Package diff holds commands of GNU diffutils: diff and cmp.
//
// A text is a file's lines. Comparing two texts gives a script: a list of changes, each of which replaces some lines of the
// first text (perhaps none) by some of the second. A hunk is changes near each other that are shown together, with the
// context around them. The search chooses among equally good scripts as GNU diff does, so the output is the same.
package diff

// maxFile bounds a file that is compared line by line: both are held in memory.
const maxFile = 256 << 20
