package shell

import (
	"encoding/binary"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"
)

// dynamicNames are the variables whose value is made when it is read.
func isDynamic(name string) bool {
	switch name {
	case "RANDOM", "SRANDOM", "SECONDS", "LINENO", "BASHPID", "EPOCHSECONDS", "EPOCHREALTIME", "FUNCNAME", "BASH_SOURCE", "BASH_LINENO",
		"BASH_SUBSHELL", "_", "PIPESTATUS", "DIRSTACK", "GROUPS", "BASH_COMMAND", "BASH_ARGV0", "SHELLOPTS", "BASHOPTS", "BASH_ALIASES", "BASH_CMDS", "HISTCMD":
		return true
	}
	return false
}

func strVar(s string) *variable { return &variable{set: true, str: s} }
func intVar(n int64) *variable {
	return &variable{set: true, attr: attrInteger, str: strconv.FormatInt(n, 10)}
}
func arrVar(vals []string) *variable {
	return &variable{set: true, attr: attrIndexed, arr: &indexed{dense: vals}}
}

// dynamic returns a variable that the shell computes, nil for any other name.
func (sh *Shell) dynamic(name string) *variable {
	if !isDynamic(name) || sh.undynamic[name] {
		return nil
	}
	switch name {
	case "_":
		return strVar(sh.lastArg)
	case "RANDOM":
		return intVar(int64(sh.random()))
	case "SRANDOM":
		var b [4]byte
		io.ReadFull(sh.p.Rand(), b[:])
		return intVar(int64(binary.LittleEndian.Uint32(b[:])))
	case "SECONDS":
		return intVar(sh.secondsBase + int64(sh.p.Sandbox().Now().Sub(sh.secondsFrom)/time.Second))
	case "LINENO":
		return strVar(strconv.FormatInt(int64(sh.lineno()), 10))
	case "BASHPID":
		return intVar(int64(sh.p.Pid()))
	case "EPOCHSECONDS":
		return strVar(strconv.FormatInt(sh.p.Sandbox().Now().Unix(), 10))
	case "EPOCHREALTIME":
		t := sh.p.Sandbox().Now()
		return strVar(fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000))
	case "BASH_SUBSHELL":
		return strVar(strconv.FormatInt(int64(sh.subshell), 10))
	case "BASH_COMMAND":
		return strVar(sh.bashCommand())
	case "BASH_ARGV0":
		return strVar(sh.name)
	case "HISTCMD":
		return strVar(itoa(sh.hist.number(len(sh.hist.list)) - 1))
	case "GROUPS":
		return arrVar([]string{strconv.Itoa(int(sh.p.Cred().GID))})
	case "DIRSTACK":
		return arrVar(sh.dirStack())
	case "PIPESTATUS":
		vals := make([]string, len(sh.pipestatus))
		for i, s := range sh.pipestatus {
			vals[i] = strconv.Itoa(s)
		}
		return arrVar(vals)
	case "SHELLOPTS":
		v := strVar(sh.shellopts())
		v.attr |= attrReadonly
		return v
	case "BASHOPTS":
		v := strVar(strings.Join(sh.shopts.enabled(), ":"))
		v.attr |= attrReadonly
		return v
	case "BASH_ALIASES":
		a := newAssoc()
		for _, k := range sortedKeys(sh.aliases) {
			a.put(k, sh.aliases[k])
		}
		return &variable{set: true, attr: attrAssoc, assoc: a}
	case "BASH_CMDS":
		a := newAssoc()
		for _, n := range sh.hashedNames() {
			a.put(n, sh.hashed[n].path)
		}
		return &variable{set: true, attr: attrAssoc, assoc: a}
	}
	return sh.callStack(name)
}

// callStack makes FUNCNAME, BASH_SOURCE and BASH_LINENO, the innermost call first.
func (sh *Shell) callStack(name string) *variable {
	var out []string
	n := len(sh.calls)
	for i := n - 1; i >= 0; i-- {
		c := sh.calls[i]
		switch name {
		case "FUNCNAME":
			out = append(out, c.name)
		case "BASH_SOURCE":
			out = append(out, c.source)
		case "BASH_LINENO":
			out = append(out, strconv.Itoa(c.line))
		}
	}
	if sh.scriptFile != "" || n > 0 && name == "BASH_LINENO" {
		switch name {
		case "FUNCNAME":
			if n > 0 {
				out = append(out, "main")
			}
		case "BASH_SOURCE":
			out = append(out, sh.scriptFile)
		case "BASH_LINENO":
			if sh.scriptFile != "" {
				out = append(out, "0")
			}
		}
	}
	if name == "FUNCNAME" && n == 0 {
		return &variable{attr: attrIndexed, arr: &indexed{}}
	}
	return arrVar(out)
}

// random is bash's generator: Park and Miller's minimal standard, its halves combined.
func (sh *Shell) random() int {
	sh.touch()
	if !sh.seeded {
		var b [4]byte
		io.ReadFull(sh.p.Rand(), b[:])
		sh.seed, sh.seeded = binary.LittleEndian.Uint32(b[:]), true
	}
	for {
		sh.seed = nextRandom(sh.seed)
		r := int((sh.seed>>16)^(sh.seed&0xffff)) & 0x7fff
		if r != sh.lastRandom {
			sh.lastRandom = r
			return r
		}
	}
}

func nextRandom(seed uint32) uint32 {
	ret := int32(seed)
	if ret == 0 {
		ret = 123459876
	}
	h := ret / 127773
	l := ret - 127773*h
	t := 16807*l - 2836*h
	if t < 0 {
		t += 0x7fffffff
	}
	return uint32(t)
}

// setDynamic assigns to a computed variable; done is false where an ordinary assignment shall follow.
func (sh *Shell) setDynamic(name, value string) (done, ok bool) {
	if !isDynamic(name) || sh.undynamic[name] {
		return false, true
	}
	if v, _ := sh.find(name); v != nil {
		return false, true
	}
	sh.touch()
	switch name {
	case "RANDOM":
		n, _ := strconv.ParseInt(value, 10, 64)
		sh.seed, sh.seeded, sh.lastRandom = uint32(n), true, 0
	case "SECONDS":
		n, _ := strconv.ParseInt(value, 10, 64)
		sh.secondsBase, sh.secondsFrom = n, sh.p.Sandbox().Now()
	case "BASH_ARGV0":
		sh.name = value
	case "SHELLOPTS", "BASHOPTS":
		sh.errorf("%s: readonly variable", name)
		return true, false
	case "LINENO":
		return true, true
	}
	return true, true
}

func (sh *Shell) unsetDynamic(name string) {
	if !isDynamic(name) || sh.undynamic[name] {
		return
	}
	m := make(map[string]bool, len(sh.undynamic)+1)
	for k := range sh.undynamic {
		m[k] = true
	}
	m[name] = true
	sh.undynamic = m
}

// changed is told of each assignment and unset of a variable that the shell itself acts on.
func (sh *Shell) changed(name string) {
	switch name {
	case "PATH":
		sh.hashed = nil
	case "LC_ALL", "LC_CTYPE", "LANG":
		sh.setLocale()
	case "OPTIND":
		sh.optPos = 0
	case "TZ":
		sh.envStale = true
	case "HISTSIZE":
		if n := len(sh.hist.list); n > 0 {
			if sh.stifle(); n > len(sh.hist.list) {
				sh.hist.base = n - len(sh.hist.list) // as bash has it, where it began to count
			}
		}
	case "HISTFILESIZE":
		if file := sh.str("HISTFILE"); file != "" {
			sh.truncateHistory(file)
		}
	case "POSIXLY_CORRECT":
		_, sh.opts.posix = sh.get(name)
	}
}

// setLocale takes the locale from the environment, as the C library does.
func (sh *Shell) setLocale() {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if s := sh.str(name); s != "" {
			s = strings.ToUpper(s)
			sh.bytes = !strings.Contains(s, "UTF-8") && !strings.Contains(s, "UTF8")
			return
		}
	}
	sh.bytes = true
}

// allNames lists the names of all variables, sorted.
func (sh *Shell) allNames() []string {
	seen := make(map[string]bool)
	for _, sc := range sh.scopes {
		for n := range sc.vars {
			seen[n] = true
		}
	}
	for _, n := range []string{"BASHOPTS", "BASHPID", "BASH_ALIASES", "BASH_ARGV0", "BASH_CMDS", "BASH_COMMAND", "BASH_LINENO", "BASH_SOURCE", "BASH_SUBSHELL",
		"DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "FUNCNAME", "GROUPS", "HISTCMD", "LINENO", "PIPESTATUS", "RANDOM", "SECONDS", "SHELLOPTS", "SRANDOM"} {
		if !sh.undynamic[n] {
			seen[n] = true
		}
	}
	return sortedKeys(seen)
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
