package rest

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// field is a field of a struct as JSON has it.
type field struct {
	name, goName string
	typ          reflect.Type
	optional     bool
	asString     bool // a number in a string
}

// shapes holds the fields of types: there are few, and they never change.
type shapes struct{ m sync.Map }

// fields returns the fields of a struct.
func (c *shapes) fields(t reflect.Type) []field {
	if v, ok := c.m.Load(t); ok {
		return v.([]field)
	}
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		out = append(out, field{name: name, goName: f.Name, typ: f.Type, asString: strings.Contains(rest, "string"),
			optional: strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero")})
	}
	c.m.Store(t, out)
	return out
}

// required reports whether a request must have a field of t. Where the path gives the name, the body needn't.
func required(t reflect.Type, f field) bool {
	switch t {
	case reflect.TypeFor[api.Agent](), reflect.TypeFor[api.Principal](), reflect.TypeFor[api.Secret]():
		if f.name == "name" {
			return false
		}
	}
	return !f.optional && f.typ.Kind() != reflect.Bool
}

// checker looks at a request's JSON as its type has it. The standard decoder takes null for anything, names in any case and
// twice, and doesn't miss what is missing; what values of a type look like is left to it.
type checker struct {
	shapes *shapes
	dec    *json.Decoder
	body   []byte
}

// errElse says that the decoder will find what is wrong.
var errElse = errors.New("left to the decoder")

// maxDepth bounds how deep a request's values nest.
const maxDepth = 32

// check checks a body of one value.
func (c *shapes) check(body []byte, t reflect.Type) error {
	k := &checker{shapes: c, body: body, dec: json.NewDecoder(bytes.NewReader(body))}
	if err := k.value(t, "", 0); err != nil && err != errElse {
		return err
	}
	return nil
}

func (c *checker) bad(where, text string) error {
	at := place(c.body, c.dec.InputOffset())
	if where != "" {
		at = where + ", " + at
	}
	return errs.Msg(errs.Invalid, "read request", at, text)
}

func (c *checker) value(t reflect.Type, where string, depth int) error {
	if depth > maxDepth {
		return c.bad(clip(where), "nested too deeply")
	}
	tok, err := c.dec.Token()
	if err != nil {
		return errElse
	}
	if tok == nil {
		return c.bad(where, "null has no place here")
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	d, ok := tok.(json.Delim)
	switch {
	case !ok:
		return nil
	case d == '{' && t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return c.object(t, where, depth)
	case d == '{' && t.Kind() == reflect.Map:
		return c.mapping(t, where, depth)
	case d == '[' && t.Kind() == reflect.Slice:
		for c.dec.More() {
			if err := c.value(t.Elem(), where, depth+1); err != nil {
				return err
			}
		}
		return c.close()
	}
	return errElse
}

// close takes the end of an object or array.
func (c *checker) close() error {
	if _, err := c.dec.Token(); err != nil {
		return errElse
	}
	return nil
}

func (c *checker) object(t reflect.Type, where string, depth int) error {
	fields := c.shapes.fields(t)
	seen := make([]bool, len(fields))
	for c.dec.More() {
		tok, err := c.dec.Token()
		key, ok := tok.(string)
		if err != nil || !ok {
			return errElse
		}
		at := -1
		for i := range fields {
			if fields[i].name == key {
				at = i
			}
		}
		if at < 0 {
			name, _ := json.Marshal(clip(key))
			return c.bad(where, "unknown field "+string(name))
		}
		name := join(where, key)
		if seen[at] {
			return c.bad(name, "given twice")
		}
		seen[at] = true
		if err := c.value(fields[at].typ, name, depth+1); err != nil {
			return err
		}
	}
	if err := c.close(); err != nil {
		return err
	}
	for i, f := range fields {
		if !seen[i] && required(t, f) {
			return c.bad(join(where, f.name), "missing")
		}
	}
	return nil
}

func (c *checker) mapping(t reflect.Type, where string, depth int) error {
	seen := map[string]bool{}
	for c.dec.More() {
		tok, err := c.dec.Token()
		key, ok := tok.(string)
		if err != nil || !ok {
			return errElse
		}
		name := join(where, clip(key))
		if seen[key] {
			return c.bad(name, "given twice")
		}
		seen[key] = true
		if t.Elem().Kind() == reflect.Pointer && c.null() {
			continue // it takes the value away
		}
		if err := c.value(t.Elem(), name, depth+1); err != nil {
			return err
		}
	}
	return c.close()
}

// null takes the next value if it is null.
func (c *checker) null() bool {
	rest := bytes.TrimLeft(c.body[c.dec.InputOffset():], " \t\r\n:")
	if !bytes.HasPrefix(rest, []byte("null")) {
		return false
	}
	_, err := c.dec.Token()
	return err == nil
}

func join(where, name string) string {
	if where == "" {
		return name
	}
	return where + "." + name
}

// fill makes empty lists and maps of those that are nil where the answer's type promises one, for JSON has no other word for
// nil than null. v is a pointer.
func (c *shapes) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.fill(v.Elem())
		}
	case reflect.Slice:
		if holds(v.Type().Elem()) {
			for i := range v.Len() {
				c.fill(v.Index(i))
			}
		}
	case reflect.Struct:
		if !holds(v.Type()) || !v.CanSet() {
			return
		}
		for _, f := range c.fields(v.Type()) {
			fv := v.FieldByName(f.goName)
			switch {
			case f.optional || !fv.CanSet():
			case fv.Kind() == reflect.Slice && fv.IsNil() && fv.Type().Elem().Kind() != reflect.Uint8:
				fv.Set(reflect.MakeSlice(fv.Type(), 0, 0))
			case fv.Kind() == reflect.Map && fv.IsNil():
				fv.Set(reflect.MakeMap(fv.Type()))
			}
			c.fill(fv)
		}
	}
}

// holds reports whether values of a type may have lists or maps in them.
func holds(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
