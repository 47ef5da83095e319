package system

import (
	"fmt"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

// mode is a setting of a terminal that is on or off, or one of several values of some bits.
type mode struct {
	name  string
	word  byte // i, o, c or l
	bits  uint32
	mask  uint32 // of a setting with several values
	sane  byte   // '+' on, '-' off, 0 left alone by sane
	shown bool   // by -a
}

// modes in the order in which -a shows them; an empty name ends a line.
func modes() []mode {
	on := func(word byte, name string, bits uint32, sane byte) mode {
		return mode{name, word, bits, 0, sane, true}
	}
	one := func(word byte, name string, bits, mask uint32, sane byte) mode {
		return mode{name, word, bits, mask, sane, true}
	}
	return []mode{
		on('c', "parenb", 0x100, 0), on('c', "parodd", 0x200, 0), on('c', "cmspar", 0x40000000, 0), one('c', "cs5", 0, 0x30, 0), one('c', "cs6", 0x10, 0x30, 0), one('c', "cs7", 0x20, 0x30, 0), one('c', "cs8", 0x30, 0x30, 0),
		on('c', "hupcl", 0x400, 0), on('c', "cstopb", 0x40, 0), on('c', "cread", 0x80, '+'), on('c', "clocal", 0x800, 0), on('c', "crtscts", 0x80000000, 0), {},
		on('i', "ignbrk", 1, '-'), on('i', "brkint", 2, '+'), on('i', "ignpar", 4, 0), on('i', "parmrk", 8, 0), on('i', "inpck", 0x10, 0), on('i', "istrip", proc.ISTRIP, 0), on('i', "inlcr", proc.INLCR, '-'), on('i', "igncr", proc.IGNCR, '-'),
		on('i', "icrnl", proc.ICRNL, '+'), on('i', "ixon", proc.IXON, 0), on('i', "ixoff", 0x1000, '-'), on('i', "iuclc", 0x200, '-'), on('i', "ixany", proc.IXANY, '-'), on('i', "imaxbel", proc.IMAXBEL, '+'), on('i', "iutf8", proc.IUTF8, '-'), {},
		on('o', "opost", proc.OPOST, '+'), on('o', "olcuc", 2, '-'), on('o', "ocrnl", proc.OCRNL, '-'), on('o', "onlcr", proc.ONLCR, '+'), on('o', "onocr", proc.ONOCR, '-'), on('o', "onlret", proc.ONLRET, '-'), on('o', "ofill", 0x40, '-'), on('o', "ofdel", 0x80, '-'),
		one('o', "nl0", 0, 0x100, '+'), one('o', "nl1", 0x100, 0x100, 0), one('o', "cr0", 0, 0x600, '+'), one('o', "cr1", 0x200, 0x600, 0), one('o', "cr2", 0x400, 0x600, 0), one('o', "cr3", 0x600, 0x600, 0),
		one('o', "tab0", 0, 0x1800, '+'), one('o', "tab1", 0x800, 0x1800, 0), one('o', "tab2", 0x1000, 0x1800, 0), one('o', "tab3", 0x1800, 0x1800, 0), one('o', "bs0", 0, 0x2000, '+'), one('o', "bs1", 0x2000, 0x2000, 0),
		one('o', "vt0", 0, 0x4000, '+'), one('o', "vt1", 0x4000, 0x4000, 0), one('o', "ff0", 0, 0x8000, '+'), one('o', "ff1", 0x8000, 0x8000, 0), {},
		on('l', "isig", proc.ISIG, '+'), on('l', "icanon", proc.ICANON, '+'), on('l', "iexten", proc.IEXTEN, '+'), on('l', "echo", proc.ECHO, '+'), on('l', "echoe", proc.ECHOE, '+'), on('l', "echok", proc.ECHOK, '+'), on('l', "echonl", proc.ECHONL, '-'),
		on('l', "noflsh", proc.NOFLSH, '-'), on('l', "xcase", 4, '-'), on('l', "tostop", proc.TOSTOP, '-'), on('l', "echoprt", 0x400, '-'), on('l', "echoctl", proc.ECHOCTL, '+'), on('l', "echoke", proc.ECHOKE, '+'), on('l', "flusho", 0x1000, '-'), on('l', "extproc", 0x10000, '-'), {},
	}
}

var modeAliases = map[string]string{"crterase": "echoe", "crtkill": "echoke", "ctlecho": "echoctl", "prterase": "echoprt", "hup": "hupcl", "tandem": "ixoff", "tabs": "tab0", "-tabs": "tab3"}

// controlChars in the order in which -a shows them.
var controlChars = []struct {
	name string
	at   int
	sane byte
}{{"intr", proc.VINTR, 3}, {"quit", proc.VQUIT, 28}, {"erase", proc.VERASE, 127}, {"kill", proc.VKILL, 21}, {"eof", proc.VEOF, 4}, {"eol", proc.VEOL, 0}, {"eol2", proc.VEOL2, 0}, {"swtch", 7, 0}, {"start", proc.VSTART, 17}, {"stop", proc.VSTOP, 19},
	{"susp", proc.VSUSP, 26}, {"rprnt", proc.VREPRINT, 18}, {"werase", proc.VWERASE, 23}, {"lnext", proc.VLNEXT, 22}, {"discard", proc.VDISCARD, 15}}

// combos are settings that stand for several.
var combos = map[string]string{"cbreak": "-icanon", "-cbreak": "icanon", "nl": "-icrnl -onlcr", "-nl": "icrnl -inlcr -igncr onlcr -ocrnl -onlret", "evenp": "parenb -parodd cs7", "parity": "parenb -parodd cs7", "-evenp": "-parenb cs8", "-parity": "-parenb cs8",
	"oddp": "parenb parodd cs7", "-oddp": "-parenb cs8", "decctlq": "-ixany", "-decctlq": "ixany", "lcase": "xcase iuclc olcuc", "LCASE": "xcase iuclc olcuc", "-lcase": "-xcase -iuclc -olcuc", "-LCASE": "-xcase -iuclc -olcuc",
	"pass8": "-parenb -istrip cs8", "-pass8": "parenb istrip cs7", "litout": "-parenb -istrip -opost cs8", "-litout": "parenb istrip opost cs7", "crt": "echoe echoctl echoke", "dec": "echoe echoctl echoke -ixany"}

// sttyRun is a running stty.
type sttyRun struct {
	t      *tool.T
	fd     int
	name   string
	set    proc.Termios
	size   proc.WinSize
	resize bool
}

// Stty shows and changes how the terminal on standard input behaves.
func Stty(t *tool.T) int {
	s := &sttyRun{t: t, name: "standard input"}
	args, device, all, save := []string(nil), "", false, false
	rest := t.Args()[1:]
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		switch {
		case a == "-a" || a == "--all":
			all = true
		case a == "-g" || a == "--save":
			save = true
		case a == "-F" || a == "--file":
			if i++; i >= len(rest) {
				t.UsageError(1, "option requires an argument -- 'F'")
			}
			device = rest[i]
		case strings.HasPrefix(a, "--file="):
			device = a[7:]
		case strings.HasPrefix(a, "-F"):
			device = a[2:]
		case a == "--help" || a == "--version":
			spec := tool.Spec{Usage: []string{"[-F DEVICE | --file=DEVICE] [SETTING]...", "[-F DEVICE | --file=DEVICE] [-a|--all]", "[-F DEVICE | --file=DEVICE] [-g|--save]"}, About: "Print or change terminal characteristics.", Package: tool.Coreutils,
				Options: []getopt.Option{{Short: 'a', Long: "all", Help: "print all current settings in human-readable form"}, {Short: 'g', Long: "save", Help: "print all current settings in a stty-readable form"}, {Short: 'F', Long: "file", Arg: getopt.Required, Name: "DEVICE", Help: "open and use the specified DEVICE instead of stdin"}}}
			t.ParseArgs(&spec, []string{a})
		default:
			args = append(args, a)
		}
	}
	switch {
	case all && save:
		t.Fatal(1, "the options for verbose and stty-readable output styles are\nmutually exclusive")
	case (all || save) && len(args) > 0:
		t.Fatal(1, "when specifying an output style, modes may not be set")
	}
	if device != "" {
		s.open(device)
	}
	var err error
	if s.set, err = t.Termios(s.fd); err != nil {
		t.Fatal(1, "%s: %s", tool.QuoteAF(s.name), tool.Strerror(err))
	}
	s.size, _ = t.WindowSize(s.fd)
	switch {
	case save:
		s.save()
	case all:
		s.showAll()
	case len(args) == 0:
		s.showChanged()
	default:
		return s.change(args)
	}
	return 0
}

func (s *sttyRun) open(device string) {
	f, err := s.t.Process.Open(device, 2, 0)
	if err != nil {
		if f, err = s.t.Process.Open(device, 0, 0); err != nil {
			s.t.Fatal(1, "%s: %s", tool.QuoteF(device), tool.Strerror(err))
		}
	}
	s.name = device
	s.fd = s.t.Fd(f)
}

func (s *sttyRun) word(w byte) *uint32 {
	switch w {
	case 'i':
		return &s.set.Iflag
	case 'o':
		return &s.set.Oflag
	case 'c':
		return &s.set.Cflag
	}
	return &s.set.Lflag
}

// save is -g: all words in hexadecimal digits.
func (s *sttyRun) save() {
	fmt.Fprintf(s.t.Out, "%x:%x:%x:%x", s.set.Iflag, s.set.Oflag, s.set.Cflag, s.set.Lflag)
	for i := range 32 {
		c := byte(0)
		if i < len(s.set.Cc) {
			c = s.set.Cc[i]
		}
		fmt.Fprintf(s.t.Out, ":%x", c)
	}
	s.t.Out.WriteByte('\n')
}

// controlText shows a control character.
func controlText(c byte) string {
	switch {
	case c == 0:
		return "<undef>"
	case c == 127:
		return "^?"
	case c < 32:
		return "^" + string(rune(c+64))
	case c >= 128:
		return "M-" + strings.Replace(controlText(c-128), "<undef>", "^@", 1)
	}
	return string(rune(c))
}

// wrap writes words, as many as fit into lines.
type wrap struct {
	t    *tool.T
	col  int
	wide int
}

func (w *wrap) put(word string) {
	if w.col > 0 && w.col+1+len(word) >= w.wide {
		w.end()
	}
	if w.col > 0 {
		w.t.Out.WriteByte(' ')
		w.col++
	}
	w.t.Out.WriteString(word)
	w.col += len(word)
}

func (w *wrap) end() {
	if w.col > 0 {
		w.t.Out.WriteByte('\n')
	}
	w.col = 0
}

func (s *sttyRun) wrap() *wrap {
	_, cols := screenSize(s.t)
	return &wrap{t: s.t, wide: cols}
}

func (s *sttyRun) showAll() {
	w := s.wrap()
	w.put("speed 38400 baud;")
	w.put(fmt.Sprintf("rows %d;", s.size.Rows))
	w.put(fmt.Sprintf("columns %d;", s.size.Cols))
	w.put("line = 0;")
	w.end()
	for _, c := range controlChars {
		w.put(c.name + " = " + controlText(s.set.Cc[c.at]) + ";")
	}
	w.put(fmt.Sprintf("min = %d;", s.set.Cc[proc.VMIN]))
	w.put(fmt.Sprintf("time = %d;", s.set.Cc[proc.VTIME]))
	w.end()
	for _, m := range modes() {
		switch v := *s.word(m.word); {
		case m.name == "":
			w.end()
		case m.mask != 0:
			if v&m.mask == m.bits {
				w.put(m.name)
			}
		case v&m.bits != 0:
			w.put(m.name)
		default:
			w.put("-" + m.name)
		}
	}
	w.end()
}

// showChanged shows what differs from sane.
func (s *sttyRun) showChanged() {
	w := s.wrap()
	w.put("speed 38400 baud;")
	w.put("line = 0;")
	w.end()
	for _, c := range controlChars {
		if s.set.Cc[c.at] != c.sane {
			w.put(c.name + " = " + controlText(s.set.Cc[c.at]) + ";")
		}
	}
	if s.set.Lflag&proc.ICANON == 0 {
		w.put(fmt.Sprintf("min = %d;", s.set.Cc[proc.VMIN]))
		w.put(fmt.Sprintf("time = %d;", s.set.Cc[proc.VTIME]))
	}
	w.end()
	for _, m := range modes() {
		if m.name == "" {
			w.end()
			continue
		}
		if m.sane == 0 {
			continue
		}
		on := *s.word(m.word)&m.bits != 0
		if m.mask != 0 {
			on = *s.word(m.word)&m.mask == m.bits
		}
		if on && m.sane == '-' {
			w.put(m.name)
		} else if !on && m.sane == '+' && m.mask == 0 {
			w.put("-" + m.name)
		}
	}
	w.end()
}

// change applies settings.
func (s *sttyRun) change(args []string) int {
	t := s.t
	for i := 0; i < len(args); i++ {
		a := args[i]
		next := func() string {
			if i++; i >= len(args) {
				t.UsageError(1, "missing argument to %s", tool.Quote(a))
			}
			return args[i]
		}
		number := func(limit uint64) uint64 {
			v := next()
			n, err := strconv.ParseUint(v, 0, 32)
			if err != nil || n > limit {
				t.Fatal(1, "invalid integer argument: %s", tool.Quote(v))
			}
			return n
		}
		switch a {
		case "size":
			fmt.Fprintf(t.Out, "%d %d\n", s.size.Rows, s.size.Cols)
		case "speed":
			t.Out.WriteString("38400\n")
		case "rows":
			s.size.Rows, s.resize = uint16(number(65535)), true
		case "cols", "columns":
			s.size.Cols, s.resize = uint16(number(65535)), true
		case "min":
			s.set.Cc[proc.VMIN] = byte(number(255))
		case "time":
			s.set.Cc[proc.VTIME] = byte(number(255))
		case "line", "ispeed", "ospeed":
			number(1 << 31)
		case "drain", "-drain":
		default:
			if at := controlIndex(a); at >= 0 {
				s.set.Cc[at] = s.control(next())
			} else if !s.setting(a) {
				t.UsageError(1, "invalid argument %s", tool.Quote(a))
			}
		}
	}
	if s.resize {
		if err := t.SetWindowSize(s.fd, s.size); err != nil {
			t.Fatal(1, "%s: %s", tool.QuoteF(s.name), tool.Strerror(err))
		}
	}
	if err := t.SetTermios(s.fd, s.set, proc.SetDrain); err != nil {
		t.Fatal(1, "%s: %s", tool.QuoteF(s.name), tool.Strerror(err))
	}
	return 0
}

func controlIndex(name string) int {
	if name == "flush" {
		name = "discard"
	}
	for _, c := range controlChars {
		if c.name == name {
			return c.at
		}
	}
	return -1
}

// control reads a control character: ^C, a number, undef, or itself.
func (s *sttyRun) control(v string) byte {
	switch {
	case v == "" || v == "^-" || v == "undef":
		return 0
	case len(v) == 1:
		return v[0]
	case v == "^?":
		return 127
	case v[0] == '^' && len(v) == 2:
		return v[1] &^ 0x60
	}
	n, err := strconv.ParseUint(v, 0, 8)
	if err != nil {
		s.t.Fatal(1, "invalid integer argument: %s", tool.Quote(v))
	}
	return byte(n)
}

// setting applies one word.
func (s *sttyRun) setting(a string) bool {
	if alias, ok := modeAliases[a]; ok {
		a = alias
	}
	name, off := a, false
	if strings.HasPrefix(a, "-") {
		name, off = a[1:], true
		if alias, ok := modeAliases[name]; ok {
			name = alias
		}
	}
	for _, m := range modes() {
		if m.name != name || name == "" || off && m.mask != 0 {
			continue
		}
		w := s.word(m.word)
		switch {
		case m.mask != 0:
			*w = *w&^m.mask | m.bits
		case off:
			*w &^= m.bits
		default:
			*w |= m.bits
		}
		return true
	}
	if words, ok := combos[a]; ok {
		for _, w := range strings.Fields(words) {
			s.setting(w)
		}
		if a == "crt" || a == "dec" {
			s.set.Cc[proc.VERASE], s.set.Cc[proc.VKILL] = 127, 21
		}
		return true
	}
	switch a {
	case "sane":
		s.set = sane(s.set)
	case "ek":
		s.set.Cc[proc.VERASE], s.set.Cc[proc.VKILL] = 127, 21
	case "raw", "-cooked":
		s.set.Iflag, s.set.Oflag = s.set.Iflag&proc.IUTF8, s.set.Oflag&^proc.OPOST
		s.set.Lflag &^= proc.ISIG | proc.ICANON | 4
		s.set.Cc[proc.VMIN], s.set.Cc[proc.VTIME] = 1, 0
	case "-raw", "cooked":
		s.set.Iflag |= 2 | 4 | proc.ICRNL | proc.IXON
		s.set.Oflag |= proc.OPOST
		s.set.Lflag |= proc.ISIG | proc.ICANON
	default:
		return s.saved(a)
	}
	return true
}

// saved reads what -g wrote, or takes a speed.
func (s *sttyRun) saved(a string) bool {
	words := strings.Split(a, ":")
	if len(words) == 1 {
		_, err := strconv.ParseUint(a, 10, 32)
		return err == nil
	}
	if len(words) != 36 {
		return false
	}
	var n [36]uint32
	for i, w := range words {
		v, err := strconv.ParseUint(w, 16, 32)
		if err != nil {
			return false
		}
		n[i] = uint32(v)
	}
	s.set.Iflag, s.set.Oflag, s.set.Cflag, s.set.Lflag = n[0], n[1], n[2], n[3]
	for i := range s.set.Cc {
		s.set.Cc[i] = byte(n[4+i])
	}
	return true
}

// sane are the settings of a usable terminal.
func sane(set proc.Termios) proc.Termios {
	s := sttyRun{set: set}
	for _, m := range modes() {
		w := s.word(m.word)
		switch {
		case m.name == "" || m.sane == 0:
		case m.mask != 0:
			*w = *w&^m.mask | m.bits
		case m.sane == '+':
			*w |= m.bits
		default:
			*w &^= m.bits
		}
	}
	for _, c := range controlChars {
		s.set.Cc[c.at] = c.sane
	}
	s.set.Cc[proc.VMIN], s.set.Cc[proc.VTIME] = 1, 0
	return s.set
}

func setSane(t *tool.T, fd int) {
	if set, err := t.Termios(fd); err == nil {
		t.SetTermios(fd, sane(set), proc.SetDrain)
	}
}
