package jq

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// printer renders values as jq does.
type printer struct {
	compact, sort, ascii, tab, color bool
	indent                           int
	order                            *order
}

func (p *printer) text(v any) string {
	var b strings.Builder
	p.write(&b, v, 0)
	return b.String()
}

// keys returns an object's keys in the order in which they are printed.
func (p *printer) keys(m map[string]any) []string {
	o := p.order
	if known, ok := o.objects[reflect.ValueOf(m).Pointer()]; ok && len(known) == len(m) && !p.sort {
		return known
	}
	keys := make([]string, 0, len(m))
	inText := true
	for k := range m {
		keys = append(keys, k)
		if _, ok := o.inText[k]; !ok {
			inText = false
		}
	}
	slices.Sort(keys)
	if p.sort {
		return keys
	}
	rank := func(k string) int {
		if !inText {
			if n, ok := o.seen[k]; ok {
				return n
			}
		}
		if n, ok := o.inText[k]; ok {
			return n + maxOrders
		}
		return 2 * maxOrders
	}
	slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	return keys
}

// Colors of jq 1.6.
const (
	colNull   = "\x1b[1;30m"
	colPlain  = "\x1b[0;39m"
	colString = "\x1b[0;32m"
	colNest   = "\x1b[1;39m"
	colKey    = "\x1b[34;1m"
	colEnd    = "\x1b[0m"
)

func (p *printer) newline(b *strings.Builder, depth int) {
	if p.compact {
		return
	}
	b.WriteByte('\n')
	if p.tab {
		b.WriteString(strings.Repeat("\t", depth))
	} else {
		b.WriteString(strings.Repeat(" ", depth*p.indent))
	}
}

func (p *printer) put(b *strings.Builder, color, s string) {
	if p.color {
		b.WriteString(color + s + colEnd)
	} else {
		b.WriteString(s)
	}
}

func (p *printer) write(b *strings.Builder, v any, depth int) {
	switch v := v.(type) {
	case nil:
		p.put(b, colNull, "null")
	case bool:
		p.put(b, colPlain, strconv.FormatBool(v))
	case int:
		p.put(b, colPlain, strconv.Itoa(v))
	case float64:
		p.put(b, colPlain, formatFloat(v))
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		p.put(b, colPlain, formatFloat(f))
	case string:
		p.put(b, colString, p.quote(v))
	case []any:
		p.list(b, v, depth)
	case map[string]any:
		p.object(b, v, depth)
	default:
		p.put(b, colPlain, fmt.Sprint(v))
	}
}

// mark writes punctuation of arrays and objects.
func (p *printer) mark(b *strings.Builder, s string) {
	if p.color {
		b.WriteString(colNest)
	}
	b.WriteString(s)
}

func (p *printer) list(b *strings.Builder, v []any, depth int) {
	p.mark(b, "[")
	for i, x := range v {
		if i > 0 {
			p.mark(b, ",")
		}
		p.newline(b, depth+1)
		if p.color {
			b.WriteString(colEnd)
		}
		p.write(b, x, depth+1)
	}
	if len(v) > 0 {
		if p.color {
			b.WriteString(colNest)
		}
		p.newline(b, depth)
	}
	p.mark(b, "]")
	if p.color {
		b.WriteString(colEnd)
	}
}

func (p *printer) object(b *strings.Builder, m map[string]any, depth int) {
	p.mark(b, "{")
	for i, k := range p.keys(m) {
		if i > 0 {
			p.mark(b, ",")
		}
		p.newline(b, depth+1)
		if p.color {
			b.WriteString(colEnd)
		}
		p.put(b, colKey, p.quote(k))
		p.mark(b, ":")
		if !p.compact {
			b.WriteByte(' ')
		}
		if p.color {
			b.WriteString(colEnd)
		}
		p.write(b, m[k], depth+1)
	}
	if len(m) > 0 {
		if p.color {
			b.WriteString(colNest)
		}
		p.newline(b, depth)
	}
	p.mark(b, "}")
	if p.color {
		b.WriteString(colEnd)
	}
}

func (p *printer) quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteByte(byte(r))
		case strings.ContainsRune("\b\f\n\r\t", r):
			b.WriteString(`\` + string("bfnrt"[strings.IndexRune("\b\f\n\r\t", r)]))
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		case p.ascii && r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case p.ascii && r > 0x7e:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}

// formatFloat renders a number with as few digits as tell it from others, at most 17.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "null"
	case math.IsInf(f, 0):
		f = math.Copysign(math.MaxFloat64, f)
	case f == 0:
		if math.Signbit(f) {
			return "-0"
		}
		return "0"
	}
	e := strconv.FormatFloat(f, 'e', -1, 64)
	mantissa, exp, _ := strings.Cut(e, "e")
	digits := len(strings.TrimLeft(strings.Replace(mantissa, ".", "", 1), "-"))
	n, _ := strconv.Atoi(exp)
	if point := n + 1; point <= -4 || point > digits+15 {
		return e
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
