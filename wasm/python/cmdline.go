package python

import (
	"strings"
)

// request is what a warm run is to do: the part of CPython's command line and environment that doesn't concern its initialisation.
type request struct {
	command, module, file *string
	args                  []string // sys.argv
	path                  string   // PYTHONPATH
	executable            string
	unbuffered, interactive, quiet,
	noBytecode, noUserSite, safePath bool
}

// parse reads a command line as CPython 3.11 does. It returns false if the run must be a cold one: so are those with errors, whose messages
// are CPython's own affair.
func parse(args, env []string) (r request, ok bool) {
	if !r.environment(env) {
		return r, false
	}
	i := 0
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			i++
			break
		}
		if len(a) < 2 || a[0] != '-' {
			break
		}
		rest, value, found := r.options(a[1:])
		switch {
		case !found:
			return r, false
		case value == 0:
			continue
		}
		if rest == "" { // the value is the next argument
			if i++; i >= len(args) {
				return r, false
			}
			rest = args[i]
		}
		if value == 'c' {
			rest += "\n"
			r.command, r.args = &rest, []string{"-c"}
		} else {
			r.module, r.args = &rest, []string{"-m"}
		}
		r.args = append(r.args, args[i+1:]...)
		return r, true
	}
	switch {
	case i >= len(args):
		r.args = []string{""}
	case args[i] == "-":
		r.args = args[i:]
	default:
		r.file, r.args = &args[i], args[i:]
	}
	return r, true
}

// options reads letters behind one dash. value is the letter that wants a value, c or m, with what follows it; 0 if none does. found is false for a
// letter that a warm run doesn't have.
func (r *request) options(letters string) (rest string, value byte, found bool) {
	for i := 0; i < len(letters); i++ {
		switch letters[i] {
		case 'c', 'm':
			return letters[i+1:], letters[i], true
		case 'u':
			r.unbuffered = true
		case 'i':
			r.interactive = true
		case 'q':
			r.quiet = true
		case 'B':
			r.noBytecode = true
		case 's':
			r.noUserSite = true
		case 'P':
			r.safePath = true
		default:
			return "", 0, false
		}
	}
	return "", 0, true
}

// environment takes the variables that a warm run understands; false if there are others.
func (r *request) environment(env []string) bool {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "PYTHON") || value == "" {
			continue
		}
		switch name {
		case "PYTHONPATH":
			r.path = value
		case "PYTHONUNBUFFERED":
			r.unbuffered = true
		case "PYTHONDONTWRITEBYTECODE":
			r.noBytecode = true
		case "PYTHONNOUSERSITE":
			r.noUserSite = true
		case "PYTHONSAFEPATH":
			r.safePath = true
		case "PYTHONUSERBASE":
		case "PYTHONHASHSEED":
			if value != "random" {
				return false
			}
		case "PYTHONUTF8":
			return false
		default:
			return false
		}
	}
	return true
}

// encode writes the request as _agentrun_boot.py reads it.
func (r *request) encode(argv []string) []byte {
	var b []byte
	field := func(name, value string) {
		b = append(append(append(b, name...), '='), value...)
		b = append(b, 0)
	}
	for name, value := range map[string]*string{"command": r.command, "module": r.module, "file": r.file} {
		if value != nil {
			field(name, *value)
		}
	}
	for name, on := range map[string]bool{"u": r.unbuffered, "i": r.interactive, "q": r.quiet, "B": r.noBytecode, "s": r.noUserSite, "P": r.safePath} {
		if on {
			field(name, "1")
		}
	}
	for _, a := range r.args {
		field("arg", a)
	}
	for _, a := range argv {
		field("orig", a)
	}
	field("path", r.path)
	field("executable", r.executable)
	return b
}
