package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// How much of a file a call of read_file returns.
const (
	defaultLines = 2000
	mostRead     = 60_000  // bytes
	mostImage    = 5 << 20 // bytes of an image that is shown to the model
)

type readInput struct {
	Path       string `json:"path" jsonschema:"the file, absolute or relative to the start directory (/workspace)"`
	Offset     int    `json:"offset,omitempty" jsonschema:"number of the first line to return, from 1 (default 1)"`
	Limit      int    `json:"limit,omitempty" jsonschema:"how many lines to return at most (default 2000; a call returns at most 60,000 bytes anyway)"`
	ByteOffset int64  `json:"byte_offset,omitempty" jsonschema:"instead of offset: position in bytes to begin at, for files with very long lines"`
	which
}

type writeInput struct {
	Path       string `json:"path" jsonschema:"the file, absolute or relative to the start directory (/workspace); directories that are missing are made"`
	Content    string `json:"content" jsonschema:"all that the file shall hold"`
	Encoding   string `json:"encoding,omitempty" jsonschema:"utf-8 (default), or base64 where content is the base64 of binary data"`
	Append     bool   `json:"append,omitempty" jsonschema:"add content to the end of the file instead of replacing it"`
	Executable bool   `json:"executable,omitempty" jsonschema:"make it executable"`
	which
}

type writeOutput struct {
	Path string `json:"path"`
	Size int64  `json:"size" jsonschema:"bytes of the file now"`
	URI  string `json:"uri" jsonschema:"of the file as a resource"`
}

type listInput struct {
	Path   string `json:"path,omitempty" jsonschema:"the directory, absolute or relative to the start directory (default the start directory, /workspace)"`
	Depth  int    `json:"depth,omitempty" jsonschema:"how many levels: 1 (default) is the directory itself, 3 goes into its directories' directories; at most 20"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many entries at most (default 200, at most 1000)"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the call before, to go on where that ended"`
	which
}

type listOutput struct {
	Entries []entry `json:"entries"`
	Next    string  `json:"next_cursor,omitempty" jsonschema:"there is more: give it as cursor"`
}

type entry struct {
	Path string `json:"path"`
	Type string `json:"type" jsonschema:"file, directory, symlink or other"`
	Size int64  `json:"size"`
}

func addFiles(s *mcp.Server, v *conversation) {
	add(s, v, describe("read_file", "Read a file", `
Read a file of the sandbox. Text comes as it is, without line numbers, so that it can be used for edit_file; a long file in parts of up to 2000
lines: the end of the result says how to go on. Images are shown. Of other binary files the result says how to look at them.`, looks), readFile)
	add(s, v, describe("write_file", "Write a file", `
Write a file of the sandbox: make it or replace all of it, with the directories above it. To change a part of a file use edit_file instead.`,
		changes, idempotent), writeFile)
	add(s, v, describe("list_files", "List a directory", `
List files and directories of the sandbox, by path, with their sizes. To find files by name use find_files, by what they hold search_files.`, looks), listFiles)
}

func readFile(ctx context.Context, c *call, in readInput) (*done[none], error) {
	if in.Offset < 0 || in.Limit < 0 || in.ByteOffset < 0 {
		return nil, bad("offset", "offset, limit and byte_offset aren't negative")
	}
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	info, err := c.c.StatFile(ctx, id, in.Path)
	if err != nil {
		return nil, err
	}
	if info.Type == "directory" {
		return nil, errs.Msg(errs.Invalid, "read file", in.Path, "it is a directory").WithHint("list_files lists it")
	}
	r, err := open(ctx, c.c, id, in.Path, in.ByteOffset)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := bufio.NewReaderSize(r, 64<<10)
	first, _ := b.Peek(8000)
	if binary(first) && in.ByteOffset == 0 {
		return showBinary(c, id, info, b, first)
	}
	t, err := readLines(b, max(in.Offset, 1), orElse(in.Limit, defaultLines))
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "read file", in.Path, err)
	}
	return &done[none]{text: t.words(info, in.ByteOffset)}, nil
}

// open opens a file from a position on; at or behind its end there is nothing.
func open(ctx context.Context, c *client.Client, id, path string, offset int64) (io.ReadCloser, error) {
	r, err := c.ReadFileAt(ctx, id, path, offset, -1)
	if offset > 0 && errs.Is(err, errs.Invalid) {
		return io.NopCloser(strings.NewReader("")), nil
	}
	return r, err
}

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// part is some lines of a file.
type part struct {
	text        []byte
	first, last int  // numbers of lines
	lines       int  // that were seen
	more        bool // there is more behind it
	broke       bool // it ends within a line
}

// readLines reads lines from one on, as many as fit.
func readLines(b *bufio.Reader, offset, limit int) (*part, error) {
	p := &part{first: offset}
	for {
		chunk, err := b.ReadSlice('\n')
		if p.lines+1 >= offset && len(chunk) > 0 {
			if room := mostRead - len(p.text); len(chunk) > room {
				if len(p.text) == 0 || p.text[len(p.text)-1] != '\n' { // a line that by itself is too long
					for room > 0 && room < len(chunk) && !utf8.RuneStart(chunk[room]) {
						room--
					}
					p.text = append(p.text, chunk[:room]...)
					p.broke, p.last = true, p.lines+1
				}
				p.more = true
				return p, nil
			}
			p.text = append(p.text, chunk...)
			p.last = p.lines + 1
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(chunk) > 0 || err == nil {
			p.lines++
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err != nil {
			return p, nil
		}
		if p.lines-offset+1 >= limit {
			_, err := b.Peek(1)
			p.more = err == nil
			return p, nil
		}
	}
}

// words are the lines, and how to have the rest.
func (p *part) words(info *api.FileInfo, from int64) string {
	text := valid(p.text)
	switch {
	case from > 0 && p.more:
		return fmt.Sprintf("%s\n[bytes %d to %d of %d; go on with byte_offset: %d]", text, from, from+int64(len(p.text)), info.Size, from+int64(len(p.text)))
	case p.broke && p.first == 1 && p.last == 1:
		return fmt.Sprintf("%s\n[the first %d of %d bytes, cut within a line; go on with byte_offset: %d]", text, len(p.text), info.Size, len(p.text))
	case p.broke:
		return fmt.Sprintf("%s\n[line %d is longer than a call returns: cut here. exec with 'cut' or byte_offset shows the rest; the next line is offset: %d]", text, p.last, p.last+1)
	case p.more:
		return fmt.Sprintf("%s\n[lines %d to %d of a file of %d bytes; go on with offset: %d]", strings.TrimSuffix(text, "\n"), p.first, p.last, info.Size, p.last+1)
	case len(p.text) == 0 && info.Size == 0:
		return "[the file is empty]"
	case len(p.text) == 0 && from > 0:
		return fmt.Sprintf("[nothing at byte %d: the file has %d]", from, info.Size)
	case len(p.text) == 0:
		return fmt.Sprintf("[nothing at line %d: the file has %d]", p.first, p.lines)
	case p.first > 1:
		return fmt.Sprintf("%s\n[lines %d to %d, the end of the file]", strings.TrimSuffix(text, "\n"), p.first, p.last)
	}
	return text
}

// binary reports whether bytes aren't text. They may end within a character.
func binary(b []byte) bool {
	if bytes.IndexByte(b, 0) >= 0 {
		return true
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 && (len(b) >= utf8.UTFMax || utf8.FullRune(b)) {
			return true
		}
		b = b[n:]
	}
	return false
}

// showBinary shows an image, or says what else there is.
func showBinary(c *call, id string, info *api.FileInfo, r io.Reader, first []byte) (*done[none], error) {
	kind := http.DetectContentType(first)
	uri := fileURI(id, info.Path)
	if strings.HasPrefix(kind, "image/") && info.Size <= mostImage {
		data, err := io.ReadAll(io.LimitReader(r, mostImage))
		if err != nil {
			return nil, errs.New(errs.KindOf(err), "read file", info.Path, err)
		}
		return &done[none]{content: []mcp.Content{&mcp.ImageContent{Data: data, MIMEType: kind},
			&mcp.TextContent{Text: fmt.Sprintf("[%s, %d bytes, %s]", info.Path, info.Size, kind)}}}, nil
	}
	return &done[none]{content: []mcp.Content{
		&mcp.TextContent{Text: fmt.Sprintf("[%s is binary: %d bytes, %s. exec with xxd, file, strings or a program that knows the format looks into it; as a resource it is %s]",
			info.Path, info.Size, kind, uri)},
		&mcp.ResourceLink{URI: uri, Name: info.Name, MIMEType: kind, Size: &info.Size},
	}}, nil
}

func writeFile(ctx context.Context, c *call, in writeInput) (*done[*writeOutput], error) {
	data := []byte(in.Content)
	switch strings.ToLower(in.Encoding) {
	case "", "utf-8", "utf8", "text":
	case "base64":
		var err error
		if data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(in.Content), "")); err != nil {
			return nil, bad("content", "it isn't base64: "+err.Error())
		}
	default:
		return nil, bad("encoding", "want utf-8 or base64")
	}
	if strings.TrimSpace(in.Path) == "" {
		return nil, bad("path", "it is empty")
	}
	if len(data) > maxFile {
		return nil, errs.Msg(errs.TooLarge, "write file", in.Path, fmt.Sprintf("%d bytes are more than %d", len(data), maxFile)).
			WithHint("write it in parts with append: true, or let a command in the sandbox make it")
	}
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	c.editing.Lock()
	defer c.editing.Unlock()
	var mode fs.FileMode
	old, err := c.c.StatFile(ctx, id, in.Path)
	verb := "Wrote"
	switch {
	case errs.Is(err, errs.NotFound):
		verb = "Created"
	case err != nil:
		return nil, err
	case old.Type == "directory":
		return nil, errs.Msg(errs.Invalid, "write file", in.Path, "it is a directory")
	default:
		mode = fs.FileMode(old.Mode).Perm()
		if in.Append {
			verb = "Appended to"
			head, err := whole(ctx, c.c, id, old)
			if err != nil {
				return nil, err
			}
			data = append(head, data...)
		}
	}
	if in.Executable {
		mode |= 0o755
	}
	info, err := c.c.WriteFile(ctx, id, in.Path, mode, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return &done[*writeOutput]{text: fmt.Sprintf("%s %s (%d bytes).", verb, info.Path, info.Size),
		out: &writeOutput{Path: info.Path, Size: info.Size, URI: fileURI(id, info.Path)}}, nil
}

// whole reads a file that isn't too large.
func whole(ctx context.Context, c *client.Client, id string, info *api.FileInfo) ([]byte, error) {
	tooLarge := errs.Msg(errs.TooLarge, "read file", info.Path, fmt.Sprintf("it has more than %d bytes", maxFile)).
		WithHint("work on it with commands in the sandbox, such as sed, head, tail or python")
	if info.Size > maxFile {
		return nil, tooLarge
	}
	r, err := c.ReadFile(ctx, id, info.Path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "read file", info.Path, err)
	}
	if len(data) > maxFile {
		return nil, tooLarge
	}
	return data, nil
}

func listFiles(ctx context.Context, c *call, in listInput) (*done[*listOutput], error) {
	if in.Depth < 0 || in.Depth > 20 || in.Limit < 0 || in.Limit > api.MaxPage {
		return nil, bad("depth", "want a depth of 1 to 20 and a limit of 1 to 1000")
	}
	if in.Path == "" {
		in.Path = "."
	}
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	list, err := c.c.ListFiles(ctx, id, in.Path, in.Depth, client.Page{Limit: orElse(in.Limit, 200), Cursor: in.Cursor})
	if err != nil {
		return nil, err
	}
	out := &listOutput{Entries: []entry{}, Next: list.Next}
	var b strings.Builder
	for _, f := range list.Files {
		out.Entries = append(out.Entries, entry{f.Path, f.Type, f.Size})
		switch f.Type {
		case "directory":
			fmt.Fprintf(&b, "%s/\n", f.Path)
		case "symlink":
			fmt.Fprintf(&b, "%s -> %s\n", f.Path, f.Target)
		default:
			fmt.Fprintf(&b, "%s\t%d bytes\n", f.Path, f.Size)
		}
	}
	if len(list.Files) == 0 {
		b.WriteString("[the directory is empty]")
	}
	if list.Next != "" {
		fmt.Fprintf(&b, "[there is more: go on with cursor: %s]", list.Next)
	}
	return &done[*listOutput]{text: b.String(), out: out}, nil
}
