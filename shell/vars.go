package shell

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"agentrun.dev/proc"
	"mvdan.cc/sh/v3/syntax"
)

// attr are a variable's attributes, as declare sets them.
type attr uint16

const (
	attrExport   attr = 1 << iota // -x
	attrReadonly                  // -r
	attrInteger                   // -i
	attrLower                     // -l
	attrUpper                     // -u
	attrNameref                   // -n
	attrTrace                     // -t
	attrIndexed                   // -a
	attrAssoc                     // -A
	attrCapital                   // -c
)

// owner tells whose a map or a variable is: a value is changed in place only by the shell whose token it carries. A
// fork of the shell gives both sides new tokens, so that it copies nothing, and each copies what it changes.
type owner struct{ _ byte }

// variable is a shell variable. Arrays hold their values in arr or assoc, everything else in str.
type variable struct {
	own   *owner
	attr  attr
	set   bool // has a value; for arrays: was assigned, perhaps nothing
	str   string
	room  []byte `save:"-"` // str with room behind it, once text was appended to it; only the owner appends
	arr   *indexed
	assoc *assoc
	local bool // made by local or declare in a function
	temp  bool // from an assignment before a command
}

func (v *variable) isArray() bool { return v.attr&(attrIndexed|attrAssoc) != 0 }

// clone copies a variable with its elements.
func (v *variable) clone(own *owner) *variable {
	c := *v
	c.own, c.room = own, nil
	if v.arr != nil {
		c.arr = v.arr.clone()
	}
	if v.assoc != nil {
		c.assoc = v.assoc.clone()
	}
	return &c
}

// minRoom is how long a value has to be for appending to it in place.
const minRoom = 128

// append adds to a value. What has been read of it stays as it is, since only what is behind it is written.
func (v *variable) append(s string) {
	if len(v.room) != len(v.str) || unsafe.SliceData(v.room) != unsafe.StringData(v.str) {
		v.room = append(make([]byte, 0, 2*(len(v.str)+len(s))), v.str...)
	}
	v.room = append(v.room, s...)
	v.str = unsafe.String(unsafe.SliceData(v.room), len(v.room))
}

// scope is the variables of the shell, or of one function call.
type scope struct {
	own  *owner
	vars map[string]*variable
	mask uint64 // bits of the names that may be in vars, but for the shell's own scope
	temp bool   // of the assignments before a command
	// opts is what "local -" saved.
	opts *options
}

// nameBit is a name's bit in masks, by which most scopes needn't be searched.
func nameBit(name string) uint64 {
	if name == "" {
		return 1
	}
	return 1 << ((uint(name[0]) ^ uint(name[len(name)-1])<<2 ^ uint(len(name))*11) & 63)
}

// mutable returns the variables to change the one of that name.
func (s *scope) mutable(own *owner, name string) map[string]*variable {
	s.mask |= nameBit(name)
	if s.own != own || s.vars == nil {
		m := make(map[string]*variable, len(s.vars)+1)
		for k, v := range s.vars {
			m[k] = v
		}
		s.vars, s.own = m, own
	}
	return s.vars
}

// indexed is an indexed array: dense while its keys are 0…n-1.
type indexed struct {
	dense  []string
	sparse map[int64]string // nil while dense
	max    int64            // largest key of sparse
	// keys of sparse, sorted; nil when not known. Shells that share the array list it at the same time.
	keys atomic.Pointer[[]int64] `save:"-"`
}

func (a *indexed) clone() *indexed {
	c := &indexed{max: a.max}
	if a.sparse == nil {
		c.dense = append([]string(nil), a.dense...)
		return c
	}
	c.sparse = make(map[int64]string, len(a.sparse))
	for k, v := range a.sparse {
		c.sparse[k] = v
	}
	return c
}

func (a *indexed) len() int {
	if a.sparse != nil {
		return len(a.sparse)
	}
	return len(a.dense)
}

func (a *indexed) get(i int64) (string, bool) {
	if a.sparse != nil {
		v, ok := a.sparse[i]
		return v, ok
	}
	if i >= 0 && i < int64(len(a.dense)) {
		return a.dense[i], true
	}
	return "", false
}

// top is one more than the largest key.
func (a *indexed) top() int64 {
	if a.sparse != nil {
		if len(a.sparse) == 0 {
			return 0
		}
		return a.max + 1
	}
	return int64(len(a.dense))
}

func (a *indexed) put(i int64, s string) {
	if a.sparse == nil {
		switch n := int64(len(a.dense)); {
		case i < n:
			a.dense[i] = s
			return
		case i == n:
			a.dense = append(a.dense, s)
			return
		}
		a.toSparse()
	}
	if _, ok := a.sparse[i]; !ok {
		if keys := a.keys.Load(); keys != nil && i > a.max {
			more := append(*keys, i)
			a.keys.Store(&more)
		} else {
			a.keys.Store(nil)
		}
	}
	a.max = max(a.max, i)
	a.sparse[i] = s
}

func (a *indexed) toSparse() {
	a.sparse = make(map[int64]string, len(a.dense)+1)
	for i, v := range a.dense {
		a.sparse[int64(i)] = v
	}
	a.max, a.dense = int64(len(a.dense))-1, nil
	a.keys.Store(nil)
}

func (a *indexed) del(i int64) {
	if a.sparse == nil {
		switch n := int64(len(a.dense)); {
		case i < 0 || i >= n:
			return
		case i == n-1:
			a.dense = a.dense[:i]
			return
		}
		a.toSparse()
	}
	if _, ok := a.sparse[i]; !ok {
		return
	}
	delete(a.sparse, i)
	a.keys.Store(nil)
	if i == a.max {
		a.max = -1
		for k := range a.sparse {
			a.max = max(a.max, k)
		}
	}
}

func (a *indexed) indices() []int64 {
	if a.sparse == nil {
		out := make([]int64, len(a.dense))
		for i := range out {
			out[i] = int64(i)
		}
		return out
	}
	if keys := a.keys.Load(); keys != nil {
		return *keys
	}
	keys := make([]int64, 0, len(a.sparse))
	for k := range a.sparse {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	a.keys.Store(&keys)
	return keys
}

func (a *indexed) values() []string {
	if a.sparse == nil {
		return a.dense
	}
	out := make([]string, 0, len(a.sparse))
	for _, k := range a.indices() {
		out = append(out, a.sparse[k])
	}
	return out
}

// assoc is an associative array, listed in the order of bash's hash table: by bucket, the newest first within one.
type assoc struct {
	m     map[string]string
	order map[string]int
	next  int
}

func newAssoc() *assoc { return &assoc{m: make(map[string]string), order: make(map[string]int)} }

func (a *assoc) clone() *assoc {
	c := &assoc{m: make(map[string]string, len(a.m)), order: make(map[string]int, len(a.m)), next: a.next}
	for k, v := range a.m {
		c.m[k] = v
		c.order[k] = a.order[k]
	}
	return c
}

func (a *assoc) put(k, v string) {
	if _, ok := a.m[k]; !ok {
		a.order[k] = a.next
		a.next++
	}
	a.m[k] = v
}

func (a *assoc) del(k string) {
	delete(a.m, k)
	delete(a.order, k)
}

// bashHash is FNV-1 over signed bytes, as bash computes it.
func bashHash(s string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(s); i++ {
		h *= 16777619
		h ^= uint32(int32(int8(s[i])))
	}
	return h
}

func (a *assoc) keys() []string {
	n := uint32(1024)
	for len(a.m) >= int(n)*2 {
		n *= 4
	}
	out := make([]string, 0, len(a.m))
	for k := range a.m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool {
		bi, bj := bashHash(out[i])&(n-1), bashHash(out[j])&(n-1)
		if bi != bj {
			return bi < bj
		}
		return a.order[out[i]] > a.order[out[j]]
	})
	return out
}

// find returns a variable and its scope without following namerefs.
func (sh *Shell) find(name string) (*variable, *scope) {
	if len(sh.scopes) > 1 {
		bit := nameBit(name)
		for i := len(sh.scopes) - 1; i > 0; i-- {
			if s := sh.scopes[i]; s.mask&bit != 0 {
				if v, ok := s.vars[name]; ok {
					return v, s
				}
			}
		}
	}
	if v, ok := sh.scopes[0].vars[name]; ok {
		return v, sh.scopes[0]
	}
	return nil, nil
}

// maxNameref bounds chains of namerefs.
const maxNameref = 8

// resolve follows namerefs. sub is the subscript that the last one carries.
func (sh *Shell) resolve(name string) (target, sub string) {
	for range maxNameref {
		v, _ := sh.find(name)
		if v == nil || v.attr&attrNameref == 0 || !v.set || v.str == "" {
			return name, ""
		}
		if i := strings.IndexByte(v.str, '['); i > 0 && strings.HasSuffix(v.str, "]") {
			return v.str[:i], v.str[i+1 : len(v.str)-1]
		}
		if v.str == name {
			return name, ""
		}
		name = v.str
	}
	sh.errorf("warning: %s: circular name reference", name)
	return name, ""
}

// lookup returns the variable behind a name, namerefs followed, or nil.
func (sh *Shell) lookup(name string) *variable {
	v, _ := sh.find(name)
	if v != nil && v.attr&attrNameref == 0 {
		if v.set || v.isArray() {
			return v
		}
		return v
	}
	if v == nil {
		return sh.dynamic(name)
	}
	target, sub := sh.resolve(name)
	if target == name {
		return v
	}
	t := sh.lookup(target)
	if sub == "" || t == nil {
		return t
	}
	s, ok := sh.element(t, target, sub)
	if !ok {
		return nil
	}
	return &variable{set: true, str: s}
}

// get returns a variable's value as $name does, element 0 of arrays.
func (sh *Shell) get(name string) (string, bool) {
	v := sh.lookup(name)
	if v == nil {
		return "", false
	}
	return v.scalar()
}

func (v *variable) scalar() (string, bool) {
	switch {
	case v.arr != nil:
		return v.arr.get(0)
	case v.assoc != nil:
		s, ok := v.assoc.m["0"]
		return s, ok
	}
	return v.str, v.set
}

// str returns a variable's value, "" when unset.
func (sh *Shell) str(name string) string {
	s, _ := sh.get(name)
	return s
}

// own returns the variable to change: it exists in a scope and belongs to this shell.
func (sh *Shell) own(name string) *variable {
	sh.touch()
	v, sc := sh.find(name)
	if v == nil {
		v, sc = &variable{own: sh.tok}, sh.scopes[0]
		sh.charge(variableSize + len(name))
		if d := sh.dynamic(name); d != nil {
			v.attr = d.attr
		}
		sc.mutable(sh.tok, name)[name] = v
		return v
	}
	if v.own != sh.tok {
		if v = v.clone(sh.tok); v.isArray() {
			sh.copied(v)
		}
		sc.mutable(sh.tok, name)[name] = v
	}
	return v
}

// set assigns a string to a name, namerefs followed. It reports failure after writing a message.
func (sh *Shell) set(name, value string) bool {
	target, sub := sh.resolve(name)
	if sub != "" {
		return sh.assignElement(target, sub, value, false)
	}
	return sh.assignScalar(target, value, false)
}

// assignScalar assigns to a variable itself, or element 0 of an array.
func (sh *Shell) assignScalar(name, value string, add bool) bool {
	if v, _ := sh.find(name); v != nil && v.attr&attrReadonly != 0 {
		sh.errorf("%s: readonly variable", name)
		return false
	}
	if done, ok := sh.setDynamic(name, value); done {
		return ok
	}
	v := sh.own(name)
	switch {
	case v.attr&attrAssoc != 0:
		if v.assoc == nil {
			v.assoc = newAssoc()
		}
		val, ok := sh.combine(v, v.assoc.m["0"], value, add)
		if !ok {
			return false
		}
		v.assoc.put("0", val)
	case v.attr&attrIndexed != 0:
		if v.arr == nil {
			v.arr = &indexed{}
		}
		old, _ := v.arr.get(0)
		val, ok := sh.combine(v, old, value, add)
		if !ok {
			return false
		}
		v.arr.put(0, val)
	default:
		old := v.str
		if !v.set {
			old = ""
		}
		if add && len(old) >= minRoom && v.attr&(attrInteger|attrLower|attrUpper) == 0 {
			if !sh.charge(len(value)) {
				return false
			}
			v.append(value)
			break
		}
		val, ok := sh.combine(v, old, value, add)
		if !ok {
			return false
		}
		if !sh.charge(len(val) - len(old)) {
			return false
		}
		v.str = val
	}
	v.set = true
	if sh.opts.allexport {
		v.attr |= attrExport
	}
	if v.attr&attrExport != 0 {
		sh.envStale = true
	}
	sh.changed(name)
	return true
}

// combine applies += and the attributes that change a value.
func (sh *Shell) combine(v *variable, old, value string, add bool) (string, bool) {
	if v.attr&attrInteger != 0 {
		n, ok := sh.arithValue(value)
		if !ok {
			return "", false
		}
		if add {
			m, ok := sh.arithValue(old)
			if !ok {
				return "", false
			}
			n += m
		}
		return strconv.FormatInt(n, 10), true
	}
	if add {
		value = old + value
	}
	switch {
	case v.attr&attrLower != 0:
		value = strings.ToLower(value)
	case v.attr&attrCapital != 0:
		value = caseMod(strings.ToLower(value), syntax.UpperFirst, nil)
	case v.attr&attrUpper != 0:
		value = strings.ToUpper(value)
	}
	return value, true
}

// environ returns the exported variables, for a child.
func (sh *Shell) environ() []string {
	if !sh.envStale && sh.env != nil {
		return sh.env
	}
	names := make(map[string]string)
	for _, sc := range sh.scopes {
		for name, v := range sc.vars {
			if v.attr&attrExport != 0 && v.set && !v.isArray() {
				names[name] = v.str
			} else {
				delete(names, name)
			}
		}
	}
	out := make([]string, 0, len(names)+len(sh.funcs))
	for name, value := range names {
		out = append(out, name+"="+value)
	}
	for name, f := range sh.funcs {
		if f.export {
			out = append(out, "BASH_FUNC_"+name+"%%=() "+strings.TrimPrefix(sh.printFunc(name, f), name+" () \n"))
		}
	}
	sort.Strings(out)
	sh.env, sh.envStale = out, false
	sh.p.SetEnviron(out)
	return out
}

// unset removes a variable; the one beneath, in an outer scope, shows again only if it was local to this function.
func (sh *Shell) unset(name string) bool {
	sh.touch()
	v, sc := sh.find(name)
	if v == nil {
		if sh.dynamic(name) != nil {
			sh.unsetDynamic(name)
		}
		return true
	}
	if v.attr&attrReadonly != 0 {
		sh.errorf("unset: %s: cannot unset: readonly variable", name)
		return false
	}
	if v.attr&attrExport != 0 {
		sh.envStale = true
	}
	if v.local && sc == sh.scopes[len(sh.scopes)-1] {
		// Stays local, but without a value.
		sc.mutable(sh.tok, name)[name] = &variable{own: sh.tok, local: true}
	} else {
		delete(sc.mutable(sh.tok, name), name)
	}
	sh.unsetDynamic(name)
	sh.changed(name)
	return true
}

// importEnv takes the process's environment over.
func (sh *Shell) importEnv(p *proc.Process) {
	for _, kv := range p.Environ() {
		name, value, ok := strings.Cut(kv, "=")
		if f, isFunc := strings.CutPrefix(name, "BASH_FUNC_"); ok && isFunc && strings.HasSuffix(f, "%%") {
			sh.importFunc(strings.TrimSuffix(f, "%%"), value)
			continue
		}
		if ok && validName(name) {
			sh.scopes[0].vars[name] = &variable{own: sh.tok, attr: attrExport, set: true, str: value}
		} else if ok {
			sh.odd = append(sh.odd, kv)
		}
	}
	sh.envStale = true
}

func validName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
