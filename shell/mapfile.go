package shell

import (
	"strconv"
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
