package shell

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"time"
	"unsafe"

	"agentrun.dev/proc"
	"mvdan.cc/sh/v3/syntax"
)

// A saved shell is its structs field by field, those that are zero left out. Fields go by their names, so that a shell that has
// since got more fields reads what an older one wrote. Numbers are varints; what has a length begins with it, one more
// where nil is something else than empty; a pointer begins with 1, nil is 0; nodes of a script are the number of a unit and
// theirs in it. A field whose tag is `save:"-"`, a token and a process aren't saved.

var (
	typeUnit    = reflect.TypeFor[*unit]()
	typeOwner   = reflect.TypeFor[*owner]()
	typeProcess = reflect.TypeFor[*proc.Process]()
	typeShell   = reflect.TypeFor[*Shell]()
	typeTime    = reflect.TypeFor[time.Time]()
	typeFrame   = reflect.TypeFor[frame]()
	typeNode    = reflect.TypeFor[syntax.Node]()
)

// frameKinds are all frames that there are.
func frameKinds() []frame {
	return []frame{&listFrame{}, &assignFrame{}, &negFrame{}, &andOrFrame{}, &ifFrame{}, &whileFrame{}, &forFrame{}, &cForFrame{}, &selectFrame{},
		&caseFrame{}, &restoreFrame{}, &funcFrame{}, &textFrame{}, &jobWaitFrame{}, &readFrame{}, &lastStageFrame{}, &timeFrame{}, &trapFrame{},
		&exitFrame{}, &waitFrame{}, &mapfileFrame{}, &debugFrame{}, &fcFrame{}, &promptFrame{}}
}

// saved tells whether a field is part of what is saved.
func saved(f reflect.StructField) bool {
	return f.Tag.Get("save") != "-" && f.Type != typeOwner && f.Type != typeProcess && f.Type != typeShell
}

// reach makes a field that isn't exported one that reflection reads and writes.
func reach(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// encoder writes values. Its first pass, which writes nothing that counts, finds the units.
type encoder struct {
	out   []byte
	names map[string]uint64
	units []*unit
	unit  map[*unit]uint64
	nodes map[syntax.Node][2]uint64 // nil in the first pass
	err   error
}

func (e *encoder) uint(n uint64) { e.out = binary.AppendUvarint(e.out, n) }
func (e *encoder) int(n int64)   { e.out = binary.AppendVarint(e.out, n) }

func (e *encoder) string(s string) {
	e.uint(uint64(len(s)))
	e.out = append(e.out, s...)
}

// name writes a name, from its second time on as a number.
func (e *encoder) name(s string) {
	n, ok := e.names[s]
	if !ok {
		n = uint64(len(e.names))
		e.names[s] = n
	}
	if e.uint(n); !ok {
		e.string(s)
	}
}

func (e *encoder) fail(t reflect.Type, why string) {
	if e.err == nil {
		e.err = fmt.Errorf("%s: %s", t, why)
	}
}

func (e *encoder) value(v reflect.Value) {
	switch t := v.Type(); {
	case t == typeUnit:
		e.unitRef(v.Interface().(*unit))
		return
	case t == typeTime:
		e.time(v.Interface().(time.Time))
		return
	case t == typeFrame:
		if v.IsNil() {
			e.fail(t, "nil")
			return
		}
		e.name(v.Elem().Type().Elem().Name())
		e.value(v.Elem().Elem())
		return
	case t.Implements(typeNode):
		e.node(v)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		e.uint(uint64(b2i(v.Bool())))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.int(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.uint(v.Uint())
	case reflect.String:
		e.string(v.String())
	case reflect.Array:
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Slice:
		e.slice(v)
	case reflect.Map:
		e.mapped(v)
	case reflect.Struct:
		e.fields(v)
	case reflect.Pointer:
		if v.IsNil() {
			e.uint(0)
			return
		}
		e.uint(1)
		e.value(v.Elem())
	default:
		e.fail(v.Type(), "such values can't be saved")
	}
}

// writes tells whether a field is written. One whose tag is `save:"weak"` is left out if its node is of no unit.
func (e *encoder) writes(f reflect.StructField, v reflect.Value) bool {
	if !saved(f) || v.IsZero() {
		return false
	}
	if f.Tag.Get("save") != "weak" {
		return true
	}
	n, ok := reach(v).Interface().(syntax.Node)
	_, known := e.nodes[n]
	return ok && known
}

func (e *encoder) fields(v reflect.Value) {
	t := v.Type()
	n := 0
	for i := range t.NumField() {
		if e.writes(t.Field(i), v.Field(i)) {
			n++
		}
	}
	e.uint(uint64(n))
	for i := range t.NumField() {
		if f := t.Field(i); e.writes(f, v.Field(i)) {
			e.name(f.Name)
			e.value(reach(v.Field(i)))
		}
	}
}

func (e *encoder) slice(v reflect.Value) {
	if v.IsNil() {
		e.uint(0)
		return
	}
	e.uint(uint64(v.Len()) + 1)
	if v.Type().Elem().Kind() == reflect.Uint8 {
		e.out = append(e.out, v.Bytes()...)
		return
	}
	for i := range v.Len() {
		e.value(v.Index(i))
	}
}

// mapped writes a map in the order of its keys' bytes, so that the same shell is written the same.
func (e *encoder) mapped(v reflect.Value) {
	if v.IsNil() {
		e.uint(0)
		return
	}
	e.uint(uint64(v.Len()) + 1)
	keys := v.MapKeys()
	sort.Slice(keys, func(i, j int) bool {
		if keys[i].CanInt() {
			return keys[i].Int() < keys[j].Int()
		}
		return keys[i].String() < keys[j].String()
	})
	for _, k := range keys {
		e.value(k)
		p := reflect.New(v.Type().Elem()).Elem()
		p.Set(v.MapIndex(k))
		e.value(p)
	}
}

func (e *encoder) time(t time.Time) {
	e.uint(uint64(b2i(t.IsZero())))
	if !t.IsZero() {
		e.int(t.Unix())
		e.int(int64(t.Nanosecond()))
	}
}

func (e *encoder) unitRef(u *unit) {
	if u == nil {
		e.uint(0)
		return
	}
	n, ok := e.unit[u]
	if !ok {
		n = uint64(len(e.units))
		e.unit[u] = n
		e.units = append(e.units, u)
	}
	e.uint(n + 1)
}

func (e *encoder) node(v reflect.Value) {
	if v.IsNil() {
		e.uint(0)
		return
	}
	at, ok := e.nodes[v.Interface().(syntax.Node)]
	if !ok && e.nodes != nil {
		e.fail(v.Type(), "of no unit")
	}
	e.uint(at[0] + 1)
	e.uint(at[1])
}

// decoder reads what an encoder wrote, and trusts nothing of it.
type decoder struct {
	in     []byte
	names  []string
	units  []*unit
	nodes  [][]syntax.Node
	kinds  map[string]reflect.Type
	budget int // bytes of values that may still be made
}

// decodeError is what reading panics with.
type decodeError struct{ error }

func (d *decoder) fail(format string, args ...any) { panic(decodeError{fmt.Errorf(format, args...)}) }

var errShort = errors.New("it ends too early")

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.in)
	if size <= 0 {
		panic(decodeError{errShort})
	}
	d.in = d.in[size:]
	return n
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.in)
	if size <= 0 {
		panic(decodeError{errShort})
	}
	d.in = d.in[size:]
	return n
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.in)) {
		panic(decodeError{errShort})
	}
	b := d.in[:n]
	d.in = d.in[n:]
	return b
}

func (d *decoder) string() string { return string(d.bytes(d.uint())) }

func (d *decoder) name() string {
	n := d.uint()
	if n == uint64(len(d.names)) {
		d.names = append(d.names, d.string())
	}
	if n >= uint64(len(d.names)) {
		d.fail("name %d of %d", n, len(d.names))
	}
	return d.names[n]
}

// take counts memory: what is read may not become much more than it was.
func (d *decoder) take(n uint64, size uintptr) int {
	if n > uint64(len(d.in)) || int(n)*int(size) > d.budget {
		d.fail("%d values in %d bytes", n, len(d.in))
	}
	d.budget -= int(n) * int(size)
	return int(n)
}

func (d *decoder) value(v reflect.Value) {
	switch t := v.Type(); {
	case t == typeUnit:
		if n := d.uint(); n > uint64(len(d.units)) {
			d.fail("unit %d of %d", n, len(d.units))
		} else if n > 0 {
			v.Set(reflect.ValueOf(d.units[n-1]))
		}
		return
	case t == typeTime:
		if d.uint() == 0 {
			sec := d.int()
			v.Set(reflect.ValueOf(time.Unix(sec, d.int())))
		}
		return
	case t == typeFrame:
		name := d.name()
		kind, ok := d.kinds[name]
		if !ok {
			d.fail("a frame %q", name)
		}
		d.take(1, kind.Size())
		f := reflect.New(kind)
		d.value(f.Elem())
		v.Set(f)
		return
	case t.Implements(typeNode):
		d.node(v)
		return
	}
	d.plain(v)
}

func (d *decoder) plain(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.uint() != 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := d.int()
		if v.OverflowInt(n) {
			d.fail("%d is no %s", n, v.Type())
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := d.uint()
		if v.OverflowUint(n) {
			d.fail("%d is no %s", n, v.Type())
		}
		v.SetUint(n)
	case reflect.String:
		v.SetString(d.string())
	case reflect.Array:
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case reflect.Slice:
		d.slice(v)
	case reflect.Map:
		d.mapped(v)
	case reflect.Struct:
		d.fields(v)
	case reflect.Pointer:
		if d.uint() != 0 {
			d.take(1, v.Type().Elem().Size())
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem())
		}
	default:
		d.fail("a %s", v.Type())
	}
}

func (d *decoder) fields(v reflect.Value) {
	for range d.uint() {
		name := d.name()
		f, ok := v.Type().FieldByName(name)
		if !ok || len(f.Index) != 1 || !saved(f) {
			d.fail("%s has no %q", v.Type(), name)
		}
		d.value(reach(v.Field(f.Index[0])))
	}
}

func (d *decoder) slice(v reflect.Value) {
	n := d.uint()
	if n == 0 {
		return
	}
	t := v.Type().Elem()
	if t.Kind() == reflect.Uint8 {
		v.SetBytes(bytes.Clone(d.bytes(n - 1)))
		return
	}
	count := d.take(n-1, t.Size())
	v.Set(reflect.MakeSlice(v.Type(), count, count))
	for i := range count {
		d.value(v.Index(i))
		d.present(v.Index(i))
	}
}

func (d *decoder) mapped(v reflect.Value) {
	n := d.uint()
	if n == 0 {
		return
	}
	t := v.Type()
	count := d.take(n-1, t.Key().Size()+t.Elem().Size()+16)
	v.Set(reflect.MakeMapWithSize(t, count))
	for range count {
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		d.value(key)
		d.value(value)
		d.present(value)
		v.SetMapIndex(key, value)
	}
}

// present refuses nil among values that are never nil.
func (d *decoder) present(v reflect.Value) {
	if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
		d.fail("a missing %s", v.Type())
	}
}

func (d *decoder) node(v reflect.Value) {
	u := d.uint()
	if u == 0 {
		return
	}
	i := d.uint()
	if u > uint64(len(d.nodes)) || i >= uint64(len(d.nodes[u-1])) {
		d.fail("node %d of unit %d", i, u)
	}
	n := reflect.ValueOf(d.nodes[u-1][i])
	if !n.Type().AssignableTo(v.Type()) {
		d.fail("node %d of unit %d is a %s, not a %s", i, u, n.Type(), v.Type())
	}
	v.Set(n)
}
