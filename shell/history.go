package shell

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// history is the list of lines that were read. Copies of the shell share its entries until one side changes them.
type history struct {
	list []historyEntry // replaced, not changed
	base int            // number of the first entry
	news int            // entries at the end that no file has
	read int            // lines that were read from the file, for -n
	used bool           // HISTFILE has been read
	kept bool           // the line that is being run is the last entry
}

type historyEntry struct {
	text string
	time int64 // seconds, 0 if unknown
}

// maxHistory bounds a list whose HISTSIZE doesn't.
const maxHistory = 100000

func (h *history) number(i int) int { return max(1, h.base) + i }

// historyLimit reads HISTSIZE or HISTFILESIZE: no number is no limit.
func (sh *Shell) historyLimit(name string) int {
	s, ok := sh.get(name)
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if !ok || err != nil || n < 0 {
		return maxHistory
	}
	return min(n, maxHistory)
}

// stifle drops the oldest entries past HISTSIZE.
func (sh *Shell) stifle() {
	h := &sh.hist
	if n := len(h.list) - sh.historyLimit("HISTSIZE"); n > 0 {
		h.list = slices.Clone(h.list[n:])
		h.base = max(1, h.base) + n
		h.news = min(h.news, len(h.list))
	}
}

func (h *history) add(text string, at int64) {
	h.list = append(h.list[:len(h.list):len(h.list)], historyEntry{text, at})
	h.news++
}

func (h *history) remove(from, to int) {
	h.news = min(h.news, len(h.list)) - max(0, to-max(from, len(h.list)-h.news))
	h.news = max(0, h.news)
	h.list = slices.Concat(h.list[:from], h.list[to:])
}

// remember adds a command that was read, as HISTCONTROL and HISTIGNORE say.
func (sh *Shell) remember(text string) {
	h := &sh.hist
	h.kept = false
	if text == "" {
		return
	}
	erase := false
	for _, c := range strings.Split(sh.str("HISTCONTROL"), ":") {
		switch c {
		case "ignorespace", "ignoreboth":
			if text[0] == ' ' || text[0] == '\t' {
				return
			}
			if c == "ignorespace" {
				continue
			}
			fallthrough
		case "ignoredups":
			if n := len(h.list); n > 0 && h.list[n-1].text == text {
				h.kept = true
				return
			}
		case "erasedups":
			erase = true
		}
	}
	for _, pat := range strings.Split(sh.str("HISTIGNORE"), ":") {
		if pat == "" {
			continue
		}
		if n := len(h.list); n > 0 {
			pat = strings.ReplaceAll(pat, "&", quoteBackslash(h.list[n-1].text))
		}
		if compilePattern(pat, true, false, false).match(text) {
			return
		}
	}
	for i := len(h.list) - 1; i >= 0 && erase; i-- {
		if h.list[i].text == text {
			h.remove(i, i+1)
		}
	}
	h.add(text, sh.historyTime())
	h.kept = true
	sh.stifle()
}

// historyTime is when a line is added: where nobody asked for times, bash keeps none.
func (sh *Shell) historyTime() int64 {
	if _, ok := sh.get("HISTTIMEFORMAT"); !ok && !sh.opts.interactive {
		return 0
	}
	return sh.p.Sandbox().Now().Unix()
}

// joinHistory joins the lines of one command, as cmdhist does. open tells of each line but the last whether what follows it
// is within quotes or a here-document.
func (sh *Shell) joinHistory(lines []string, open []bool, doc bool) string {
	var b strings.Builder
	for i, l := range lines {
		l = strings.TrimSuffix(l, "\n")
		if i == 0 {
			b.WriteString(l)
			continue
		}
		prev := b.String()
		switch {
		case i-1 < len(open) && open[i-1], sh.shopts.get("lithist"):
			b.WriteByte('\n')
		case continued(prev + "\n"):
			b.Reset()
			b.WriteString(prev[:len(prev)-1])
		default:
			b.WriteString(historyJoint(prev, l))
		}
		b.WriteString(l)
	}
	if n := len(lines) - 2; n >= 0 && n < len(open) && open[n] && doc {
		b.WriteByte('\n')
	}
	return b.String()
}

// historyJoint is what stands between two lines.
func historyJoint(prev, line string) string {
	words := strings.Fields(prev)
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	before := ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch {
	case strings.TrimSpace(line) == "":
		return ""
	case last == "", strings.HasSuffix(last, "()"), strings.IndexByte("{(;&|", last[len(last)-1]) >= 0:
		return " "
	case last[len(last)-1] == ')' && strings.Contains(prev, "case ") && !strings.Contains(prev, "esac"):
		return " "
	case before == "function", before == "case", before == "for" && strings.HasPrefix(strings.TrimSpace(line), "in "):
		return " "
	}
	switch last {
	case "case", "do", "else", "if", "elif", "then", "until", "while", "in", "!":
		return " "
	}
	return "; "
}

// Files.

// parseHistory reads a file's text: comments that are numbers tell the time of the entry after them.
func parseHistory(data string) []historyEntry {
	var out []historyEntry
	var at int64
	stamped := strings.HasPrefix(data, "#") && len(data) > 1 && data[1] >= '0' && data[1] <= '9'
	for len(data) > 0 {
		line, rest, _ := strings.Cut(data, "\n")
		data = rest
		if len(line) > 1 && line[0] == '#' && line[1] >= '0' && line[1] <= '9' {
			if n, err := strconv.ParseInt(line[1:], 10, 64); err == nil {
				at = n
				continue
			}
		}
		if stamped && at == 0 && len(out) > 0 {
			out[len(out)-1].text += "\n" + line // the rest of an entry of several lines
			continue
		}
		if line != "" {
			out = append(out, historyEntry{line, at})
		}
		at = 0
	}
	return out
}

func (sh *Shell) formatHistory(list []historyEntry) []byte {
	_, stamps := sh.get("HISTTIMEFORMAT")
	var b []byte
	for _, e := range list {
		if stamps && e.time != 0 {
			b = append(strconv.AppendInt(append(b, '#'), e.time, 10), '\n')
		}
		b = append(append(b, e.text...), '\n')
	}
	return b
}

// histFile returns HISTFILE, or what was named.
func (sh *Shell) histFile(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return sh.str("HISTFILE")
}

// loadHistory adds a file's entries; only tells that those which were read before are left out.
func (sh *Shell) loadHistory(file string, only bool) error {
	data, err := sh.readFile(file, maxScript)
	if err != nil {
		return err
	}
	list := parseHistory(string(data))
	n := len(list)
	if only {
		list = list[min(len(list), sh.hist.read):]
	}
	h := &sh.hist
	h.read = n
	h.list = slices.Concat(h.list, list)
	if !only {
		h.news = 0
	}
	sh.stifle()
	return nil
}

func (sh *Shell) saveHistory(file string, list []historyEntry, flags int) error {
	f, err := sh.p.Open(file, syscall.O_WRONLY|syscall.O_CREAT|flags, 0o600)
	if err != nil {
		return err
	}
	err = sh.writeAll(f, sh.formatHistory(list))
	if err2 := f.Close(); err == nil {
		err = err2
	}
	return err
}

// truncateHistory leaves the newest HISTFILESIZE entries in a file.
func (sh *Shell) truncateHistory(file string) {
	limit := sh.historyLimit("HISTFILESIZE")
	data, err := sh.readFile(file, maxScript)
	if err != nil {
		return
	}
	if list := parseHistory(string(data)); len(list) > limit {
		sh.saveHistory(file, list[len(list)-limit:], syscall.O_TRUNC)
	}
}

// beginHistory sets what an interactive shell has, and reads its file.
func (sh *Shell) beginHistory() {
	h := &sh.hist
	sh.readInputrc()
	if h.used = true; sh.str("HISTFILE") != "" && len(h.list) == 0 {
		sh.loadHistory(sh.str("HISTFILE"), false)
	}
}

// endHistory appends an interactive shell's lines to its file.
func (sh *Shell) endHistory() {
	h := &sh.hist
	file := sh.str("HISTFILE")
	if !h.used || file == "" || !sh.opts.history {
		return
	}
	if n := min(h.news, len(h.list)); n > 0 {
		sh.saveHistory(file, h.list[len(h.list)-n:], syscall.O_APPEND)
		sh.truncateHistory(file)
	}
	h.used = false
}

// The builtin.

const historyUsage = "history [-c] [-d offset] [n] or history -anrw [filename] or history -ps arg [arg...]"

func builtinHistory(sh *Shell, args []string) int {
	args = args[1:]
	var op byte
	offset := ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if _, err := strconv.Atoi(args[0]); err == nil {
			break
		}
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		for i := 1; i < len(opt); i++ {
			c := opt[i]
			switch c {
			case 'c':
				sh.hist.list, sh.hist.news, sh.hist.kept = nil, 0, false
				sh.hist.base = 1
				if op == 0 {
					op = c
				}
			case 'a', 'n', 'r', 'w':
				if op != 0 && op != 'c' {
					sh.errorf("history: cannot use more than one of -anrw")
					return 1
				}
				op = c
			case 'p', 's':
				op = c
			case 'd':
				op = c
				if offset = opt[i+1:]; offset == "" {
					if len(args) == 0 {
						sh.errorf("history: -d: option requires an argument")
						return sh.usage(historyUsage)
					}
					offset, args = args[0], args[1:]
				}
				i = len(opt)
			default:
				return sh.badOption("history", "-"+string(c), historyUsage)
			}
		}
	}
	switch op {
	case 'd':
		return sh.deleteHistory(offset)
	case 'p':
		return sh.printExpanded(args)
	case 's':
		sh.storeHistory(strings.Join(args, " "), len(args) > 0)
		return 0
	case 'a', 'n', 'r', 'w':
		return sh.historyFile(op, args)
	case 'c':
		return 0
	}
	return sh.listHistory(args)
}

func (sh *Shell) listHistory(args []string) int {
	h := &sh.hist
	from := 0
	if len(args) > 1 {
		sh.errorf("history: too many arguments")
		panic(abort{kind: abortDiscard, status: 1})
	}
	if len(args) == 1 {
		n, err := strconv.Atoi(args[0])
		if err != nil {
			sh.errorf("history: %s: numeric argument required", args[0])
			return 1
		}
		from = max(0, len(h.list)-max(n, -n))
	}
	format, stamps := sh.get("HISTTIMEFORMAT")
	for i := from; i < len(h.list); i++ {
		at := ""
		if stamps && format != "" {
			if e := h.list[i]; e.time != 0 {
				at = strftime(time.Unix(e.time, 0).In(sh.location()), format)
			} else {
				at = "??"
			}
		}
		sh.printf("%5d  %s%s\n", h.number(i), at, h.list[i].text)
	}
	return 0
}

// historyPlace turns a number of the list, or one counted from its end, into an index.
func (sh *Shell) historyPlace(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, false
	}
	h := &sh.hist
	if n < 0 {
		n += len(h.list)
	} else {
		n -= h.number(0)
	}
	return n, n >= 0 && n < len(h.list)
}

func (sh *Shell) deleteHistory(offset string) int {
	lo, hi := offset, offset
	if i := strings.IndexByte(offset[min(1, len(offset)):], '-'); i >= 0 {
		lo, hi = offset[:i+1], offset[i+2:]
	}
	from, ok := sh.historyPlace(lo)
	to, ok2 := sh.historyPlace(hi)
	if !ok || !ok2 || to < from {
		sh.errorf("history: %s: history position out of range", offset)
		return 1
	}
	sh.hist.remove(from, to+1)
	return 0
}

// storeHistory is history -s: the line takes the place of the command itself.
func (sh *Shell) storeHistory(text string, some bool) {
	if !some {
		return
	}
	h := &sh.hist
	if n := len(h.list); h.kept && n > 0 {
		h.remove(n-1, n)
		h.kept = false
	}
	h.add(text, sh.historyTime())
	sh.stifle()
}

func (sh *Shell) printExpanded(args []string) int {
	h := &sh.hist
	if n := len(h.list); h.kept && n > 0 {
		h.remove(n-1, n)
		h.kept = false
	}
	st := 0
	for _, a := range args {
		s, _, err := sh.expandHistory(a)
		if err != "" {
			sh.errorf("history: %s: history expansion failed", a)
			st = 1
			continue
		}
		sh.print(s + "\n")
	}
	return st
}

func (sh *Shell) historyFile(op byte, args []string) int {
	h := &sh.hist
	file := sh.histFile(args)
	if file == "" {
		return 0
	}
	var err error
	switch op {
	case 'r':
		news := h.news
		err = sh.loadHistory(file, false)
		h.news = min(news, len(h.list))
	case 'n':
		err = sh.loadHistory(file, true)
	case 'w':
		err = sh.saveHistory(file, h.list, syscall.O_TRUNC)
		h.news = 0
	case 'a':
		n := min(h.news, len(h.list))
		if err = sh.saveHistory(file, h.list[len(h.list)-n:], syscall.O_APPEND); err == nil {
			h.read += n
			h.news = 0
		}
	}
	if err != nil {
		if op == 'a' {
			sh.errorf("%s: cannot create: %s", file, strerror(err))
		}
		return 1
	}
	return 0
}
