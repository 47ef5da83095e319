package coreutils

import (
	"errors"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const keyTime = tool.KeyOwn

var touchSpec = tool.Spec{
	Usage: []string{"[OPTION]... FILE..."},
	About: "Update the access and modification times of each FILE to the current time.\n\nA FILE argument that does not exist is created empty, unless -c or -h is supplied.",
	Options: []getopt.Option{
		{Short: 'a', Help: "change only the access time"},
		{Short: 'c', Long: "no-create", Help: "do not create any files"},
		{Short: 'd', Long: "date", Arg: getopt.Required, Name: "STRING", Help: "parse STRING and use it instead of current time"},
		{Short: 'f', Help: "(ignored)"},
		{Short: 'h', Long: "no-dereference", Help: "affect each symbolic link instead of any referenced file"},
		{Short: 'm', Help: "change only the modification time"},
		{Short: 'r', Long: "reference", Arg: getopt.Required, Name: "FILE", Help: "use this file's times instead of current time"},
		{Short: 't', Arg: getopt.Required, Name: "STAMP", Help: "use [[CC]YY]MMDDhhmm[.ss] instead of current time"},
		{Long: "time", Key: keyTime, Arg: getopt.Required, Name: "WORD", Help: "change the specified time: access, atime, use, modify, mtime"},
	},
	Package: tool.Coreutils,
}

// Touch sets files' times and makes missing files.
func Touch(t *tool.T) int {
	opts, files := t.Parse(&touchSpec)
	var access, modify, noCreate, noFollow, haveStamp, haveDate bool
	ref, date := "", ""
	atime := t.Now()
	for _, o := range opts {
		switch o.Key {
		case 'a':
			access = true
		case 'c':
			noCreate = true
		case 'd':
			date, haveDate = o.Arg, true
		case 'h':
			noFollow = true
		case 'm':
			modify = true
		case 'r':
			ref = o.Arg
		case 't':
			stamp, ok := parseStamp(o.Arg, t.Now())
			if !ok {
				t.Fatal(1, "invalid date format %s", tool.Quote(o.Arg))
			}
			atime, haveStamp = stamp, true
		case keyTime:
			switch t.Choice(1, "--time", o.Arg, [][]string{{"atime", "access", "use"}, {"mtime", "modify"}}) {
			case 0:
				access = true
			case 1:
				modify = true
			}
		}
	}
	if !access && !modify {
		access, modify = true, true
	}
	if haveStamp && (haveDate || ref != "") {
		t.UsageError(1, "cannot specify times from more than one source")
	}
	mtime := atime
	if ref != "" {
		stat := t.Stat
		if noFollow {
			stat = t.Lstat
		}
		a, err := stat(ref)
		if err != nil {
			t.Fatal(1, "failed to get attributes of %s: %s", tool.QuoteAF(ref), tool.Strerror(err))
		}
		atime, mtime = a.Atime, a.Mtime
	}
	if haveDate {
		atime = touchDate(t, date, atime)
		mtime = touchDate(t, date, mtime)
	}
	if len(files) == 0 {
		t.UsageError(1, "missing file operand")
	}
	var set vfs.SetAttr
	if access {
		set.Atime = &atime
	}
	if modify {
		set.Mtime = &mtime
	}
	failed := false
	for _, f := range files {
		if err := touchOne(t, f, set, noCreate || noFollow, noFollow); err != nil {
			what := "cannot touch %s: %s"
			if errors.Is(err, syscall.EPERM) || f == "-" {
				what = "setting times of %s: %s"
			}
			t.Warn(what, tool.QuoteAF(f), tool.Strerror(err))
			failed = true
		}
	}
	return status(failed)
}

func touchDate(t *tool.T, date string, now time.Time) time.Time {
	at, err := t.ParseDate(date, now.In(t.Now().Location()))
	if err != nil {
		t.Fatal(1, "invalid date format %s", tool.Quote(date))
	}
	return at
}

func touchOne(t *tool.T, name string, set vfs.SetAttr, noCreate, noFollow bool) error {
	if name == "-" {
		f, err := t.File(1)
		if err != nil {
			return err
		}
		return f.SetAttr(set)
	}
	if !noCreate {
		if _, err := t.Stat(name); tool.IsNotExist(err) {
			f, err := t.Process.Open(name, syscall.O_WRONLY|syscall.O_CREAT, 0o666)
			if err != nil {
				return err
			}
			defer f.Close()
			return t.SetAttr(name, set, true)
		}
	}
	err := t.SetAttr(name, set, !noFollow)
	if noCreate && errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}

// parseStamp reads [[CC]YY]MMDDhhmm[.ss].
func parseStamp(s string, now time.Time) (time.Time, bool) {
	main, sec, hasSec := strings.Cut(s, ".")
	n := len(main)
	if n != 8 && n != 10 && n != 12 || hasSec && len(sec) != 2 || strings.Trim(main+sec, "0123456789") != "" {
		return time.Time{}, false
	}
	two := func(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }
	year := now.Year()
	switch n {
	case 10:
		if year = 1900 + two(main); year < 1969 {
			year += 100
		}
		main = main[2:]
	case 12:
		year = two(main)*100 + two(main[2:])
		main = main[4:]
	}
	second := 0
	if hasSec {
		second = two(sec)
	}
	mo, d, h, mi := two(main), two(main[2:]), two(main[4:]), two(main[6:])
	at := time.Date(year, time.Month(mo), d, h, mi, second, 0, now.Location())
	ok := mo >= 1 && mo <= 12 && at.Day() == d && h < 24 && mi < 60 && second <= 60
	return at, ok
}
