package coreutils

import (
	"errors"
	"math"
	"sort"
	"strconv"
	"strings"

	"agentrun.dev/command/tool"
)

// span is an inclusive range of positions from 1.
type span struct{ lo, hi uint64 }

// parseSpans reads cut's LIST: N, N-, N-M, -M, separated by commas or blanks. It returns the message of what is wrong. The
// spans come sorted and joined where they overlap.
func parseSpans(list string, fields, complement bool) ([]span, string) {
	var spans []span
	word, rangeWord, zero := "byte/character position", "byte or character range", "byte/character positions are numbered from 1"
	if fields {
		word, rangeWord, zero = "field value", "field range", "fields are numbered from 1"
	}
	for _, item := range strings.FieldsFunc(strings.ReplaceAll(list, ",", " , "), func(r rune) bool { return r == ' ' || r == '\t' }) {
		if item == "," {
			if len(spans) == 0 {
				return nil, zero
			}
			continue
		}
		s, bad := parseSpan(item, word, rangeWord, zero)
		if bad != "" {
			return nil, bad
		}
		spans = append(spans, s)
	}
	if len(spans) == 0 {
		return nil, zero
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].lo < spans[j].lo })
	joined := spans[:1]
	for _, s := range spans[1:] {
		last := &joined[len(joined)-1]
		if s.lo <= last.hi {
			last.hi = max(last.hi, s.hi)
		} else {
			joined = append(joined, s)
		}
	}
	if complement {
		joined = invert(joined)
	}
	return joined, ""
}

// parseSpan reads N, N-, N-M or -M.
func parseSpan(item, word, rangeWord, zero string) (s span, bad string) {
	lo, hi, ranged := strings.Cut(item, "-")
	s = span{1, math.MaxUint64}
	if lo != "" {
		if s.lo, bad = position(lo, word, zero); bad != "" {
			return s, bad
		}
	}
	switch {
	case !ranged:
		s.hi = s.lo
	case lo == "" && hi == "":
		return s, "invalid range with no endpoint: -"
	case hi != "":
		if strings.Trim(hi, "0123456789") != "" {
			return s, "invalid " + rangeWord
		}
		if s.hi, bad = position(hi, word, zero); bad != "" {
			return s, bad
		}
		if s.hi < s.lo {
			return s, "invalid decreasing range"
		}
	}
	return s, ""
}

func position(s, word, zero string) (uint64, string) {
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || n == math.MaxUint64:
		kind := "byte/character offset"
		if word == "field value" {
			kind = "field number"
		}
		return 0, kind + " " + tool.Quote(s) + " is too large"
	case err != nil:
		i := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		return 0, "invalid " + word + " " + tool.Quote(s[max(i, 0):])
	case n == 0:
		return 0, zero
	}
	return n, ""
}

func invert(spans []span) []span {
	var out []span
	next := uint64(1)
	for _, s := range spans {
		if s.lo > next {
			out = append(out, span{next, s.lo - 1})
		}
		if s.hi == math.MaxUint64 {
			return out
		}
		next = s.hi + 1
	}
	return append(out, span{next, math.MaxUint64})
}
