package jail

import (
	"fmt"
	"hash/fnv"
	"io"
	"reflect"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/snapshot"
)

// protocolNumber changes with what is said, where the types don't.
const protocolNumber = 1

// protocol is the version that both sides must speak: the number, and a hash of all types that go over the socket. The first message says
// it, and so does the first answer: the program of the process may have been built at another time than its parent's.
func protocol() string {
	h := fnv.New32a()
	describeType(h, reflect.TypeFor[message](), nil)
	describeType(h, reflect.TypeFor[snapshot.Snapshot](), nil)
	return fmt.Sprintf("%d-%08x", protocolNumber, h.Sum32())
}

// describeType writes what a value of a type looks like in JSON. within are the structures that it is a part of.
func describeType(w io.Writer, t reflect.Type, within []reflect.Type) {
	_, _ = io.WriteString(w, t.Kind().String()+" ")
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describeType(w, t.Elem(), within)
	case reflect.Map:
		describeType(w, t.Key(), within)
		describeType(w, t.Elem(), within)
	case reflect.Struct:
		for _, outer := range within {
			if outer == t {
				return
			}
		}
		within = append(within[:len(within):len(within)], t)
		for f := range t.Fields() {
			if f.IsExported() && f.Tag.Get("json") != "-" {
				_, _ = io.WriteString(w, f.Name+" "+string(f.Tag)+" ")
				describeType(w, f.Type, within)
			}
		}
		_, _ = io.WriteString(w, "end ")
	}
}

// checkProtocol compares what the other side says that it speaks.
func checkProtocol(ours, theirs string) error {
	if ours == theirs {
		return nil
	}
	if theirs = theirs[:min(len(theirs), maxVersion)]; theirs == "" {
		theirs = "one without versions"
	}
	return errs.Msg(errs.Unsupported, "vmm process", "start", fmt.Sprintf("this program speaks version %q of its protocol, the other side %q", ours, theirs)).
		WithHint("they were built at different times: build both with make build")
}

// maxVersion bounds what is printed of the other side's.
const maxVersion = 64
