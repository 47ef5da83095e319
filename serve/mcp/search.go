package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// Limits of searches.
const (
	defaultMatches = 100
	mostMatches    = 1000
	mostLine       = 400     // bytes of a line that is shown
	mostScanned    = 500_000 // files that find_files looks at
	searchTimeout  = 60      // seconds
)

type searchInput struct {
	Pattern    string `json:"pattern" jsonschema:"extended regular expression, as grep -E has it, that a line must match"`
	Path       string `json:"path,omitempty" jsonschema:"directory or file to search in, absolute or relative to the start directory (default the start directory, /workspace)"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files with names like this, such as *.go"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"pattern is plain text and not a regular expression"`
	Limit      int    `json:"limit,omitempty" jsonschema:"how many matches at most (default 100, at most 1000)"`
	Offset     int    `json:"offset,omitempty" jsonschema:"how many matches to skip, to go on where the call before ended"`
	which
}

type searchOutput struct {
	Matches []match `json:"matches"`
	Next    int     `json:"next_offset,omitempty" jsonschema:"there is more: give it as offset"`
}

type match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

type findInput struct {
	Pattern string `json:"pattern" jsonschema:"what paths look like: * is anything within a name, ** any directories, ? one character, [a-z] one of several, {a,b} one of two; such as **/*.go, src/**/test_*.py or README*"`
	Path    string `json:"path,omitempty" jsonschema:"directory to search in, absolute or relative to the start directory (default the start directory, /workspace)"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many paths at most (default 100, at most 1000)"`
	Offset  int    `json:"offset,omitempty" jsonschema:"how many paths to skip, to go on where the call before ended"`
	which
}

type findOutput struct {
	Paths []string `json:"paths"`
	Total int      `json:"total" jsonschema:"how many there are"`
	Next  int      `json:"next_offset,omitempty" jsonschema:"there is more: give it as offset"`
}

func addSearch(s *mcp.Server, v *conversation) {
	add(s, v, describe("search_files", "Search in files", `
Search for lines that match a regular expression, in all text files below a directory of the sandbox (grep). Returns path, number and text of each
line. Files below .git and node_modules are left out, unless path is in there.`, looks), searchFiles)
	add(s, v, describe("find_files", "Find files by name", `
Find files of the sandbox whose path below a directory matches a glob, such as **/*.py. Sorted by path. A pattern without a slash matches names at
any depth. What is below .git and node_modules is left out, unless path is in there.`, looks), findFiles)
}

// limits checks what lists have.
func limits(limit, offset int) (int, error) {
	if limit < 0 || limit > mostMatches || offset < 0 || offset > 1<<30 {
		return 0, bad("limit", fmt.Sprintf("want a limit of 1 to %d, and an offset that isn't negative", mostMatches))
	}
	return orElse(limit, defaultMatches), nil
}

// errEnough ends a search that has found enough.
var errEnough = errors.New("enough")

// lines runs a command in a sandbox and yields what it writes, in pieces that end with a byte. Its status is −1 where do ended it with errEnough.
func (c *call) lines(ctx context.Context, id string, args []string, end byte, do func(b []byte) error) (status int, stderr string, err error) {
	var rest, wrong []byte
	res, err := c.c.RunStream(ctx, id, api.Run{Args: args, Timeout: searchTimeout}, func(e *api.RunEvent) error {
		if e.Type == "stderr" && len(wrong) < 2000 {
			wrong = append(wrong, e.Data...)
		}
		if e.Type != "stdout" {
			return nil
		}
		rest = append(rest, e.Data...)
		for {
			i := bytes.IndexByte(rest, end)
			if i < 0 {
				if len(rest) > 1<<20 {
					rest = rest[:1<<10] // one line of a megabyte: its beginning is all that is ever shown
				}
				rest = bytes.Clone(rest)
				return nil
			}
			if err := do(rest[:i]); err != nil {
				return err
			}
			rest = rest[i+1:]
		}
	})
	if errors.Is(err, errEnough) {
		return -1, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	if res.TimedOut {
		return 0, "", errs.Msg(errs.Limit, "search", "", fmt.Sprintf("it took longer than %d s", searchTimeout)).WithHint("search in a directory further below, or use exec")
	}
	return res.ExitCode, strings.TrimSpace(valid(wrong)), nil
}

// skipped are directories that searches leave out.
var skipped = []string{".git", "node_modules"}

func searchFiles(ctx context.Context, c *call, in searchInput) (*done[*searchOutput], error) {
	limit, err := limits(in.Limit, in.Offset)
	if err != nil {
		return nil, err
	}
	if in.Pattern == "" || strings.ContainsAny(in.Pattern, "\n\x00") || len(in.Pattern) > 10_000 {
		return nil, bad("pattern", "want an expression for one line")
	}
	args := []string{"grep", "-r", "-n", "-H", "-I", "-Z"}
	if in.Literal {
		args = append(args, "-F")
	} else {
		args = append(args, "-E")
	}
	if in.IgnoreCase {
		args = append(args, "-i")
	}
	if in.Glob != "" {
		args = append(args, "--include="+in.Glob)
	}
	where := orDot(in.Path)
	for _, s := range skipped {
		if !slices.Contains(strings.Split(where, "/"), s) {
			args = append(args, "--exclude-dir="+s)
		}
	}
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	out := &searchOutput{Matches: []match{}}
	seen := 0
	status, stderr, err := c.lines(ctx, id, append(args, "-e", in.Pattern, "--", where), '\n', func(b []byte) error {
		name, rest, ok := bytes.Cut(b, []byte{0})
		number, text, ok2 := bytes.Cut(rest, []byte(":"))
		n, err := strconv.Atoi(string(number))
		if !ok || !ok2 || err != nil {
			return nil // such as a word on a binary file
		}
		if seen++; seen <= in.Offset {
			return nil
		}
		if len(out.Matches) == limit {
			out.Next = in.Offset + limit
			return errEnough
		}
		out.Matches = append(out.Matches, match{strings.TrimPrefix(valid(name), "./"), n, clipTo(valid(text), mostLine)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if status > 1 && len(out.Matches) == 0 {
		return nil, errs.Msg(errs.Invalid, "search files", in.Pattern, orElseText(stderr, "grep failed")).WithHint("literal: true takes the pattern as plain text")
	}
	var b strings.Builder
	for _, m := range out.Matches {
		fmt.Fprintf(&b, "%s:%d:%s\n", m.Path, m.Line, m.Text)
	}
	switch {
	case out.Next > 0:
		fmt.Fprintf(&b, "[there are more: go on with offset: %d, or search for less]", out.Next)
	case len(out.Matches) == 0 && in.Offset > 0:
		fmt.Fprintf(&b, "[no more: there are %d]", seen)
	case len(out.Matches) == 0:
		b.WriteString("[no line matches]")
	}
	return &done[*searchOutput]{text: b.String(), out: out}, nil
}

func orDot(p string) string { return orElseText(p, ".") }

func orElseText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func findFiles(ctx context.Context, c *call, in findInput) (*done[*findOutput], error) {
	limit, err := limits(in.Limit, in.Offset)
	if err != nil {
		return nil, err
	}
	where, pattern := orDot(in.Path), in.Pattern
	if path.IsAbs(pattern) { // models do that: the part without wildcards is where
		cut := strings.IndexAny(pattern, "*?[{")
		if cut < 0 {
			cut = len(pattern)
		}
		cut = strings.LastIndexByte(pattern[:cut], '/')
		where, pattern = orElseText(pattern[:cut], "/"), pattern[cut+1:]
	}
	re, err := globExpression(strings.TrimPrefix(pattern, "./"))
	if err != nil {
		return nil, bad("pattern", err.Error())
	}
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	args := []string{"find", where}
	for _, s := range skipped {
		if !slices.Contains(strings.Split(where, "/"), s) {
			args = append(args, "-name", s, "-prune", "-o")
		}
	}
	var found []string
	scanned := 0
	status, stderr, err := c.lines(ctx, id, append(args, "-type", "f", "-print0"), 0, func(b []byte) error {
		if scanned++; scanned > mostScanned {
			return errs.Msg(errs.Limit, "find files", where, fmt.Sprintf("there are more than %d files", mostScanned)).WithHint("search in a directory further below")
		}
		p := valid(b)
		below := strings.TrimPrefix(strings.TrimPrefix(p, where), "/")
		if re.MatchString(below) {
			found = append(found, strings.TrimPrefix(p, "./"))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if status != 0 && scanned == 0 {
		return nil, errs.Msg(errs.NotFound, "find files", where, orElseText(stderr, "find failed"))
	}
	slices.Sort(found)
	out := &findOutput{Paths: []string{}, Total: len(found)}
	from := min(in.Offset, len(found))
	to := min(from+limit, len(found))
	out.Paths = append(out.Paths, found[from:to]...)
	var b strings.Builder
	for _, p := range out.Paths {
		fmt.Fprintln(&b, p)
	}
	switch {
	case to < len(found):
		out.Next = to
		fmt.Fprintf(&b, "[%d to %d of %d; go on with offset: %d]", from+1, to, len(found), to)
	case len(out.Paths) == 0:
		fmt.Fprintf(&b, "[none: %d files were looked at, %d match]", scanned, len(found))
	}
	return &done[*findOutput]{text: b.String(), out: out}, nil
}

// globExpression makes an expression of a glob. One without a slash matches at any depth.
func globExpression(glob string) (*regexp.Regexp, error) {
	if glob == "" || len(glob) > 1000 {
		return nil, errors.New("want a glob, such as **/*.go")
	}
	if !strings.Contains(glob, "/") {
		glob = "**/" + glob
	}
	var b strings.Builder
	b.WriteString("^(?s:")
	depth := 0
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case strings.HasPrefix(glob[i:], "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[':
			end := strings.IndexByte(glob[min(i+2, len(glob)):], ']')
			if end < 0 {
				b.WriteString(`\[`)
				break
			}
			set := glob[i+1 : i+2+end]
			b.WriteByte('[')
			if set[0] == '!' || set[0] == '^' {
				b.WriteByte('^')
				set = set[1:]
			}
			b.WriteString(strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(set) + "]")
			i += 2 + end
		case c == '{':
			b.WriteString("(?:")
			depth++
		case c == ',' && depth > 0:
			b.WriteByte('|')
		case c == '}' && depth > 0:
			b.WriteByte(')')
			depth--
		case c == '\\' && i+1 < len(glob):
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}
	if depth > 0 {
		return nil, errors.New("a { isn't closed")
	}
	re, err := regexp.Compile(b.String() + ")$")
	if err != nil {
		return nil, fmt.Errorf("not a glob: %w", err)
	}
	return re, nil
}
