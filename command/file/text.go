package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// encoding is how a text is written; without a charset it is none.
type encoding struct{ text, charset string }

// longLine is the length from which lines are called very long.
const longLine = 300

// encodingOf tells the encoding of a text.
func encodingOf(b []byte) encoding {
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")):
		return encoding{"Unicode text, UTF-32, little-endian", "utf-32le"}
	case bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")):
		return encoding{"Unicode text, UTF-32, big-endian", "utf-32be"}
	case len(b) > 2 && bytes.HasPrefix(b, []byte("\xff\xfe")) && wideText(b[2:], 1):
		return encoding{"Unicode text, UTF-16, little-endian text", "utf-16le"}
	case len(b) > 2 && bytes.HasPrefix(b, []byte("\xfe\xff")) && wideText(b[2:], 0):
		return encoding{"Unicode text, UTF-16, big-endian text", "utf-16be"}
	}
	wide, odd := false, false
	for _, c := range b {
		if c < 7 || c > 13 && c < 32 && c != 27 || c == 11 || c == 127 {
			return encoding{}
		}
		wide = wide || c >= 0x80
		odd = odd || c >= 0x80 && c < 0xa0
	}
	valid := utf8.Valid(b) || len(b) == headSize && utf8.Valid(b[:bytes.LastIndexByte(b, '\n')+1])
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) && valid:
		return encoding{"Unicode text, UTF-8 (with BOM) text", "utf-8"}
	case wide && valid:
		return encoding{"Unicode text, UTF-8 text", "utf-8"}
	case wide && odd:
		return encoding{"Non-ISO extended-ASCII text", "unknown-8bit"}
	case wide:
		return encoding{"ISO-8859 text", "iso-8859-1"}
	}
	return encoding{"ASCII text", "us-ascii"}
}

// wideText reports whether two-byte characters, of which the byte high comes first or second, are those of a text.
func wideText(b []byte, high int) bool {
	for i := 0; i+1 < len(b); i += 2 {
		if c := b[i+1-high]; b[i+high] == 0 && (c < 7 || c > 13 && c < 32 && c != 27) {
			return false
		}
	}
	return true
}

// structured knows JSON and CSV.
func structured(b []byte, e encoding) (kind, bool) {
	if e.charset == "" {
		return kind{}, false
	}
	trimmed := bytes.TrimLeft(b, " \t\r\n")
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		if json.Valid(b) {
			return kind{"JSON text data", "application/json", e.charset}, true
		}
		if lines := bytes.Split(bytes.TrimRight(b, "\r\n"), []byte("\n")); len(lines) > 1 {
			all := true
			for i, l := range lines {
				if !json.Valid(l) && !(len(b) == headSize && i == len(lines)-1) {
					all = false
					break
				}
			}
			if all {
				return kind{"New Line Delimited JSON text data", "application/x-ndjson", e.charset}, true
			}
		}
	}
	if isCSV(b) {
		prefix := "CSV "
		if e.charset == "us-ascii" {
			return kind{"CSV text", "text/csv", e.charset}, true
		}
		return kind{prefix + e.text, "text/csv", e.charset}, true
	}
	return kind{}, false
}

// isCSV reports whether the first lines have the same number of commas.
func isCSV(b []byte) bool {
	fields, want, lines := 0, 0, 0
	quoted := false
	for _, c := range b {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			fields++
		case c == '\n':
			if want == 0 {
				want = fields
			}
			if fields == 0 || fields != want {
				return false
			}
			if lines++; lines == 10 {
				return true
			}
			fields = 0
		}
	}
	return want > 0 && lines > 2 && !quoted
}

// text tells the format, encoding and line ends of a text.
func text(b []byte, e encoding) kind {
	prefix, mime, whole := format(b)
	if whole {
		return kind{prefix, mime, e.charset}
	}
	said, executable := prefix, strings.HasSuffix(prefix, "|")
	if said = strings.TrimSuffix(said, "|"); said != "" {
		said += ", "
	}
	said += e.text
	if executable {
		said += " executable"
	}
	if strings.HasPrefix(e.charset, "utf-16") || strings.HasPrefix(e.charset, "utf-32") {
		return kind{said, mime, e.charset}
	}
	longest, from := 0, 0
	for i, c := range b {
		if c == '\n' || c == '\r' {
			longest, from = max(longest, i-from), i+1
		}
	}
	if longest = max(longest, len(b)-from); longest > longLine {
		said += fmt.Sprintf(", with very long lines (%d)", longest)
	}
	crlf := bytes.Count(b, []byte("\r\n"))
	lf, cr := bytes.Count(b, []byte("\n"))-crlf, bytes.Count(b, []byte("\r"))-crlf
	var ends []string
	for _, x := range []struct {
		n    int
		name string
	}{{crlf, "CRLF"}, {cr, "CR"}, {lf, "LF"}} {
		if x.n > 0 {
			ends = append(ends, x.name)
		}
	}
	switch {
	case len(ends) == 0:
		said += ", with no line terminators"
	case len(ends) > 1 || ends[0] != "LF":
		said += ", with " + strings.Join(ends, ", ") + " line terminators"
	}
	if bytes.IndexByte(b, 0x1b) >= 0 {
		said += ", with escape sequences"
	}
	if bytes.IndexByte(b, '\b') >= 0 {
		said += ", with overstriking"
	}
	return kind{said, mime, e.charset}
}

// interpreters are the names and types of scripts by what runs them.
var interpreters = map[string][2]string{
	"sh": {"POSIX shell script|", "text/x-shellscript"}, "bash": {"Bourne-Again shell script|", "text/x-shellscript"}, "zsh": {"Paul Falstad's zsh script|", "text/x-shellscript"},
	"ksh": {"Korn shell script|", "text/x-shellscript"}, "csh": {"C shell script|", "text/x-shellscript"}, "tcsh": {"Tenex C shell script|", "text/x-shellscript"}, "fish": {"fish shell script|", "text/x-shellscript"},
	"python": {"Python script|", "text/x-script.python"}, "ruby": {"Ruby script|", "text/x-ruby"}, "php": {"PHP script|", "text/x-php"}, "lua": {"Lua script|", "text/x-lua"},
	"awk": {"awk script|", "text/x-awk"}, "gawk": {"GNU awk script|", "text/x-gawk"}, "mawk": {"new awk script|", "text/x-nawk"}, "tclsh": {"Tcl/Tk script|", "text/x-tcl"}, "wish": {"Tcl/Tk script|", "text/x-tcl"},
	"node": {"Node.js script executable", "application/javascript"},
}

// script tells a script by its first line.
func script(line string) (string, string, bool) {
	command := strings.TrimSpace(line)
	f := strings.Fields(command)
	if len(f) == 0 {
		return "", "text/plain", false
	}
	name := path.Base(f[0])
	if name == "env" && len(f) > 1 {
		name = path.Base(f[1])
		if f[1] == "-S" && len(f) > 2 {
			name = path.Base(f[2])
		}
	}
	if name == "perl" {
		return "Perl script text executable", "text/x-perl", true
	}
	name = strings.TrimRight(name, "0123456789.")
	if x, ok := interpreters[name]; ok {
		return x[0], x[1], false
	}
	return "a " + command + " script|", "text/plain", false
}

// beginnings are texts with which formats begin: the whole description if whole is set, else what stands before the encoding.
var beginnings = []struct {
	start, said, mime string
	whole             bool
}{
	{"-----BEGIN CERTIFICATE-----", "PEM certificate", "text/plain", true}, {"-----BEGIN CERTIFICATE REQUEST-----", "PEM certificate request", "text/plain", true},
	{"-----BEGIN RSA PRIVATE KEY", "PEM RSA private key", "text/plain", true}, {"-----BEGIN DSA PRIVATE KEY", "PEM DSA private key", "text/plain", true}, {"-----BEGIN EC PRIVATE KEY", "PEM EC private key", "text/plain", true},
	{"-----BEGIN OPENSSH PRIVATE KEY", "OpenSSH private key", "text/plain", true}, {"ssh-rsa ", "OpenSSH RSA public key", "text/plain", true}, {"ssh-ed25519 ", "OpenSSH ED25519 public key", "text/plain", true}, {"ssh-dss ", "OpenSSH DSA public key", "text/plain", true},
	{"-----BEGIN PGP PUBLIC KEY BLOCK-", "PGP public key block", "application/pgp-keys", true}, {"-----BEGIN PGP MESSAGE-", "PGP message", "application/pgp", true}, {"-----BEGIN PGP SIGNATURE-", "PGP signature", "application/pgp-signature", true},
	{"diff ", "diff output", "text/x-diff", false}, {"Only in ", "diff output", "text/x-diff", false}, {"*** ", "context diff output", "text/x-diff", false}, {"Index: ", "RCS/CVS diff output", "text/x-diff", false},
	{"{\\rtf1", "Rich Text Format data, version 1, ANSI", "text/rtf", true}, {"%!PS-Adobe-", "PostScript document text", "application/postscript", true}, {"%!", "PostScript document text", "application/postscript", true},
	{"\\documentclass", "LaTeX 2e document", "text/x-tex", false}, {"\\documentstyle", "LaTeX document", "text/x-tex", false}, {"\\input texinfo", "Texinfo source", "text/x-texinfo", false}, {"\\input", "TeX document", "text/x-tex", false}, {"\\section", "LaTeX document", "text/x-tex", false},
	{"BEGIN:VCARD", "vCard visiting card", "text/vcard", false}, {"BEGIN:VCALENDAR", "iCalendar calendar file", "text/calendar", false}, {"<?php", "PHP script", "text/x-php", false},
	{"From:", "news or mail", "message/rfc822", false}, {"Received:", "SMTP mail", "message/rfc822", false}, {"Return-Path:", "SMTP mail", "message/rfc822", false}, {"Date:", "news or mail", "message/rfc822", false},
	{"# v2 git bundle", "Git bundle", "application/octet-stream", true}, {"gimp xcf", "GIMP XCF image data", "image/x-xcf", true},
}

// sources are patterns of programs, the more particular ones first.
var sources = []struct {
	re         *regexp.Regexp
	said, mime string
}{
	{regexp.MustCompile(`(?m)^(using namespace |namespace +\w+|class +\w+.*[{:]|template *<|(public|private|protected):|virtual )`), "C++ source", "text/x-c++"},
	{regexp.MustCompile(`(?m)^#include`), "C source", "text/x-c"},
	{regexp.MustCompile(`(?m)^from\s+(\w|\.)+\s+import.*$`), "Python script|", "text/x-script.python"},
	{regexp.MustCompile(`(?m)^[ \t]{0,50}def {1,50}[a-zA-Z]{1,100}[a-zA-Z0-9_]* {0,50}\([a-zA-Z0-9_, =*]{1,255}\):$`), "Python script|", "text/x-script.python"},
	{regexp.MustCompile(`(?m)^package [A-Za-z0-9_:.]+;`), "Perl5 module source", "text/plain"},
	{regexp.MustCompile(`(?m)^[A-Za-z0-9_.%$(){}-]+:[^=\n]*\n\t`), "makefile script", "text/x-makefile"},
	{regexp.MustCompile(`(?m)^(\.PHONY|\.SUFFIXES)`), "makefile script", "text/x-makefile"},
}

// format knows formats of text by how they begin; whole says that the encoding is not told. A bar at the end of the
// description stands for " executable" after the encoding.
func format(b []byte) (said, mime string, whole bool) {
	front := b[:min(len(b), 4096)]
	first, rest, _ := bytes.Cut(front, []byte("\n"))
	lower := strings.ToLower(strings.TrimLeft(string(front), " \t\r\n"))
	lower = strings.TrimPrefix(lower, "\ufeff")
	switch {
	case bytes.HasPrefix(b, []byte("#!")):
		return script(string(first[2:]))
	case strings.HasPrefix(lower, "<?xml version=\"1.0\""):
		if strings.Contains(lower, "<svg") {
			return "SVG Scalable Vector Graphics image", "image/svg+xml", true
		}
		return "XML 1.0 document", "text/xml", false
	case strings.HasPrefix(lower, "<svg"):
		return "SVG Scalable Vector Graphics image", "image/svg+xml", true
	case bytes.HasPrefix(b, []byte("--- ")) && bytes.HasPrefix(rest, []byte("+++ ")):
		return "unified diff output", "text/x-diff", false
	}
	for _, tag := range []string{"<!doctype html", "<html", "<head", "<title", "<body", "<script", "<style", "<table", "<a href="} {
		if strings.HasPrefix(lower, tag) {
			return "HTML document", "text/html", false
		}
	}
	for _, x := range beginnings {
		if bytes.HasPrefix(b, []byte(x.start)) {
			if said = x.said; x.start == "%!PS-Adobe-" {
				version, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(first)), x.start), " ")
				said += " conforming DSC level " + version
			}
			return said, x.mime, x.whole
		}
	}
	for _, x := range sources {
		if x.re.Match(front) {
			return x.said, x.mime, false
		}
	}
	return "", "text/plain", false
}
