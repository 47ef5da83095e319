package shell

import (
	"fmt"
	"strconv"
	"strings"

	"agentrun.dev/vfs"
)

func builtinUmask(sh *Shell, args []string) int {
	args = args[1:]
	sym, print := false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0] != "--" {
		if strings.Trim(args[0], "-Sp") != "" {
			return sh.badOption("umask", args[0][:2], "umask [-p] [-S] [mode]")
		}
		sym = sym || strings.Contains(args[0], "S")
		print = print || strings.Contains(args[0], "p")
		args = args[1:]
	}
	args = skipDashes(args)
	old := sh.p.Umask(0)
	sh.p.Umask(old)
	if len(args) == 0 {
		switch {
		case sym && print:
			sh.printf("umask -S %s\n", symbolic(old))
		case sym:
			sh.print(symbolic(old) + "\n")
		case print:
			sh.printf("umask %04o\n", old)
		default:
			sh.printf("%04o\n", old)
		}
		return 0
	}
	if c := args[0]; c != "" && c[0] >= '0' && c[0] <= '9' {
		n, err := strconv.ParseUint(c, 8, 16)
		if err != nil || n > 0o7777 {
			sh.errorf("umask: %s: octal number out of range", c)
			return 1
		}
		sh.p.Umask(vfs.Mode(n & 0o777))
		return 0
	}
	mask, bad, op := parseSymbolic(args[0], old)
	if bad != 0 {
		if op {
			sh.errorf("umask: `%c': invalid symbolic mode operator", bad)
		} else {
			sh.errorf("umask: `%c': invalid symbolic mode character", bad)
		}
		return 1
	}
	sh.p.Umask(mask)
	if sym {
		sh.print(symbolic(mask) + "\n")
	}
	return 0
}

func symbolic(mask vfs.Mode) string {
	perm := ^mask & 0o777
	part := func(shift uint) string {
		var b []byte
		for i, c := range []byte("rwx") {
			if perm>>shift&(4>>uint(i)) != 0 {
				b = append(b, c)
			}
		}
		return string(b)
	}
	return fmt.Sprintf("u=%s,g=%s,o=%s", part(6), part(3), part(0))
}

// parseSymbolic applies a mode such as g-w,o= to a mask. bad is what couldn't be understood.
func parseSymbolic(s string, mask vfs.Mode) (out vfs.Mode, bad byte, op bool) {
	perm := ^mask & 0o777
	for _, clause := range strings.Split(s, ",") {
		who := vfs.Mode(0)
		i := 0
		for ; i < len(clause) && strings.IndexByte("ugoa", clause[i]) >= 0; i++ {
			who |= map[byte]vfs.Mode{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}[clause[i]]
		}
		if who == 0 {
			who = 0o777
		}
		if i >= len(clause) {
			return 0, (clause + ",")[max(0, i-1)], true
		}
		for i < len(clause) {
			act := clause[i]
			if strings.IndexByte("+-=", act) < 0 {
				return 0, act, true
			}
			bits := vfs.Mode(0)
			for i++; i < len(clause) && strings.IndexByte("+-=", clause[i]) < 0; i++ {
				switch clause[i] {
				case 'r':
					bits |= 0o444
				case 'w':
					bits |= 0o222
				case 'x':
					bits |= 0o111
				default:
					return 0, clause[i], false
				}
			}
			switch act {
			case '+':
				perm |= bits & who
			case '-':
				perm &^= bits & who
			case '=':
				perm = perm&^who | bits&who
			}
		}
	}
	return ^perm & 0o777, 0, false
}
