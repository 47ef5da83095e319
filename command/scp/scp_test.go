package scp_test

import (
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

var files = []string{"f f hello\n", "x run #!/bin/sh\n", "d d", "f d/a 1", "d d/e", "f 'sp ace' x", "l ln f", "l dang nope", "f empty ", "f t old-and-longer"}

// TestSource compares what is sent with OpenSSH's scp. The other side agrees with everything.
func TestSource(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: files, Stdin: strings.Repeat("\x00", 100), Lines: []string{
		"scp -f f", "scp -f run", "scp -p -f f", "scp -f f run empty", "scp -r -f d/e", "scp -f 'sp ace'", "scp -f ln", "scp -r -f d/../d/e", "scp -f ./f",
		"scp -f nope", "scp -f nope f", "scp -f d", "scp -f dang",
	}}, commandtest.Table{Setup: files, Stdin: "\x00\x01no room\n\x00\x00\x00\x00", Lines: []string{"scp -f f run"}},
		commandtest.Table{Setup: files, Stdin: "", Lines: []string{"scp -f f"}})
}

// TestSink compares what is made of what comes.
func TestSink(t *testing.T) {
	for name, stdin := range map[string]string{
		"a file":                 "C0644 3 new\nabc\x00",
		"its mode":               "C0755 3 new\nabc\x00",
		"read-only":              "C0444 3 new\nabc\x00",
		"a shorter one":          "C0600 3 t\nabc\x00",
		"empty":                  "C0644 0 new\n\x00",
		"two":                    "C0644 1 n1\na\x00C0644 1 n2\nb\x00",
		"with times":             "T1000000000 0 1000000001 0\nC0644 1 n1\na\x00",
		"a blank in the name":    "C0644 1 a b\na\x00",
		"the source fails":       "C0644 3 new\nabc\x01scp: read error\n",
		"a warning":              "\x01scp: nope: No such file or directory\nC0644 1 n1\na\x00",
		"a slash":                "C0644 1 a/b\na\x00",
		"the directory above":    "C0644 1 ..\na\x00",
		"this directory":         "C0644 1 .\na\x00",
		"no name":                "C0644 1 \na\x00",
		"a directory without -r": "D0755 0 sub\nE\n",
		"nothing":                "",
		"cut off in a line":      "C0644 1",
		"cut off after a file":   "C0644 3 new\nabc",
		"a mode that is none":    "C0999 1 x\na\x00",
		"a size that is none":    "C0644 x x\na\x00",
		"an empty line":          "\n",
		"times that are none":    "Tx 0 1 0\nC0644 1 x\na\x00",
	} {
		t.Run(name, func(t *testing.T) {
			commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: files, Stdin: stdin, Loose: true, Lines: []string{"scp -t .", "scp -p -t ."}})
		})
	}
	for name, stdin := range map[string]string{
		"a directory":       "D0755 0 sub\nC0644 1 n1\na\x00D0700 0 deep\nC0644 1 n2\nb\x00E\nE\n",
		"with times":        "T1000000000 0 1000000001 0\nD0750 0 sub\nT1000000000 0 1000000001 0\nC0644 1 n1\na\x00E\n",
		"into one":          "D0755 0 d\nC0644 1 n1\na\x00E\n",
		"over a file":       "D0755 0 f\nE\n",
		"a file over a dir": "C0644 1 d\na\x00",
	} {
		t.Run(name+" -r", func(t *testing.T) {
			commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: files, Stdin: stdin, Loose: true, Lines: []string{"scp -r -t .", "scp -rp -t .", "scp -r -t new"}})
		})
	}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: files, Stdin: "C0644 3 x\nabc\x00", Loose: true, Lines: []string{"scp -t new", "scp -t d", "scp -d -t d", "scp -d -t f", "scp -d -t nope", "scp -t nope/x"}})
}

// FuzzSink feeds arbitrary bytes to `scp -rp -t`.
func FuzzSink(f *testing.F) {
	for _, s := range []string{"C0644 3 new\nabc\x00", "T1 0 1 0\nD0755 0 d\nC0644 1 x\na\x00E\nE\n", "C0644 99999999999999999999 x\n", "C0644 -1 x\n", "D0000 0 x\nC0644 0 y\n\x00", "\x02end\n", "C0644 1 x\n", "T9999999999999 0 1 0\nC0644 0 x\n\x00", strings.Repeat("D0755 0 d\n", 1100)} {
		f.Add(s)
	}
	set := command.NewSet(nil)
	f.Fuzz(func(t *testing.T, stdin string) {
		table := &commandtest.Table{Setup: []string{"f a x", "d d"}, Stdin: stdin}
		table.Survives(t, set, "scp", "-rp", "-t", ".")
	})
}
