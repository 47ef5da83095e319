// Package system holds the commands that look at processes, signals, terminals and the machine: ps, kill, pgrep, free,
// top, stty, tput, getconf and their kin, as procps, psmisc, util-linux and ncurses have them.
//
// What they know of processes they read in /proc, which shows those of the sandbox and nothing else. The machine that
// they describe is the sandbox: its memory is the sandbox's limit, its processors are one.
package system
