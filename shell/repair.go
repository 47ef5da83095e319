package shell

import (
	"encoding/hex"
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The parser checks at once what bash looks at only when it comes to it: the inside of arithmetic and of ${…}. Where such
// text can't be parsed, it is replaced by a name that carries it, and bash's own error or expansion follows at run time.
const (
	rawArith = "_AGENTRUN_ARITH_"
	rawParam = "_AGENTRUN_PARAM_"
)

func encodeRaw(s, kind string) string { return kind + hex.EncodeToString([]byte(s)) }

func decodeRaw(name, kind string) (string, bool) {
	h, ok := strings.CutPrefix(name, kind)
	if !ok {
		return "", false
	}
	b, err := hex.DecodeString(h)
	return string(b), err == nil
}

// maxRepairs bounds how often one text is mended.
const maxRepairs = 64

// parseText parses text, mending what bash would take.
func (sh *Shell) parseText(text string) (*syntax.File, error) {
	f, err := sh.newParser().Parse(strings.NewReader(text), "")
	first := err
	for range maxRepairs {
		if err == nil {
			return f, nil
		}
		mended, ok := repair(text, err)
		if !ok {
			return nil, first
		}
		text = mended
		f, err = sh.newParser().Parse(strings.NewReader(text), "")
	}
	if err == nil {
		return f, nil
	}
	return nil, first
}

// mend tries a unit again whose lines can't be parsed, with as many more lines as it needs.
func (r *textReader) mend(lr *lineReader, perr error) ([]*syntax.Stmt, error) {
	for {
		text := lr.fed.String()
		if _, ok := repair(text, perr); !ok {
			return nil, perr
		}
		f, err := r.sh.parseText(text)
		if err == nil {
			return f.Stmts, nil
		}
		if !syntax.IsIncomplete(err) {
			mended, e := text, perr
			for range maxRepairs {
				m, ok := repair(mended, e)
				if !ok {
					break
				}
				mended = m
				if _, e = r.sh.newParser().Parse(strings.NewReader(mended), ""); e == nil {
					break
				}
			}
			if !syntax.IsIncomplete(e) {
				return nil, perr
			}
		}
		line := r.line()
		if line == "" {
			return nil, perr
		}
		lr.add(line)
	}
}

// repair changes a text at the place of an error; false where nothing can be done.
func repair(text string, err error) (string, bool) {
	off, msg := 0, ""
	var pe syntax.ParseError
	var le syntax.LangError
	switch {
	case errors.As(err, &pe):
		off, msg = int(pe.Pos.Offset()), pe.Text
	case errors.As(err, &le):
		off, msg = int(le.Pos.Offset()), le.Feature
	default:
		return "", false
	}
	if off > len(text) {
		return "", false
	}
	switch {
	case strings.Contains(msg, "invalid var name"):
		if off < len(text) && isLetter(text[off]) {
			return text[:off] + "'" + text[off:off+1] + "'" + text[off+1:], true
		}
		return "", false
	case strings.Contains(msg, "cannot negate a command multiple times"):
		if i := strings.Index(text[off:], "!"); i >= 0 {
			rest := strings.TrimLeft(text[off+i+1:], " \t")
			if strings.HasPrefix(rest, "!") {
				return text[:off+i] + rest[1:], true
			}
		}
		return "", false
	case strings.Contains(msg, "must be followed by `=`"), strings.Contains(msg, "must be followed by ="):
		if strings.HasPrefix(text[off:], "[") {
			if end := strings.Index(text[off:], "]+="); end > 0 && !strings.Contains(text[off:off+end], "\n") {
				return text[:off] + `\` + text[off:], true
			}
		}
	}
	if s, ok := quoteSubscript(text, off); ok {
		return s, true
	}
	return repairNested(text, off)
}

// quoteSubscript quotes the key of an associative array that isn't an expression, as in ${m[two words]} and m[a b]=c.
func quoteSubscript(text string, off int) (string, bool) {
	for i := min(off, len(text)-1); i > 0 && off-i < 256 && text[i] != '\n'; i-- {
		if text[i] != '[' || !isAlnum(text[i-1]) {
			continue
		}
		start := i
		for start > 0 && isAlnum(text[start-1]) {
			start--
		}
		if !validName(text[start:i]) {
			return "", false
		}
		end := strings.IndexAny(text[i:], "]\n")
		if end < 2 || text[i+end] != ']' || i+end < off-1 {
			return "", false
		}
		sub := text[i+1 : i+end]
		braced := start >= 2 && strings.HasSuffix(strings.TrimRight(text[:start], "!#"), "${")
		assigned := strings.HasPrefix(text[i+end:], "]=") || strings.HasPrefix(text[i+end:], "]+=")
		if strings.ContainsAny(sub, "\"'`\\") || !strings.Contains(sub, " ") || !braced && !assigned {
			return "", false
		}
		return text[:i+1] + `"` + sub + `"` + text[i+end:], true
	}
	return "", false
}

// repairNested replaces the innermost $((…)), ((…)) or ${…} around a place.
func repairNested(text string, off int) (string, bool) {
	for i := min(off, len(text)-1); i >= 0 && off-i < 4096; i-- {
		switch {
		case strings.HasPrefix(text[i:], "${"):
			end := skipNested(text, i+1)
			if end >= len(text) || end < off-1 || strings.HasPrefix(text[i+2:], rawParam) {
				continue
			}
			return text[:i] + "${" + encodeRaw(text[i:end+1], rawParam) + "}" + text[end+1:], true
		case strings.HasPrefix(text[i:], "$((") || strings.HasPrefix(text[i:], "((") && (i == 0 || text[i-1] != '$' && text[i-1] != '('):
			start := i + 2
			if text[i] == '$' {
				start = i + 3
			}
			end := closeParens(text, start-1)
			if end < 0 || end < off-1 || strings.HasPrefix(text[start:], rawArith) {
				continue
			}
			// Two closing brackets side by side end arithmetic; otherwise it is a subshell within another one.
			if end+1 < len(text) && text[end+1] == ')' {
				return text[:start] + encodeRaw(text[start:end], rawArith) + text[end:], true
			}
			return text[:start-1] + " " + text[start-1:], true
		}
	}
	return "", false
}

// closeParens returns where the parenthesis at s[i] closes, -1 if it doesn't; quotes are skipped.
func closeParens(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		case '\\':
			i++
		case '\'':
			if j := strings.IndexByte(s[i+1:], '\''); j >= 0 {
				i += j + 1
			}
		}
	}
	return -1
}

// expandArithText expands an arithmetic expression that only its text is known of.
func (sh *Shell) expandArithText(raw string) string {
	w, err := sh.newParser().Document(strings.NewReader(raw))
	if err != nil || w == nil {
		return raw
	}
	return sh.heredoc(w)
}
