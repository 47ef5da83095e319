// Package pager holds the commands that show text page by page, less and more, and watch, which shows a command's output
// again and again.
//
// On a terminal a pager is interactive: it reads keys from the terminal, never from what it shows. Anywhere else it
// copies its input, as the originals do. What is shown on a terminal is harmless: control characters appear as ^X, and
// escape sequences only where -R or -r lets them through.
package pager
