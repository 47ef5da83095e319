package rg

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentrun.dev/command/tool"
)

// counted is standard output, with the number of bytes that were written.
type counted struct {
	w *bufio.Writer
	n int64
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return c.w.Write(b)
}

// WriteString writes a string.
func (c *counted) WriteString(s string) (int, error) {
	c.n += int64(len(s))
	return c.w.WriteString(s)
}

// WriteByte writes a byte.
func (c *counted) WriteByte(b byte) error {
	c.n++
	return c.w.WriteByte(b)
}

// stats are the numbers of --stats and --json.
type stats struct {
	searches, withMatch      int64
	searched, printed        int64
	matchedLines, allMatches int64
}

// add counts a file.
func (x *stats) add(c *scan, printed int64) {
	x.searches++
	if c.selected > 0 {
		x.withMatch++
	}
	x.searched += c.offset
	x.printed += printed
	x.matchedLines += c.selected
	x.allMatches += c.matches
}

// complain reports a file's failure, unless --no-messages.
func (s *searcher) complain(format string, args ...any) {
	s.failed = true
	if !s.noMessages {
		s.t.Out.Flush()
		fmt.Fprintf(s.t.Stderr(), format+"\n", args...)
	}
}

// data is a text of an event: as it is, or in base64 if it isn't UTF-8.
func data(b []byte) string {
	if utf8.Valid(b) {
		return `{"text":` + quote(string(b)) + `}`
	}
	return `{"bytes":"` + base64.StdEncoding.EncodeToString(b) + `"}`
}

// quote is a string of JSON with no more escapes than it needs.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(s)
	return strings.NewReplacer("\\u2028", "\u2028", "\\u2029", "\u2029").Replace(strings.TrimSuffix(b.String(), "\n"))
}

func withNewline(line []byte) []byte { return append(line[:len(line):len(line)], '\n') }

// event writes lines of a file, matching or around such.
func (c *scan) event(kind string, text []byte, number, offset int64, found [][]int) {
	out := c.s.out
	if !c.begun {
		c.begun = true
		out.WriteString(`{"type":"begin","data":{"path":` + data([]byte(c.name)) + "}}\n")
	}
	var subs []string
	for _, m := range found {
		subs = append(subs, `{"match":`+data(text[m[0]:m[1]])+`,"start":`+strconv.Itoa(m[0])+`,"end":`+strconv.Itoa(m[1])+`}`)
	}
	fmt.Fprintf(out, `{"type":"%s","data":{"path":%s,"lines":%s,"line_number":%d,"absolute_offset":%d,"submatches":[%s]}}`+"\n", kind, data([]byte(c.name)), data(text), number, offset, strings.Join(subs, ","))
}

// eventEnd writes that a file is done.
func (c *scan) eventEnd() {
	s := c.s
	printed := s.out.n - c.from
	var one stats
	one.add(c, printed)
	s.stats.add(c, printed)
	fmt.Fprintf(s.out, `{"type":"end","data":{"path":%s,"binary_offset":null,"stats":{"elapsed":{"secs":0,"nanos":0,"human":"0.000000s"},"searches":1,"searches_with_match":%d,"bytes_searched":%d,"bytes_printed":%d,"matched_lines":%d,"matches":%d}}}`+"\n",
		data([]byte(c.name)), one.withMatch, one.searched, one.printed, one.matchedLines, one.allMatches)
}

// summary writes the numbers of the whole search.
func (s *searcher) summary(started time.Time) {
	if s.stats == nil || s.json && s.quiet {
		return
	}
	x, took := s.stats, s.t.Now().Sub(started)
	if s.json {
		fmt.Fprintf(s.out, `{"data":{"elapsed_total":{"human":"%.6fs","nanos":%d,"secs":%d},"stats":{"bytes_printed":%d,"bytes_searched":%d,"elapsed":{"human":"%.6[1]fs","nanos":%[2]d,"secs":%[3]d},"matched_lines":%[6]d,"matches":%d,"searches":%d,"searches_with_match":%d}},"type":"summary"}`+"\n",
			took.Seconds(), took.Nanoseconds()%1e9, int64(took.Seconds()), x.printed, x.searched, x.matchedLines, x.allMatches, x.searches, x.withMatch)
		return
	}
	fmt.Fprintf(s.out, "\n%d matches\n%d matched lines\n%d files contained matches\n%d files searched\n%d bytes printed\n%d bytes searched\n%.6f seconds spent searching\n%.6[7]f seconds\n",
		x.allMatches, x.matchedLines, x.withMatch, x.searches, x.printed, x.searched, took.Seconds())
}

// listTypes prints the types of files that there are.
func listTypes(t *tool.T) {
	for _, line := range strings.Split(strings.TrimSpace(typeGlobs), "\n") {
		name, globs, _ := strings.Cut(line, ":")
		var list []string
		for _, g := range strings.Fields(globs) {
			if g[0] == '.' {
				g = "*" + g
			}
			list = append(list, g)
		}
		fmt.Fprintf(t.Out, "%s: %s\n", name, strings.Join(list, ", "))
	}
}

// unescape replaces \n, \t and \xHH.
func unescape(s string) string {
	if u, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`); err == nil {
		return u
	}
	return s
}
