package pager_test

import (
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

const page = `.\" comment
.TH TOOL 1 "2024-01-02" "tool 1.0" "User Commands"
.SH NAME
tool \- does things
.SH SYNOPSIS
.B tool
[\fIOPTION\fR]... \fIFILE\fR
.de XX
.br
..
.SH DESCRIPTION
A long line of text that goes on and on until it has to be broken at some column, so that it fits on the screen that it is shown on.
.PP
Second paragraph with \(lqquotes\(rq and a \\(bu.
.TP
\fB\-a\fR, \fB\-\-all\fR
show all of them
.TP
.BR \-\-very\-long\-option = \fIVALUE\fR
something that hangs
.IP \(bu 4
item
.nf
  as   it
is
.fi
.SS Sub
.RS
indented
.RE
.SH "SEE ALSO"
.BR other (1),
.BR third (5)
`

func TestMan(t *testing.T) {
	table := commandtest.Table{Setup: []string{"d m", "d m/man1", "d m/man5", "f m/man1/tool.1 " + page, "f m/man5/tool.5 .TH TOOL 5\n.SH NAME\nfive\n", "f m/man1/cut.1 .de FN\n.sp\n.RE\n'\\\" t\n", "f m/man1/plain.1 just text\n", "f m/man1/doc.1 .Dd May 1, 2024\n.Dt DOC 1\n.Os\n.Sh NAME\n.Nm doc\n.Nd a tool\n.Sh SYNOPSIS\n.Nm\n.Op Fl a\n.Ar file\n"}}
	for line, want := range map[string]string{
		"man -M m tool":               "TOOL(1)                         User Commands                          TOOL(1)\n\nNAME\n       tool - does things\n\nSYNOPSIS\n       tool [OPTION]... FILE\n\nDESCRIPTION\n       A long line of text that goes on and on until it has to be broken at\n       some column, so that it fits on the screen that it is shown on.\n\n       Second paragraph with “quotes” and a \\(bu.\n\n       -a, --all\n              show all of them\n\n       --very-long-option=VALUE\n              something that hangs\n\n       •      item\n                as   it\n              is\n\n   Sub\n              indented\n\nSEE ALSO\n       other(1), third(5)\n\ntool 1.0                          2024-01-02                           TOOL(1)\n",
		"man -M m 5 tool":             "TOOL(5)                                                                TOOL(5)\n\nNAME\n       five\n\n                                                                       TOOL(5)\n",
		"man -M m -w tool":            "m/man1/tool.1\n",
		"man -M m -aw tool":           "m/man1/tool.1\nm/man5/tool.5\n",
		"man -M m cut":                "<standard input>:1: error: end of file while defining macro 'FN'\n",
		"man -M m plain":              "just text\n",
		"man -M m doc":                "DOC(1)                     General Commands Manual                      DOC(1)\n\nNAME\n       doc — a tool\n\nSYNOPSIS\n       doc [-a] file\n\nMay 1, 2024\n",
		"man nosuchthing":             "No manual entry for nosuchthing\n",
		"man":                         "What manual page do you want?\nFor example, try 'man man'.\n",
		"man -M m -f tool":            "tool (1)\ntool (5)\n",
		"whatis nosuch":               "nosuch: nothing appropriate.\n",
		"man -l m/man5/tool.5 -P cat": "TOOL(5)                                                                TOOL(5)\n\nNAME\n       five\n\n                                                                       TOOL(5)\n",
	} {
		r := table.Sandbox(t, command.NewSet(nil), strings.Fields(line), "")
		got := r.Stdout + r.Stderr
		if got != want {
			t.Errorf("%s:\n got %q\nwant %q", line, got, want)
		}
	}
	for name, text := range map[string]string{"esc": "\\f\\s\\*[\\(\\h'\n.B \\\n.TP\n", "args": ".B \"\n.BR \"a\"\"b\n.ds\n.ds x \\*x\n\\*x\n", "deep": strings.Repeat(".RS\n", 5000) + "x\n", "el": strings.Repeat(".RE\n", 50) + ".TP\n.TP\n.IP\n", "doc": ".Nm\n.Op Op Op Fl\n.Xr a\n.It\n.Fl\n", "nul": "\x00\xff\\\x00"} {
		hostile := commandtest.Table{Setup: []string{"f " + name + " " + text}}
		hostile.Survives(t, command.NewSet(nil), "man", "-l", name)
	}
}
