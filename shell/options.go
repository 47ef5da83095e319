package shell

import (
	"slices"
	"sort"
	"strings"
)

// options are set's.
type options struct {
	allexport, errexit, errtrace, functrace, hashall, ignoreeof, keyword, monitor, noclobber, noexec, noglob, nounset, onecmd,
	physical, pipefail, posix, privileged, verbose, vi, emacs, xtrace, braceexpand, histexpand, history, nolog, notify bool
	stdin, command, interactive bool // -s, -c, -i: shown in $- only
}

type optionName struct {
	name   string
	letter byte // 0 without one
	field  func(*options) *bool
}

func optionTable() []optionName {
	return []optionName{
		{"allexport", 'a', func(o *options) *bool { return &o.allexport }},
		{"braceexpand", 'B', func(o *options) *bool { return &o.braceexpand }},
		{"emacs", 0, func(o *options) *bool { return &o.emacs }},
		{"errexit", 'e', func(o *options) *bool { return &o.errexit }},
		{"errtrace", 'E', func(o *options) *bool { return &o.errtrace }},
		{"functrace", 'T', func(o *options) *bool { return &o.functrace }},
		{"hashall", 'h', func(o *options) *bool { return &o.hashall }},
		{"histexpand", 'H', func(o *options) *bool { return &o.histexpand }},
		{"history", 0, func(o *options) *bool { return &o.history }},
		{"ignoreeof", 0, func(o *options) *bool { return &o.ignoreeof }},
		{"interactive-comments", 0, func(o *options) *bool { return nil }},
		{"keyword", 'k', func(o *options) *bool { return &o.keyword }},
		{"monitor", 'm', func(o *options) *bool { return &o.monitor }},
		{"noclobber", 'C', func(o *options) *bool { return &o.noclobber }},
		{"noexec", 'n', func(o *options) *bool { return &o.noexec }},
		{"noglob", 'f', func(o *options) *bool { return &o.noglob }},
		{"nolog", 0, func(o *options) *bool { return &o.nolog }},
		{"notify", 'b', func(o *options) *bool { return &o.notify }},
		{"nounset", 'u', func(o *options) *bool { return &o.nounset }},
		{"onecmd", 't', func(o *options) *bool { return &o.onecmd }},
		{"physical", 'P', func(o *options) *bool { return &o.physical }},
		{"pipefail", 0, func(o *options) *bool { return &o.pipefail }},
		{"posix", 0, func(o *options) *bool { return &o.posix }},
		{"privileged", 'p', func(o *options) *bool { return &o.privileged }},
		{"verbose", 'v', func(o *options) *bool { return &o.verbose }},
		{"vi", 0, func(o *options) *bool { return &o.vi }},
		{"xtrace", 'x', func(o *options) *bool { return &o.xtrace }},
	}
}

// option returns a long option's place; an option that can't be changed has a place of its own.
func (o *options) byName(name string) (*bool, bool) {
	for _, e := range optionTable() {
		if e.name == name {
			if p := e.field(o); p != nil {
				return p, true
			}
			on := true
			return &on, true
		}
	}
	return nil, false
}

func (o *options) byLetter(c byte) *bool {
	for _, e := range optionTable() {
		if e.letter == c && c != 0 {
			return e.field(o)
		}
	}
	return nil
}

// flags is $-.
func (o *options) flags() string {
	var b []byte
	for _, e := range optionTable() {
		if e.letter != 0 && *e.field(o) {
			b = append(b, e.letter)
		}
	}
	if o.interactive {
		b = append(b, 'i')
	}
	sort.Slice(b, func(i, j int) bool { return flagOrder(b[i]) < flagOrder(b[j]) })
	if o.command {
		b = append(b, 'c')
	}
	if o.stdin {
		b = append(b, 's')
	}
	return string(b)
}

func flagOrder(c byte) int { return strings.IndexByte("abefhikmnprtuvxBCEHPT", c) }

func (sh *Shell) shellopts() string {
	var out []string
	for _, e := range optionTable() {
		if p := e.field(&sh.opts); p == nil || *p {
			out = append(out, e.name)
		}
	}
	return strings.Join(out, ":")
}

// shopts are shopt's: a bit each, in the order of shoptNumbers.
type shopts struct{ on uint64 }

// shoptOn lists bash's options that are on at the start of a script, shoptOff the others.
const (
	shoptOn  = "checkwinsize cmdhist complete_fullquote extquote force_fignore globasciiranges globskipdots hostcomplete interactive_comments patsub_replacement progcomp promptvars sourcepath"
	shoptOff = "autocd assoc_expand_once cdable_vars cdspell checkhash checkjobs compat31 compat32 compat40 compat41 compat42 compat43 compat44 direxpand dirspell dotglob execfail expand_aliases extdebug extglob failglob globstar gnu_errfmt histappend histreedit histverify huponexit inherit_errexit lastpipe lithist localvar_inherit localvar_unset login_shell mailwarn no_empty_cmd_completion nocaseglob nocasematch noexpand_translation nullglob progcomp_alias restricted_shell shift_verbose varredir_close xpg_echo"
)

// shoptNumbers numbers the options, those first that are on at the start; shoptList has their names in order.
var shoptNumbers, shoptList = numberShopts()

func numberShopts() (map[string]uint8, []string) {
	list := append(strings.Fields(shoptOn), strings.Fields(shoptOff)...)
	m := make(map[string]uint8, len(list))
	for i, n := range list {
		m[n] = uint8(i)
	}
	slices.Sort(list)
	return m, list
}

func shoptDefaults() uint64 { return 1<<len(strings.Fields(shoptOn)) - 1 }

func (s *shopts) get(name string) bool {
	i, ok := shoptNumbers[name]
	return ok && s.on&(1<<i) != 0
}

func (s *shopts) known(name string) bool {
	_, ok := shoptNumbers[name]
	return ok
}

func (s *shopts) set(name string, on bool) {
	if i, ok := shoptNumbers[name]; ok {
		s.on &^= 1 << i
		if on {
			s.on |= 1 << i
		}
	}
}

func (s *shopts) enabled() []string {
	var out []string
	for _, k := range shoptList {
		if s.get(k) {
			out = append(out, k)
		}
	}
	return out
}
