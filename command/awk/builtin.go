package awk

import (
	"math"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentrun.dev/command/datetime"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

func (in *interp) builtin(x *builtinCall) value {
	a := x.args
	switch x.name {
	case "length":
		if len(a) == 0 {
			return num(float64(utf8.RuneCountInString(in.line())))
		}
		if v, ok := a[0].(*varRef); ok && in.slot(v).arr != nil {
			return num(float64(len(in.slot(v).arr.m)))
		}
		return num(float64(utf8.RuneCountInString(in.text(a[0]))))
	case "substr":
		return str(in.substr(a))
	case "index":
		s, t := in.text(a[0]), in.text(a[1])
		i := strings.Index(s, t)
		if i < 0 {
			return num(0)
		}
		return num(float64(utf8.RuneCountInString(s[:i]) + 1))
	case "split", "patsplit":
		return num(float64(in.splitInto(x)))
	case "sub", "gsub":
		return num(float64(in.substitute(x)))
	case "gensub":
		return str(in.gensub(a))
	case "match":
		return num(float64(in.match(a)))
	case "sprintf":
		args := make([]value, len(a))
		for i := range a {
			args[i] = in.eval(a[i])
		}
		return str(sprintf(args[0].text(in.convfmt), args[1:], in.convfmt))
	case "tolower":
		return str(strings.ToLower(in.text(a[0])))
	case "toupper":
		return str(strings.ToUpper(in.text(a[0])))
	case "system", "close", "fflush":
		return num(float64(in.systemCall(x.name, a)))
	case "asort", "asorti":
		return num(float64(in.asort(a, x.name == "asorti")))
	case "isarray":
		v, ok := a[0].(*varRef)
		return boolean(ok && in.slot(v).arr != nil)
	case "typeof":
		return str(in.typeOf(a[0]))
	case "strftime", "systime", "mktime":
		return in.timeCall(x.name, a)
	}
	return num(in.math(x.name, a))
}

func (in *interp) typeOf(x expr) string {
	if v, ok := x.(*varRef); ok && in.slot(v).arr != nil {
		return "array"
	}
	switch v := in.eval(x).settle(); v.kind {
	case isNum:
		return "number"
	case wasNum:
		return "strnum"
	case uninit:
		return "untyped"
	}
	return "string"
}

func (in *interp) math(name string, a []expr) float64 {
	arg := func(i int) float64 { return in.number(a[i]) }
	bits := func(i int) uint64 { return uint64(int64(max(min(arg(i), 1<<62), -1<<62))) }
	switch name {
	case "sin":
		return math.Sin(arg(0))
	case "cos":
		return math.Cos(arg(0))
	case "atan2":
		y := arg(0)
		return math.Atan2(y, arg(1))
	case "exp":
		return math.Exp(arg(0))
	case "log":
		return math.Log(arg(0))
	case "sqrt":
		return math.Sqrt(arg(0))
	case "int":
		return math.Trunc(arg(0))
	case "rand":
		return in.rng.Float64()
	case "srand":
		old := in.seed
		if len(a) > 0 {
			in.seed = arg(0)
		} else {
			in.seed = float64(in.t.Now().Unix())
		}
		in.rng = rand.New(rand.NewSource(int64(in.seed)))
		return old
	case "strtonum":
		s := strings.TrimSpace(in.text(a[0]))
		if v, err := strconv.ParseInt(s, 0, 64); err == nil && strings.HasPrefix(s, "0") {
			return float64(v)
		}
		v := str(s)
		return v.number()
	case "lshift":
		return float64(bits(0) << min(bits(1), 63))
	case "rshift":
		return float64(bits(0) >> min(bits(1), 63))
	case "compl":
		return float64(^bits(0) & (1<<53 - 1))
	}
	acc := bits(0)
	for i := 1; i < len(a); i++ {
		switch name {
		case "and":
			acc &= bits(i)
		case "or":
			acc |= bits(i)
		case "xor":
			acc ^= bits(i)
		}
	}
	return float64(acc)
}

// substr counts characters from 1; what lies outside of the string is cut off, by rounding as POSIX has it.
func (in *interp) substr(a []expr) string {
	s := in.text(a[0])
	from := in.number(a[1])
	end := math.Inf(1)
	from = math.RoundToEven(from)
	if len(a) > 2 {
		n := math.RoundToEven(in.number(a[2]))
		if math.IsNaN(n) {
			return ""
		}
		end = from + n
	}
	if math.IsNaN(from) {
		return ""
	}
	ascii := true
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		lo, hi := max(from-1, 0), min(end-1, float64(len(s)))
		if lo >= hi {
			return ""
		}
		return s[int(lo):int(hi)]
	}
	r := []rune(s)
	lo, hi := max(from-1, 0), min(end-1, float64(len(r)))
	if lo >= hi {
		return ""
	}
	return string(r[int(lo):int(hi)])
}

func (in *interp) splitInto(x *builtinCall) int {
	s := in.text(x.args[0])
	fs := in.special(vFS)
	var parts []string
	switch {
	case x.name == "patsplit":
		re := in.dynamic("[^ \t\n]+")
		if len(x.args) > 2 {
			re = in.regex(x.args[2])
		}
		all, err := re.FindAll([]byte(s), -1)
		if err != nil {
			in.fail("%s", err)
		}
		for _, loc := range all {
			parts = append(parts, s[loc[0]:loc[1]])
		}
	case len(x.args) > 2:
		if r, ok := x.args[2].(*regexLit); ok && r.empty {
			parts = in.splitText(s, "", nil, false)
		} else if ok {
			parts = in.splitText(s, "", r.re, false)
		} else {
			parts = in.splitText(s, in.text(x.args[2]), nil, false)
		}
	default:
		parts = in.splitText(s, fs, nil, false)
	}
	arr := in.array(x.args[1].(*varRef))
	in.forget(arr)
	arr.clear()
	for i, p := range parts {
		in.put(arr, strconv.Itoa(i+1), input(p))
	}
	return len(parts)
}

// substitute is sub and gsub.
func (in *interp) substitute(x *builtinCall) int {
	re := in.regex(x.args[0])
	repl := in.text(x.args[1])
	var target expr = &fieldRef{&numLit{num(0)}}
	if len(x.args) > 2 {
		target = x.args[2]
	}
	s := in.text(target)
	limit := 1
	if x.name == "gsub" {
		limit = -1
	}
	all, err := re.FindAll([]byte(s), limit)
	if err != nil {
		in.fail("%s", err)
	}
	if len(all) == 0 {
		return 0
	}
	var b strings.Builder
	at := 0
	for _, loc := range all {
		b.WriteString(s[at:loc[0]])
		for i := 0; i < len(repl); i++ {
			switch {
			case repl[i] == '\\' && i+1 < len(repl) && (repl[i+1] == '&' || repl[i+1] == '\\'):
				i++
				b.WriteByte(repl[i])
			case repl[i] == '&':
				b.WriteString(s[loc[0]:loc[1]])
			default:
				b.WriteByte(repl[i])
			}
		}
		at = loc[1]
		if b.Len() > tool.MaxLine {
			in.fail("memory exhausted")
		}
	}
	b.WriteString(s[at:])
	if isLvalue(target) {
		in.store(target, str(b.String()))
	}
	return len(all)
}

// gensub replaces all matches or the n-th, with groups \0 to \9.
func (in *interp) gensub(a []expr) string {
	re, repl, how := in.regex(a[0]), in.text(a[1]), in.text(a[2])
	s := in.line()
	if len(a) > 3 {
		s = in.text(a[3])
	}
	all, err := re.FindAll([]byte(s), -1)
	if err != nil {
		in.fail("%s", err)
	}
	n := 0
	if how == "" || how[0]|0x20 != 'g' {
		v := str(how)
		n = max(1, int(v.number()))
	}
	var b strings.Builder
	at := 0
	for k, loc := range all {
		if n > 0 && k+1 != n {
			continue
		}
		b.WriteString(s[at:loc[0]])
		for i := 0; i < len(repl); i++ {
			group := -1
			if repl[i] == '&' {
				group = 0
			} else if repl[i] == '\\' && i+1 < len(repl) {
				i++
				if isDigit(repl[i]) {
					group = int(repl[i] - '0')
				}
			}
			if group < 0 {
				b.WriteByte(repl[i])
			} else if 2*group+1 < len(loc) && loc[2*group] >= 0 {
				b.WriteString(s[loc[2*group]:loc[2*group+1]])
			}
		}
		at = loc[1]
	}
	b.WriteString(s[at:])
	return b.String()
}

func (in *interp) match(a []expr) int {
	s := in.text(a[0])
	loc, err := in.regex(a[1]).Find([]byte(s))
	if err != nil {
		in.fail("%s", err)
	}
	start, length := 0, -1
	if loc != nil {
		start = utf8.RuneCountInString(s[:loc[0]]) + 1
		length = utf8.RuneCountInString(s[loc[0]:loc[1]])
	}
	in.globals[vRSTART].v, in.globals[vRLENGTH].v = num(float64(start)), num(float64(length))
	if len(a) > 2 {
		arr := in.array(a[2].(*varRef))
		in.forget(arr)
		arr.clear()
		for i := 0; i+1 < len(loc); i += 2 {
			if loc[i] >= 0 {
				in.put(arr, strconv.Itoa(i/2), input(s[loc[i]:loc[i+1]]))
			}
		}
	}
	return start
}

func (in *interp) systemCall(name string, a []expr) int {
	switch name {
	case "close":
		return in.io.closeStream(in.text(a[0]))
	case "fflush":
		in.io.flush()
		return 0
	}
	line := in.text(a[0])
	in.io.flush()
	child, err := in.t.Spawn(proc.Spawn{Args: []string{"sh", "-c", line}})
	if err != nil {
		return -1
	}
	status, err := in.t.Wait(child)
	if err != nil {
		in.t.Check()
		return -1
	}
	return status
}

// asort sorts an array's values, or with asorti its keys, into numbered elements.
func (in *interp) asort(a []expr, keys bool) int {
	src := in.array(a[0].(*varRef))
	var list []value
	for _, k := range src.list() {
		if keys {
			list = append(list, str(k))
		} else {
			list = append(list, src.m[k].v)
		}
	}
	slices.SortStableFunc(list, func(x, y value) int { return compare(x, y, in.convfmt) })
	dst := src
	if len(a) > 1 {
		dst = in.array(a[1].(*varRef))
	}
	in.forget(dst)
	dst.clear()
	for i, v := range list {
		in.put(dst, strconv.Itoa(i+1), v)
	}
	return len(list)
}

func (in *interp) timeCall(name string, a []expr) value {
	now := in.t.Now()
	switch name {
	case "systime":
		return num(float64(now.Unix()))
	case "mktime":
		f := strings.Fields(in.text(a[0]))
		n := make([]int, 6)
		for i := range n {
			if i >= len(f) {
				return num(-1)
			}
			v, err := strconv.Atoi(f[i])
			if err != nil {
				return num(-1)
			}
			n[i] = v
		}
		return num(float64(time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, now.Location()).Unix()))
	}
	format := "%a %b %e %H:%M:%S %Z %Y"
	if len(a) > 0 {
		format = in.text(a[0])
	}
	if len(a) > 1 {
		now = time.Unix(int64(in.number(a[1])), 0).In(now.Location())
	}
	if len(a) > 2 && in.eval(a[2]).truth() {
		now = now.UTC()
	}
	return str(datetime.Format(format, now))
}
