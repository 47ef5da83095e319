package shell

import (
	"bytes"
	"io"
	"strconv"
	"syscall"
)

func builtinMapfile(sh *Shell, args []string) int {
	name := args[0]
	args = args[1:]
	delim, trim, fd, limit, skip, origin, clear := byte('\n'), false, 0, 0, 0, 0, true
	callback, quantum := "", 5000
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		for i := 1; i < len(opt); i++ {
			if opt[i] == 't' {
				trim = true
				continue
			}
			val := opt[i+1:]
			if val == "" && len(args) > 0 {
				val, args = args[0], args[1:]
			}
			n, err := strconv.Atoi(val)
			switch opt[i] {
			case 'd':
				delim = 0
				if val != "" {
					delim = val[0]
				}
				err = nil
			case 'u':
				fd = n
			case 'n':
				limit = n
			case 's':
				skip = n
			case 'O':
				origin, clear = n, false
			case 'C':
				callback, err = val, nil
			case 'c':
				quantum = n
			default:
				return sh.badOption(name, "-"+opt[i:i+1], name+" [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]")
			}
			if err != nil || n < 0 || opt[i] == 'c' && n == 0 {
				what := map[byte]string{'u': "invalid file descriptor specification", 'O': "invalid array origin", 'c': "invalid callback quantum"}[opt[i]]
				if what == "" {
					what = "invalid line count"
				}
				sh.errorf("%s: %s: %s", name, val, what)
				return 1
			}
			break
		}
	}
	array := "MAPFILE"
	if len(args) > 0 {
		array = args[0]
	}
	if !validName(array) {
		sh.errorf("%s: `%s': not a valid identifier", name, array)
		return 1
	}
	in, err := sh.newInput(fd)
	if err != nil {
		sh.errorf("%s: %d: invalid file descriptor: %s", name, fd, strerror(err))
		return 1
	}
	array, _ = sh.resolve(array)
	v := sh.own(array)
	if v.attr&attrReadonly != 0 {
		sh.errorf("%s: readonly variable", array)
		return 1
	}
	if v.attr&attrAssoc != 0 {
		sh.errorf("%s: %s: not an indexed array", name, array)
		return 1
	}
	v.attr |= attrIndexed
	v.set, v.str = true, ""
	if clear || v.arr == nil {
		v.arr = &indexed{}
	}
	if limit == 0 && callback == "" {
		sh.push(&mapfileFrame{array: array, fd: fd, delim: delim, trim: trim, skip: skip, at: int64(origin)})
		return pushed
	}
	var line []byte
	index := int64(origin)
	emit := func() bool {
		if skip > 0 {
			skip--
			return true
		}
		s := string(line)
		if !sh.charge(len(s) + 16) {
			return false
		}
		if callback != "" && quantum > 0 && (index-int64(origin)+1)%int64(quantum) == 0 {
			sh.evalText(callback + " " + strconv.FormatInt(index, 10) + " " + quoteWord(s))
		}
		v = sh.own(array)
		v.arr.put(index, s)
		index++
		return limit == 0 || index-int64(origin) < int64(limit)
	}
	for {
		c, err := in.next()
		if err != nil {
			if len(line) > 0 {
				emit()
			}
			break
		}
		if c == delim {
			if !trim && c != 0 {
				line = append(line, c)
			}
			ok := emit()
			line = line[:0]
			if !ok {
				break
			}
			continue
		}
		if c != 0 {
			line = append(line, c)
		}
	}
	in.done()
	return 0
}

// mapfileFrame reads all lines for mapfile, from what can make it wait.
type mapfileFrame struct {
	array string
	fd    int
	delim byte
	trim  bool
	skip  int
	at    int64  // where the first line goes
	data  []byte // read so far
}

func (f *mapfileFrame) clone() frame {
	c := *f
	c.data = f.data[:len(f.data):len(f.data)]
	return &c
}

// mapfileRead is how much is read at once.
const mapfileRead = 64 << 10

func (f *mapfileFrame) step(sh *Shell) {
	in, err := sh.p.File(f.fd)
	limit := int(sh.p.Sandbox().Limits().Memory)
	buf := make([]byte, mapfileRead)
	n := 0
	read := func() error {
		n, err = in.Read(buf)
		f.data = append(f.data, buf[:n]...)
		return err
	}
	for err == nil {
		n = 0
		switch err = sh.rest(read); {
		case err == syscall.EINTR && sh.p.Killed() == 0:
			if sh.takeSignals(); len(sh.pending) > 0 {
				return // traps run, then this goes on
			}
			err = nil
		case err == nil && n == 0:
			err = io.EOF
		}
		if len(f.data) > limit {
			sh.errorf("variables: memory limit exceeded")
			sh.exitNow(1)
			return
		}
	}
	sh.pop()
	f.assign(sh)
}

// assign makes elements of the lines.
func (f *mapfileFrame) assign(sh *Shell) {
	v := sh.own(f.array)
	if v.arr == nil {
		v.arr = &indexed{}
	}
	data := f.data
	for n := 0; len(data) > 0; n++ {
		line := data
		if i := bytes.IndexByte(data, f.delim); i >= 0 {
			if line, data = data[:i+1], data[i+1:]; f.trim || f.delim == 0 {
				line = line[:i]
			}
		} else {
			data = nil
		}
		if n < f.skip {
			continue
		}
		if bytes.IndexByte(line, 0) >= 0 {
			line = bytes.ReplaceAll(line, []byte{0}, nil)
		}
		if n%stepFields == stepFields-1 {
			sh.mayGoOn(1)
		}
		if !sh.charge(len(line) + wordSize) {
			return
		}
		v.arr.put(f.at, string(line))
		f.at++
	}
	sh.setStatus(0)
}
