package shell

// What is counted of things besides their text, in bytes.
const (
	variableSize = 160
	elementSize  = 32
	wordSize     = 16
	expandedSize = 64 // of a word while words are expanded
	functionSize = 512
	manyWords    = 1024 // fewer aren't worth counting at once
	stepFields   = 4096 // fields that are made between two steps
)

// memory is what a shell's variables take. Growth is added up as it happens; when there has been enough of it everything is
// counted anew, since what functions leave and what is unset isn't followed.
type memory struct {
	grown   int64 // since the last count
	allowed int64 // growth without a count
	base    int64 // the parent's when this shell was forked, which is shared
	charged int64 // to the process
	brief   int64 // charged for the statement
}

// minCount is the growth that is always allowed without a count.
const minCount = 1 << 20

func (m *memory) forked() { *m = memory{base: m.base + m.charged} }

// charge accounts for n bytes that are about to be added; more than the limits end the shell.
func (sh *Shell) charge(n int) bool {
	m := &sh.memory
	m.grown += int64(max(0, n))
	return m.grown <= max(minCount, m.allowed) || sh.account(int64(max(0, n)))
}

// copied accounts for an array that this shell no longer shares.
func (sh *Shell) copied(v *variable) {
	if n := v.len(); n > manyWords {
		sh.memory.base = 0
		sh.charge(n * elementSize)
	}
}

// makeRoom charges text that is about to be made to the process, up to the end of the statement; what would be too much ends
// it.
func (sh *Shell) makeRoom(n int) {
	if n < minCount {
		return
	}
	if int64(n) > sh.p.Sandbox().Limits().Memory || sh.p.Charge(int64(n)) != nil {
		sh.errorf("%d bytes: memory limit exceeded", n)
		panic(abort{kind: abortDiscard, status: 1})
	}
	sh.memory.brief += int64(n)
}

// giveRoom gives back what makeRoom charged.
func (sh *Shell) giveRoom() {
	sh.p.Charge(-sh.memory.brief)
	sh.memory.brief = 0
}

// account counts everything and what is to come, and charges it to the process.
func (sh *Shell) account(more int64) bool {
	m := &sh.memory
	n := sh.count() + more
	limit := sh.p.Sandbox().Limits().Memory
	m.grown, m.allowed = 0, min(n/4, limit-n)
	if err := sh.p.Charge(max(0, n-m.base) - m.charged); n > limit || err != nil {
		sh.errorf("variables: memory limit exceeded")
		sh.exitNow(1)
		return false
	}
	m.charged = max(0, n-m.base)
	return true
}

// count adds up what there is.
func (sh *Shell) count() int64 {
	n := int64(len(sh.funcs) * functionSize)
	for _, sc := range sh.scopes {
		for name, v := range sc.vars {
			n += int64(variableSize + len(name) + v.size())
		}
	}
	words := func(list []string) {
		for _, s := range list {
			n += int64(wordSize + len(s))
		}
	}
	words(sh.params)
	for _, f := range sh.frames {
		switch f := f.(type) {
		case *funcFrame:
			n += int64(wordSize * len(f.params)) // the text is mostly shared
		case *forFrame:
			n += int64(wordSize * len(f.words))
		}
	}
	return n
}

func (v *variable) len() int {
	switch {
	case v.arr != nil:
		return v.arr.len()
	case v.assoc != nil:
		return len(v.assoc.m)
	}
	return 0
}

// size is what a variable's value takes.
func (v *variable) size() int {
	n := len(v.str)
	switch {
	case v.arr != nil && v.arr.sparse == nil:
		for _, s := range v.arr.dense {
			n += wordSize + len(s)
		}
	case v.arr != nil:
		for _, s := range v.arr.sparse {
			n += 2*elementSize + len(s)
		}
	case v.assoc != nil:
		for k, s := range v.assoc.m {
			n += 4*elementSize + 2*len(k) + len(s)
		}
	}
	return n
}
