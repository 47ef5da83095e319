package jq

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"reflect"
	"strings"

	"agentrun.dev/command/tool"
)

// order remembers in which order keys came.
type order struct {
	objects map[uintptr][]string // of objects as they were read, by the identity of their map
	keep    []map[string]any     // so that an identity isn't reused
	inText  map[string]int       // where keys stand in the program
	seen    map[string]int       // in which order keys appeared in the input
}

// maxOrders bounds how many objects' orders are remembered; those of further ones follow the keys' first appearance.
const maxOrders = 1 << 18

func newOrder() *order {
	return &order{objects: map[uintptr][]string{}, inText: map[string]int{}, seen: map[string]int{}}
}

// program notes the words of the filter.
func (o *order) program(filter string) {
	for i, w := range strings.FieldsFunc(filter, func(r rune) bool {
		return !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f)
	}) {
		if _, ok := o.inText[w]; !ok {
			o.inText[w] = i
		}
	}
}

func (o *order) remember(m map[string]any, keys []string) {
	for _, k := range keys {
		if _, ok := o.seen[k]; !ok && len(o.seen) < maxOrders {
			o.seen[k] = len(o.seen)
		}
	}
	if len(keys) > 1 && len(o.objects) < maxOrders {
		o.objects[reflect.ValueOf(m).Pointer()] = keys
		o.keep = append(o.keep, m)
	}
}

// decoder reads JSON values one after the other, keeping the order of keys.
type decoder struct {
	d     *json.Decoder
	o     *order
	depth int
}

// maxDepth is how deep values may nest, as in jq.
const maxDepth = 10000

func newDecoder(r io.Reader, o *order) *decoder {
	d := json.NewDecoder(r)
	d.UseNumber()
	return &decoder{d: d, o: o}
}

var errDepth = errors.New("Exceeds depth limit for parsing")

// next returns the next value, io.EOF at the end.
func (d *decoder) next() (any, error) {
	t, err := d.d.Token()
	if err != nil {
		return nil, err
	}
	return d.value(t)
}

func (d *decoder) value(t json.Token) (any, error) {
	switch t := t.(type) {
	case json.Delim:
		if d.depth++; d.depth > maxDepth {
			return nil, errDepth
		}
		defer func() { d.depth-- }()
		switch t {
		case '[':
			return d.list()
		case '{':
			return d.object()
		}
		return nil, fmt.Errorf("unexpected %v", t)
	case json.Number:
		return number(string(t)), nil
	}
	return t, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("Unfinished JSON term")
	}
	return err
}

func (d *decoder) list() (any, error) {
	out := []any{}
	for d.d.More() {
		v, err := d.next()
		if err != nil {
			return nil, unexpected(err)
		}
		out = append(out, v)
	}
	_, err := d.d.Token()
	if err != nil {
		return nil, unexpected(err)
	}
	return out, nil
}

func (d *decoder) object() (any, error) {
	m := map[string]any{}
	var keys []string
	for d.d.More() {
		t, err := d.d.Token()
		if err != nil {
			return nil, unexpected(err)
		}
		k, ok := t.(string)
		if !ok {
			return nil, errors.New("Object keys must be strings")
		}
		v, err := d.next()
		if err != nil {
			return nil, unexpected(err)
		}
		if _, dup := m[k]; !dup {
			keys = append(keys, k)
		}
		m[k] = v
	}
	if _, err := d.d.Token(); err != nil {
		return nil, unexpected(err)
	}
	d.o.remember(m, keys)
	return m, nil
}

// number reads a number as the engine wants it: int where it is one, else float64.
func number(s string) any {
	if i, ok := new(big.Int).SetString(s, 10); ok && i.IsInt64() && i.Int64() <= 1<<53 && i.Int64() >= -(1<<53) {
		return int(i.Int64())
	}
	f, _, err := big.ParseFloat(s, 10, 64, big.ToNearestEven)
	if err != nil {
		return 0.0
	}
	v, _ := f.Float64()
	if math.IsInf(v, 0) {
		v = math.Copysign(math.MaxFloat64, v)
	}
	return v
}

// inputs are the values of all files; it implements gojq.Iter for the function input.
type inputs struct {
	r      *runner
	files  []string
	opened bool
	cur    *tool.Input
	name   string
	dec    *decoder
	lines  *tool.Lines
	done   bool
	failed bool
	queue  []any
}

func (in *inputs) place() string {
	if in.name == "" {
		return "<unknown>"
	}
	return in.name + ":0"
}

// open opens the next file.
func (in *inputs) open() bool {
	if in.cur != nil {
		in.cur.Close()
		in.cur = nil
	}
	if !in.opened && len(in.files) == 0 {
		in.files = []string{"-"}
	}
	in.opened = true
	for len(in.files) > 0 {
		name := in.files[0]
		in.files = in.files[1:]
		f, err := in.r.t.Open(name)
		if err == nil {
			if a, aerr := f.Attr(); aerr == nil && a.Mode.IsDir() {
				f.Close()
				in.r.t.Warn("error: Could not open %s: It's a directory", name)
				in.failed = true
				continue
			}
			in.cur, in.name = f, name
			if name == "-" {
				in.name = "<stdin>"
			}
			in.dec = newDecoder(f, in.r.print.order)
			in.lines = tool.NewLines(f, '\n')
			return true
		}
		in.r.t.Warn("error: Could not open %s: %s", name, tool.Strerror(err))
		in.failed = true
	}
	return false
}

// one returns the next single value or line of the files.
func (in *inputs) one() (any, error) {
	for {
		if in.cur == nil && !in.open() {
			return nil, io.EOF
		}
		if in.r.rawIn {
			if line, ok := in.lines.Next(); ok {
				return strings.ToValidUTF8(string(line), "\uFFFD"), nil
			}
		} else if v, err := in.dec.next(); !errors.Is(err, io.EOF) {
			return v, err
		}
		if !in.open() {
			return nil, io.EOF
		}
	}
}

// Next implements gojq.Iter.
func (in *inputs) Next() (any, bool) {
	if len(in.queue) > 0 {
		v := in.queue[0]
		in.queue = in.queue[1:]
		return v, true
	}
	if in.done {
		return nil, false
	}
	if in.r.slurp {
		in.done = true
		return in.all(), true
	}
	v, err := in.one()
	if err != nil {
		in.done = true
		if errors.Is(err, io.EOF) {
			return nil, false
		}
		return err, true
	}
	if in.r.stream {
		in.events(v, nil)
		return in.Next()
	}
	return v, true
}

// all is -s: an array of all values, or with -R the whole text.
func (in *inputs) all() any {
	if in.r.rawIn {
		var b strings.Builder
		for in.open() {
			n, err := io.Copy(&b, io.LimitReader(in.cur, maxInput))
			if err != nil || n >= maxInput {
				return errors.New("the input is too large")
			}
		}
		return b.String()
	}
	list := []any{}
	for {
		v, err := in.one()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			return err
		}
		list = append(list, v)
	}
}

// events queues what --stream makes of a value.
func (in *inputs) events(v any, path []any) {
	p := append([]any{}, path...)
	var last any
	switch v := v.(type) {
	case []any:
		for i, x := range v {
			in.events(x, append(p, i))
			last = i
		}
	case map[string]any:
		for _, k := range in.r.print.keys(v) {
			in.events(v[k], append(p, k))
			last = k
		}
	}
	if last == nil {
		in.queue = append(in.queue, []any{p, v})
		return
	}
	in.queue = append(in.queue, []any{append(p, last)})
}
