// Package jq is the JSON processor jq 1.6: its options, output and exit statuses, on the engine github.com/itchyny/gojq.
//
// The engine forgets the order of an object's keys; jq keeps it. Objects that come from the input as they are keep
// theirs; others are printed in the order in which their keys stand in the program, or appeared in the input. The
// engine's own enumeration of an object (.[], to_entries) goes by sorted keys.
package jq

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyArg = tool.KeyOwn + iota
	keyArgJSON
	keySlurpfile
	keyRawfile
	keyArgs
	keyJSONArgs
	keyTab
	keyIndent
	keySeq
	keyStream
	keyUnbuffered
)

var spec = tool.Spec{
	Usage: []string{"[OPTIONS] FILTER [FILES...]", "[OPTIONS] --args FILTER [ARGUMENTS...]"},
	About: "jq is a tool for processing JSON inputs, applying the given filter to\nits JSON text inputs and producing the filter's results as JSON on standard output.",
	Options: []getopt.Option{
		{Short: 'c', Long: "compact-output", Help: "compact instead of pretty-printed output"},
		{Short: 'n', Long: "null-input", Help: "use `null` as the single input value"},
		{Short: 'e', Long: "exit-status", Help: "set the exit status code based on the output"},
		{Short: 's', Long: "slurp", Help: "read (slurp) all inputs into an array; apply filter to it"},
		{Short: 'r', Long: "raw-output", Help: "output raw strings, not JSON texts"},
		{Short: 'R', Long: "raw-input", Help: "read raw strings, not JSON texts"},
		{Short: 'C', Long: "color-output", Help: "colorize JSON"},
		{Short: 'M', Long: "monochrome-output", Help: "monochrome (don't colorize JSON)"},
		{Short: 'S', Long: "sort-keys", Help: "sort keys of objects on output"},
		{Short: 'a', Long: "ascii-output", Help: "escape characters beyond ASCII"},
		{Short: 'j', Long: "join-output", Help: "like -r, without newlines after outputs"},
		{Short: 'f', Long: "from-file", Help: "read filter from the file that is the first argument"},
		{Short: 'h', Key: 'h'},
		{Long: "tab", Key: keyTab, Help: "use tabs for indentation"},
		{Long: "indent", Key: keyIndent, Arg: getopt.Required, Name: "n", Help: "use the given number of spaces for indentation"},
		{Long: "unbuffered", Key: keyUnbuffered, Help: "flush the output after each value"},
		{Long: "seq", Key: keySeq, Help: "write an RS character before each output"},
		{Long: "stream", Key: keyStream, Help: "parse the input in streaming fashion"},
		{Long: "arg", Key: keyArg, Help: "NAME VALUE: set variable $NAME to string VALUE"},
		{Long: "argjson", Key: keyArgJSON, Help: "NAME JSON: set variable $NAME to a JSON value"},
		{Long: "slurpfile", Key: keySlurpfile, Help: "NAME FILE: set variable $NAME to an array of the JSON values in FILE"},
		{Long: "rawfile", Key: keyRawfile, Help: "NAME FILE: set variable $NAME to the text of FILE"},
		{Long: "args", Key: keyArgs, Help: "remaining arguments are strings, not files"},
		{Long: "jsonargs", Key: keyJSONArgs, Help: "remaining arguments are JSON values, not files"},
	},
	Package: "jq) 1.6", Fail: 2,
}

// Limits of inputs held in memory.
const (
	maxInput   = 256 << 20
	maxProgram = 16 << 20
)

type runner struct {
	t                                     *tool.T
	null, status, slurp, raw, rawIn, join bool
	fromFile, seq, stream, unbuffered     bool
	print                                 printer
	names                                 []string
	values                                []any
	named                                 map[string]any
	positional                            []any
	files                                 []string
	in                                    *inputs
}

// Jq filters JSON.
func Jq(t *tool.T) int {
	r := &runner{t: t, named: map[string]any{}, print: printer{indent: 2, order: newOrder()}}
	filter, ok := r.arguments(t.Args()[1:])
	if !ok {
		t.Out.Reset(t.Stderr())
		t.Help(&spec)
		return 2
	}
	if r.fromFile {
		b, err := t.ReadFile(filter, maxProgram)
		if err != nil {
			t.Fatal(2, "error: Could not open %s: %s", filter, tool.Strerror(err))
		}
		filter = string(b)
	}
	r.print.order.program(filter)
	query, err := gojq.Parse(filter)
	if err != nil {
		t.Stderr().Write([]byte("jq: error: " + err.Error() + "\njq: 1 compile error\n"))
		return 3
	}
	r.in = &inputs{r: r, files: r.files}
	env := t.Environ()
	code, err := gojq.Compile(query, gojq.WithVariables(append(r.names, "$ARGS")), gojq.WithEnvironLoader(func() []string { return env }),
		gojq.WithInputIter(r.in))
	if err != nil {
		t.Stderr().Write([]byte("jq: error: " + err.Error() + "\njq: 1 compile error\n"))
		return 3
	}
	return r.run(code)
}

// arguments reads the command line, whose options may take two arguments and stand anywhere.
func (r *runner) arguments(args []string) (filter string, ok bool) {
	have, mode := false, rune(0)
	positional := func(a string) {
		switch {
		case !have:
			filter, have = a, true
		case mode == keyArgs:
			r.positional = append(r.positional, a)
		case mode == keyJSONArgs:
			r.positional = append(r.positional, r.json(a, "--jsonargs"))
		default:
			r.files = append(r.files, a)
		}
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			for _, a := range args[i+1:] {
				positional(a)
			}
			break
		}
		if len(a) < 2 || a[0] != '-' {
			positional(a)
			continue
		}
		used := 1
		if a == "--indent" {
			used = 2
		}
		opts, _ := r.t.ParseArgs(&spec, args[i:min(len(args), i+used)])
		i += used - 1
		for _, o := range opts {
			switch o.Key {
			case keyArg, keyArgJSON, keySlurpfile, keyRawfile:
				if i+2 >= len(args) {
					r.t.UsageError(2, "%s takes two parameters (e.g. %s name value)", o.As, o.As)
				}
				r.variable(o.Key, o.As, args[i+1], args[i+2])
				i += 2
			case keyArgs, keyJSONArgs:
				mode = o.Key
			default:
				r.option(o)
			}
		}
	}
	return filter, have
}

func (r *runner) option(o getopt.Opt) {
	p := &r.print
	switch o.Key {
	case 'c':
		p.compact = true
	case 'n':
		r.null = true
	case 'e':
		r.status = true
	case 's':
		r.slurp = true
	case 'r':
		r.raw = true
	case 'R':
		r.rawIn = true
	case 'C':
		p.color = true
	case 'M':
		p.color = false
	case 'S':
		p.sort = true
	case 'a':
		p.ascii = true
	case 'j':
		r.raw, r.join = true, true
	case 'f':
		r.fromFile = true
	case 'h':
		r.t.Help(&spec)
		r.t.Exit(0)
	case keyTab:
		p.tab = true
	case keyIndent:
		n, err := strconv.Atoi(o.Arg)
		switch {
		case err != nil || n < 0:
			r.t.UsageError(2, "Cannot indent less than zero characters")
		case n > 7:
			r.t.UsageError(2, "Cannot indent more than 7 characters")
		}
		p.indent, p.compact, p.tab = n, n == 0, false
	case keySeq:
		r.seq = true
	case keyStream:
		r.stream = true
	case keyUnbuffered:
		r.unbuffered = true
	}
}

func (r *runner) json(text, option string) any {
	d := newDecoder(strings.NewReader(text), r.print.order)
	v, err := d.next()
	if err == nil {
		if _, err = d.next(); errors.Is(err, io.EOF) {
			return v
		}
	}
	r.t.UsageError(2, "Invalid JSON text passed to %s", option)
	return nil
}

func (r *runner) variable(key rune, option, name, value string) {
	var v any
	switch key {
	case keyArg:
		v = value
	case keyArgJSON:
		v = r.json(value, option)
	default:
		b, err := r.t.ReadFile(value, maxInput)
		if err != nil {
			r.t.Fatal(2, "Bad JSON in %s %s %s: Could not open %s: %s", option, name, value, value, tool.Strerror(err))
		}
		if v = string(b); key == keySlurpfile {
			list := []any{}
			d := newDecoder(strings.NewReader(string(b)), r.print.order)
			for {
				x, err := d.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					r.t.Fatal(2, "Bad JSON in %s %s %s: %s", option, name, value, err)
				}
				list = append(list, x)
			}
			v = list
		}
	}
	if _, dup := r.named[name]; !dup {
		r.names = append(r.names, "$"+name)
		r.values = append(r.values, v)
		r.named[name] = v
	}
}

// run applies the filter to each input.
func (r *runner) run(code *gojq.Code) int {
	status, printed := 0, false
	var last any
	if r.positional == nil {
		r.positional = []any{}
	}
	vars := append(append([]any{}, r.values...), map[string]any{"named": r.named, "positional": r.positional})
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	defer watch(cancel)()
	apply := func(v any) bool {
		iter := code.RunWithContext(ctx, v, vars...)
		for {
			x, ok := iter.Next()
			if !ok {
				return true
			}
			r.t.Check()
			if err, bad := x.(error); bad {
				if ctx.Err() != nil {
					r.t.Check() // unless the command was killed, watch has canceled
					r.t.Out.Flush()
					r.t.Fatal(5, "error: memory exhausted")
				}
				var halt *gojq.HaltError
				if errors.As(err, &halt) {
					r.halt(halt)
					status = halt.ExitCode()
					return false
				}
				r.t.Out.Flush()
				r.t.Stderr().Write([]byte("jq: error (at " + r.in.place() + "): " + err.Error() + "\n"))
				status = 5
				return true
			}
			r.output(x)
			last, printed = x, true
		}
	}
	if r.null {
		apply(nil)
	} else {
		for {
			v, ok := r.in.Next()
			if !ok {
				break
			}
			if err, bad := v.(error); bad {
				r.t.Out.Flush()
				r.t.Stderr().Write([]byte("jq: error (at " + r.in.place() + "): " + err.Error() + "\n"))
				return 2
			}
			if !apply(v) {
				return status
			}
		}
	}
	switch {
	case r.in.failed:
		return 2
	case status != 0:
		return status
	case r.status && !printed:
		return 4
	case r.status && (last == nil || last == false):
		return 1
	}
	return 0
}

func (r *runner) halt(h *gojq.HaltError) {
	r.t.Out.Flush()
	if v := h.Value(); v != nil && h.ExitCode() != 0 {
		if s, ok := v.(string); ok {
			r.t.Stderr().Write([]byte(s))
		} else {
			p := printer{compact: true, order: r.print.order}
			r.t.Stderr().Write([]byte(p.text(v) + "\n"))
		}
	}
}

func (r *runner) output(v any) {
	w := r.t.Out
	if r.seq {
		w.WriteByte(0x1e)
	}
	if s, ok := v.(string); ok && r.raw {
		if r.print.ascii {
			s = strings.Trim(r.print.text(v), `"`)
		}
		w.WriteString(s)
	} else {
		w.WriteString(r.print.text(v))
	}
	if !r.join {
		w.WriteByte('\n')
	}
	if r.unbuffered {
		w.Flush()
	}
}
