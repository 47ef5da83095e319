package git

import (
	"bytes"
	"strings"
)

// eolMode says how a file's line ends are kept: what a blob has, and what the work tree gets.
type eolMode struct {
	normal bool // CRLF becomes LF in blobs
	auto   bool // only if the content is text
	crlf   bool // the work tree has CRLF
}

// eol finds how a path's line ends are kept, by its attributes and by core.autocrlf and core.eol.
func (r *repo) eol(p string) (m eolMode) {
	if r.root == "" {
		return m
	}
	set := r.attributes(p)
	text, eol := set["text"], set["eol"]
	auto, _ := r.config().get("core.autocrlf")
	if text == "" && eol != "" {
		text = "set"
	}
	switch text {
	case "set":
		m.normal = true
	case "auto":
		m.normal, m.auto = true, true
	case "":
		if b, ok := parseBool(auto); ok && b || auto == "input" {
			m.normal, m.auto = true, true
		}
	}
	if !m.normal {
		return m
	}
	b, ok := parseBool(auto)
	coreEOL, _ := r.config().get("core.eol")
	switch {
	case eol == "crlf":
		m.crlf = true
	case eol == "lf" || auto == "input":
	case ok && b:
		m.crlf = true
	default:
		m.crlf = strings.EqualFold(coreEOL, "crlf")
	}
	return m
}

// looksBinary is git's stricter guess for converting: also a lone CR is no text.
func looksBinary(b []byte) bool {
	return bytes.IndexByte(b, 0) >= 0 || bytes.Count(b, []byte{'\r'}) != bytes.Count(b, []byte("\r\n"))
}

// toBlob is a work tree's content as a blob has it.
func (r *repo) toBlob(p string, b []byte) []byte {
	if bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	m := r.eol(p)
	if !m.normal || m.auto && (looksBinary(b) || r.indexHasCR(p)) {
		return b
	}
	return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
}

// indexHasCR reports whether the blob in the index has CRLF already, which auto conversion leaves alone.
func (r *repo) indexHasCR(p string) bool {
	e := r.index().find(p)
	if e == nil || e.mode == modeGitlink {
		return false
	}
	k, data, err := r.readObject(e.id)
	return err == nil && k == blobObj && bytes.Contains(data, []byte("\r\n"))
}

// toWork is a blob as the work tree gets it.
func (r *repo) toWork(p string, b []byte) []byte {
	if bytes.IndexByte(b, '\n') < 0 {
		return b
	}
	m := r.eol(p)
	if !m.crlf || m.auto && (looksBinary(b) || bytes.Contains(b, []byte("\r\n"))) || bytes.Contains(b, []byte("\r\n")) {
		return b
	}
	return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
}
