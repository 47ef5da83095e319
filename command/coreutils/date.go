package coreutils

import (
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/datetime"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const keyRFC3339 = tool.KeyOwn

var dateSpec = tool.Spec{
	Usage: []string{"[OPTION]... [+FORMAT]", "[-u|--utc|--universal] [MMDDhhmm[[CC]YY][.ss]]"},
	About: "Display date and time in the given FORMAT.",
	Options: []getopt.Option{
		{Short: 'd', Long: "date", Arg: getopt.Required, Name: "STRING", Help: "display time described by STRING, not 'now'"},
		{Long: "debug", Key: tool.KeyOwn + 1, Help: "(accepted)"},
		{Short: 'f', Long: "file", Arg: getopt.Required, Name: "DATEFILE", Help: "like --date; once for each line of DATEFILE"},
		{Short: 'I', Long: "iso-8601", Arg: getopt.Optional, Name: "FMT", Help: "output date/time in ISO 8601 format: date (default), hours, minutes, seconds, ns"},
		{Short: 'R', Long: "rfc-email", Help: "output date and time in RFC 5322 format"},
		{Long: "rfc-2822", Key: 'R'}, {Long: "rfc-822", Key: 'R'},
		{Long: "rfc-3339", Key: keyRFC3339, Arg: getopt.Required, Name: "FMT", Help: "output date/time in RFC 3339 format: date, seconds, ns"},
		{Short: 'r', Long: "reference", Arg: getopt.Required, Name: "FILE", Help: "display the last modification time of FILE"},
		{Short: 's', Long: "set", Arg: getopt.Required, Name: "STRING", Help: "(refused: the sandbox's clock can't be set)"},
		{Short: 'u', Long: "utc", Help: "print or set Coordinated Universal Time (UTC)"},
		{Long: "universal", Key: 'u'},
	},
	Package: tool.Coreutils,
}

// Date prints dates.
func Date(t *tool.T) int {
	opts, args := t.Parse(&dateSpec)
	now := t.Now()
	var text, file, ref *string
	var format *string
	set := false
	for _, o := range opts {
		arg := o.Arg
		f := ""
		switch o.Key {
		case 'd':
			text = &arg
		case 'f':
			file = &arg
		case 'r':
			ref = &arg
		case 's':
			set, text = true, &arg
		case 'u':
			now = now.UTC()
		case 'R':
			f = "%a, %d %b %Y %H:%M:%S %z"
		case 'I':
			i := 0
			if o.Has {
				i = t.Choice(1, "--iso-8601", arg, [][]string{{"date"}, {"hours"}, {"minutes"}, {"seconds"}, {"ns"}})
			}
			f = []string{"%Y-%m-%d", "%Y-%m-%dT%H%:z", "%Y-%m-%dT%H:%M%:z", "%Y-%m-%dT%H:%M:%S%:z", "%Y-%m-%dT%H:%M:%S,%N%:z"}[i]
		case keyRFC3339:
			f = []string{"%Y-%m-%d", "%Y-%m-%d %H:%M:%S%:z", "%Y-%m-%d %H:%M:%S.%N%:z"}[t.Choice(1, "--rfc-3339", arg, [][]string{{"date"}, {"seconds"}, {"ns"}})]
		}
		if f != "" {
			if format != nil {
				t.Fatal(1, "multiple output formats specified")
			}
			format = &f
		}
	}
	sources := 0
	for _, p := range []*string{text, file, ref} {
		if p != nil {
			sources++
		}
	}
	if sources > 1 {
		t.UsageError(1, "the options to specify dates for printing are mutually exclusive")
	}
	if len(args) > 0 {
		if len(args) > 1 {
			t.Extra(1, args[1])
		}
		if f, ok := strings.CutPrefix(args[0], "+"); ok {
			if format != nil {
				t.Fatal(1, "multiple output formats specified")
			}
			format = &f
		} else if sources > 0 {
			t.UsageError(1, "the argument %s lacks a leading '+';\nwhen using an option to specify date(s), any non-option\nargument must be a format string beginning with '+'", tool.Quote(args[0]))
		} else {
			if _, ok := setDate(args[0], now); !ok {
				t.Fatal(1, "invalid date %s", tool.Quote(args[0]))
			}
			set = true
		}
	}
	if format == nil {
		f := "%a %b %e %H:%M:%S %Z %Y"
		format = &f
	}
	print := func(at time.Time) { t.Out.WriteString(datetime.Format(*format, at) + "\n") }
	if file != nil {
		return dateFile(t, *file, now, print)
	}
	at := now
	switch {
	case ref != nil:
		a, err := t.Stat(*ref)
		if err != nil {
			t.Fatal(1, "%s: %s", tool.QuoteF(*ref), tool.Strerror(err))
		}
		at = a.Mtime.In(now.Location())
	case text != nil:
		var err error
		if at, err = t.ParseDate(*text, now); err != nil {
			t.Fatal(1, "invalid date %s", tool.Quote(*text))
		}
		at = at.In(now.Location())
	}
	if set {
		t.Warn("cannot set date: %s", tool.Strerror(syscall.EPERM))
	}
	print(at)
	return status(set)
}

// setDate reads MMDDhhmm[[CC]YY][.ss].
func setDate(s string, now time.Time) (time.Time, bool) {
	main, sec, has := strings.Cut(s, ".")
	if len(main) > 8 {
		main = main[8:] + main[:8]
	}
	if has {
		main += "." + sec
	}
	return parseStamp(main, now)
}

func dateFile(t *tool.T, name string, now time.Time, print func(time.Time)) int {
	in, err := t.Open(name)
	if err != nil {
		t.Fatal(1, "%s: %s", tool.QuoteF(name), tool.Strerror(err))
	}
	defer in.Close()
	l := tool.NewLines(in, '\n')
	failed := false
	for {
		line, ok := l.Next()
		if !ok {
			return status(failed)
		}
		at, err := t.ParseDate(string(line), now)
		if err != nil {
			t.Warn("invalid date %s", tool.Quote(string(line)))
			failed = true
			continue
		}
		print(at.In(now.Location()))
	}
}
