// Package fault holds the errors of the S3 protocol.
//
// A fault is what a client is told: an HTTP status, S3's code, a message, and fields that name what was wrong. Codes,
// statuses and messages are those that AWS sends, because clients compare them.
package fault

import "strings"

// Fault is an S3 error. The ones declared here are shared: With and Text return changed copies.
type Fault struct {
	Status  int
	Code    string
	Message string
	Fields  []Field
	Header  []Field // response headers that go with it
}

// Field is a further element of the error document, such as BucketName.
type Field struct{ Name, Value string }

func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// Is makes errors.Is compare codes, so that copies with fields equal the declared fault.
func (f *Fault) Is(target error) bool {
	t, ok := target.(*Fault)
	return ok && t.Code == f.Code && t.Message == f.Message
}

// With returns a copy with fields, given as names and values in turn.
func (f *Fault) With(pairs ...string) *Fault {
	c := *f
	c.Fields = append([]Field(nil), f.Fields...)
	for i := 0; i+1 < len(pairs); i += 2 {
		c.Fields = append(c.Fields, Field{pairs[i], clean(pairs[i+1])})
	}
	return &c
}

// Headers returns a copy with response headers, given as names and values in turn.
func (f *Fault) Headers(pairs ...string) *Fault {
	c := *f
	c.Header = append([]Field(nil), f.Header...)
	for i := 0; i+1 < len(pairs); i += 2 {
		c.Header = append(c.Header, Field{pairs[i], pairs[i+1]})
	}
	return &c
}

// Text returns a copy with another message.
func (f *Fault) Text(message string) *Fault {
	c := *f
	c.Message = clean(message)
	return &c
}

// Coded returns a copy with another code.
func (f *Fault) Coded(code string) *Fault {
	c := *f
	c.Code = code
	return &c
}

// Argument returns an InvalidArgument that names the argument and the value given.
func Argument(name, value, message string) *Fault {
	return InvalidArgument.Text(message).With("ArgumentName", name, "ArgumentValue", value)
}

// Request returns an InvalidRequest with a message.
func Request(message string) *Fault { return InvalidRequest.Text(message) }

// maxEcho bounds how much of a client's own text is sent back to it, in bytes.
const maxEcho = 2048

// clean keeps text that came from a request to a bounded length.
func clean(s string) string {
	if len(s) > maxEcho {
		s = s[:maxEcho]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
