// Package getopt parses command lines as GNU getopt_long does.
//
// An option is one letter (-x), a long name (--name) or both. Options and operands may come in any order (permutation)
// unless the caller asks for the POSIX order. "--" ends the options. A long name may be shortened to any unambiguous
// prefix. Errors are worded as the C library words them, without the program's name.
package getopt

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Arg says whether an option takes an argument.
type Arg uint8

const (
	No       Arg = iota // none
	Required            // -xARG, -x ARG, --name=ARG, --name ARG
	Optional            // -xARG, --name=ARG only
)

// Option is one option. Key identifies it in results; zero means Short. Options that have only a long name need a Key
// outside of the letters: by convention a value above utf8.MaxRune.
type Option struct {
	Short  rune
	Long   string
	Key    rune
	Arg    Arg
	Name   string // of the argument, in the help text
	Help   string // one line; empty hides the option from the help text
	Hidden bool   // left out of the help text, such as an alias
}

// Id returns what results call the option.
func (o *Option) Id() rune {
	if o.Key != 0 {
		return o.Key
	}
	return o.Short
}

// Order says how operands among options are treated.
type Order uint8

const (
	Permute  Order = iota // options may follow operands
	POSIX                 // the first operand ends the options
	InOrder               // operands are returned among the options, with the key Operand
	LongOnly              // as Permute, and -name is tried as a long name first
)

// Operand is the key of an operand when the order is InOrder.
const Operand rune = 1

// Opt is one option found.
type Opt struct {
	Key rune
	Arg string
	Has bool   // an argument was given; tells an empty optional argument from none
	As  string // as it was written: "-x" or "--name" in full
}

// Parse splits args (without the program's name) into options and operands. On an error, the options before it are
// returned too, since a preceding --help wins over a later mistake.
func Parse(options []Option, args []string, order Order) (found []Opt, operands []string, err error) {
	p := parser{options: options, order: order}
	for len(args) > 0 {
		a := args[0]
		switch {
		case a == "--":
			return p.finish(args[1:], nil)
		case strings.HasPrefix(a, "--"):
			args, err = p.long(a[2:], "--", args[1:])
		case len(a) > 1 && a[0] == '-':
			args, err = p.cluster(a, args[1:])
		case order == POSIX:
			return p.finish(args, nil)
		case order == InOrder:
			p.found = append(p.found, Opt{Key: Operand, Arg: a, Has: true})
			args = args[1:]
		default:
			p.operands = append(p.operands, a)
			args = args[1:]
		}
		if err != nil {
			return p.finish(nil, err)
		}
	}
	return p.finish(nil, nil)
}

type parser struct {
	options  []Option
	order    Order
	found    []Opt
	operands []string
}

func (p *parser) finish(rest []string, err error) ([]Opt, []string, error) {
	if p.order == InOrder {
		for _, a := range rest {
			p.found = append(p.found, Opt{Key: Operand, Arg: a, Has: true})
		}
		return p.found, nil, err
	}
	return p.found, append(p.operands, rest...), err
}

// cluster parses -abc: letters without arguments, the last of which may have one.
func (p *parser) cluster(a string, rest []string) ([]string, error) {
	if p.order == LongOnly && len(a) > 2 {
		if o, _ := p.match(strings.SplitN(a[1:], "=", 2)[0]); o != nil {
			return p.long(a[1:], "-", rest)
		}
	}
	for s := a[1:]; s != ""; {
		r, n := utf8.DecodeRuneInString(s)
		letter := s[:n]
		s = s[n:]
		o := p.short(r)
		if o == nil {
			return nil, fmt.Errorf("invalid option -- '%s'", letter)
		}
		opt := Opt{Key: o.Id(), As: "-" + letter}
		switch o.Arg {
		case No:
			p.found = append(p.found, opt)
			continue
		case Required:
			if s == "" {
				if len(rest) == 0 {
					return nil, fmt.Errorf("option requires an argument -- '%s'", letter)
				}
				s, rest = rest[0], rest[1:]
			}
			opt.Arg, opt.Has = s, true
		case Optional:
			opt.Arg, opt.Has = s, s != ""
		}
		p.found = append(p.found, opt)
		break
	}
	return rest, nil
}

func (p *parser) short(r rune) *Option {
	for i := range p.options {
		if p.options[i].Short == r && r != 0 {
			return &p.options[i]
		}
	}
	return nil
}

// match finds the long option of a name or an unambiguous prefix of one; several candidates that mean the same
// (same key and argument) aren't ambiguous.
func (p *parser) match(name string) (o *Option, candidates []string) {
	for i := range p.options {
		c := &p.options[i]
		if c.Long == "" || !strings.HasPrefix(c.Long, name) {
			continue
		}
		if c.Long == name {
			return c, nil
		}
		candidates = append(candidates, c.Long)
		if o == nil {
			o = c
		} else if o.Id() != c.Id() || o.Arg != c.Arg {
			o = &Option{Key: -1}
		}
	}
	if o != nil && o.Key == -1 {
		return nil, candidates
	}
	return o, nil
}

func (p *parser) long(s, dash string, rest []string) ([]string, error) {
	name, arg, has := strings.Cut(s, "=")
	o, candidates := p.match(name)
	switch {
	case len(candidates) > 0:
		return nil, fmt.Errorf("option '%s%s' is ambiguous; possibilities: '--%s'", dash, s, strings.Join(candidates, "' '--"))
	case o == nil:
		return nil, fmt.Errorf("unrecognized option '%s%s'", dash, s)
	case has && o.Arg == No:
		return nil, fmt.Errorf("option '%s%s' doesn't allow an argument", dash, o.Long)
	case !has && o.Arg == Required:
		if len(rest) == 0 {
			return nil, fmt.Errorf("option '%s%s' requires an argument", dash, o.Long)
		}
		arg, rest, has = rest[0], rest[1:], true
	}
	p.found = append(p.found, Opt{Key: o.Id(), Arg: arg, Has: has, As: "--" + o.Long})
	return rest, nil
}

// Help renders the options as a help text, one a line.
func Help(options []Option) string {
	var b strings.Builder
	for i := range options {
		o := &options[i]
		if o.Hidden || o.Help == "" {
			continue
		}
		left := "      "
		if o.Short != 0 {
			left = "  -" + string(o.Short)
			if o.Long != "" {
				left += ", "
			}
		}
		if o.Long != "" {
			left += "--" + o.Long
		}
		switch {
		case o.Arg == Optional && o.Long != "":
			left += "[=" + o.Name + "]"
		case o.Arg == Optional:
			left += "[" + o.Name + "]"
		case o.Arg == Required && o.Long != "":
			left += "=" + o.Name
		case o.Arg == Required:
			left += " " + o.Name
		}
		if len(left) > 27 {
			fmt.Fprintf(&b, "%s\n%-29s %s\n", left, "", o.Help)
		} else {
			fmt.Fprintf(&b, "%-29s %s\n", left, o.Help)
		}
	}
	return b.String()
}
