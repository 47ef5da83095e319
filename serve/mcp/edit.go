package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/errs"
)

type editInput struct {
	Path       string `json:"path" jsonschema:"the file, absolute or relative to the start directory (/workspace)"`
	Old        string `json:"old_string" jsonschema:"the text to replace, exactly as it is in the file, with its whitespace; it must occur once, unless replace_all"`
	New        string `json:"new_string" jsonschema:"the text to put in its place; empty deletes it"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence"`
	which
}

type editOutput struct {
	Path         string `json:"path"`
	Replacements int    `json:"replacements"`
	Line         int    `json:"line" jsonschema:"number of the first line that changed"`
	Size         int64  `json:"size" jsonschema:"bytes of the file now"`
}

func addEdit(s *mcp.Server, v *conversation) {
	add(s, v, describe("edit_file", "Edit a file", `
Replace a piece of text in a file of the sandbox by another. old_string must be exactly what the file has, with all whitespace, and enough of it
to occur only once; read the file first. Where it doesn't occur, or more than once, nothing is changed and the error says which lines come close.`,
		changes), editFile)
}

func editFile(ctx context.Context, c *call, in editInput) (*done[*editOutput], error) {
	switch {
	case in.Old == "":
		return nil, errs.Msg(errs.Invalid, "edit file", in.Path, "old_string is empty").WithHint("write_file makes a file, and adds to one with append: true")
	case in.Old == in.New:
		return nil, errs.Msg(errs.Invalid, "edit file", in.Path, "old_string and new_string are the same")
	case len(in.New) > maxFile:
		return nil, errs.Msg(errs.TooLarge, "edit file", in.Path, fmt.Sprintf("new_string has more than %d bytes", maxFile))
	}
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	c.editing.Lock()
	defer c.editing.Unlock()
	info, err := c.c.StatFile(ctx, id, in.Path)
	if err != nil {
		return nil, err
	}
	if info.Type == "directory" {
		return nil, errs.Msg(errs.Invalid, "edit file", in.Path, "it is a directory")
	}
	data, err := whole(ctx, c.c, id, info)
	if err != nil {
		return nil, err
	}
	data, n, at, err := replace(data, in.Old, in.New, in.ReplaceAll)
	if err != nil {
		return nil, errs.New(errs.Precondition, "edit file", in.Path, err)
	}
	if len(data) > maxFile {
		return nil, errs.Msg(errs.TooLarge, "edit file", in.Path, fmt.Sprintf("it would have more than %d bytes", maxFile))
	}
	info, err = c.c.WriteFile(ctx, id, info.Path, fs.FileMode(info.Mode).Perm(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	out := &editOutput{Path: info.Path, Replacements: n, Line: 1 + bytes.Count(data[:at], []byte("\n")), Size: info.Size}
	words := fmt.Sprintf("Replaced 1 occurrence in %s, at line %d:\n%s", out.Path, out.Line, around(data, at, at+len(in.New)))
	if n > 1 {
		words = fmt.Sprintf("Replaced %d occurrences in %s, the first at line %d.", n, out.Path, out.Line)
	}
	return &done[*editOutput]{text: words, out: out}, nil
}

// replace replaces one text by another, and returns how often and where first. A file whose lines end in CR LF is met half way: models write LF.
func replace(data []byte, old, text string, all bool) (out []byte, n, at int, err error) {
	n = bytes.Count(data, []byte(old))
	if n == 0 && strings.Contains(old, "\n") && !strings.Contains(old, "\r") && bytes.Contains(data, []byte("\r\n")) {
		old, text = strings.ReplaceAll(old, "\n", "\r\n"), strings.ReplaceAll(text, "\n", "\r\n")
		n = bytes.Count(data, []byte(old))
	}
	switch {
	case n == 0:
		return nil, 0, 0, fmt.Errorf("old_string isn't in the file%s", near(data, old))
	case n > 1 && !all:
		return nil, 0, 0, fmt.Errorf("old_string is %d times in the file (lines %s); give more of the text around it, so that it is only once, or replace_all: true",
			n, occurrences(data, old))
	}
	at = bytes.Index(data, []byte(old))
	if grown := int64(len(data)) + int64(n)*int64(len(text)-len(old)); grown > maxFile {
		return nil, 0, 0, fmt.Errorf("the file would have %d bytes, more than %d", grown, maxFile)
	}
	return bytes.ReplaceAll(data, []byte(old), []byte(text)), n, at, nil
}

// occurrences are the numbers of the lines where a text begins, the first ten.
func occurrences(data []byte, old string) string {
	var b strings.Builder
	number, from := 1, 0
	for i := 0; ; i++ {
		next := bytes.Index(data[from:], []byte(old))
		if next < 0 {
			return b.String()
		}
		if i == 10 {
			return b.String() + ", …"
		}
		number += bytes.Count(data[from:from+next], []byte("\n"))
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, number)
		number += strings.Count(old, "\n")
		from += next + len(old)
	}
}

// near says where the file has something like a text that it doesn't have: the same but for whitespace, or its first line.
func near(data []byte, old string) string {
	lines := strings.Split(valid(data), "\n")
	want := strings.Split(strings.Trim(old, "\n"), "\n")
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	first := squeeze(want[0])
	if first == "" {
		return "; read the file and copy the text from it"
	}
	var begins []int
	for i, l := range lines {
		if squeeze(l) != first {
			continue
		}
		same := i+len(want) <= len(lines)
		for j := 1; same && j < len(want); j++ {
			same = squeeze(lines[i+j]) == squeeze(want[j])
		}
		if same {
			return fmt.Sprintf("; at line %d it has the same but for whitespace (tabs, spaces, ends of lines): copy it from there:\n%s",
				i+1, clipTo(strings.Join(lines[i:i+len(want)], "\n"), 1000))
		}
		begins = append(begins, i)
	}
	if len(begins) > 0 {
		i := begins[0]
		return fmt.Sprintf("; its first line is at line %d, but what follows differs. The file has there:\n%s",
			i+1, clipTo(strings.Join(lines[i:min(i+len(want)+1, len(lines))], "\n"), 1000))
	}
	return "; read the file and copy the text from it"
}

// around shows what is at a place, with a line before it and one after.
func around(data []byte, from, to int) string {
	begin := bytes.LastIndexByte(data[:from], '\n')
	if begin > 0 {
		begin = bytes.LastIndexByte(data[:begin], '\n')
	}
	end := len(data)
	if to = min(to, end); to < end {
		for i := 0; i < 2; i++ {
			next := bytes.IndexByte(data[to:], '\n')
			if next < 0 {
				to = end
				break
			}
			to += next + 1
		}
		end = to
	}
	return clipTo(strings.TrimSuffix(valid(data[begin+1:end]), "\n"), 2000)
}
