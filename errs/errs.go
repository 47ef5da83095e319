// Package errs holds the one typed error of AgentRun.
//
// A kind says what a caller can do about an error; it is translated into an HTTP status, an S3 code or an exit
// status only at the edge. An error's text reads "op: thing: cause", in lower case without a full stop.
package errs

import (
	"context"
	"errors"
	"strings"
)

// Kind classifies an error. The set is append-only: kinds are written to the wire.
type Kind uint8

const (
	Other        Kind = iota // unclassified: a defect or a failure of the host
	Invalid                  // the request can never succeed as it stands
	NotFound                 // the thing named doesn't exist
	Exists                   // the thing to be created exists already
	NotEmpty                 // the thing to be deleted still holds something
	Conflict                 // the request contradicts the present state, as a merge does
	Precondition             // a condition that the request carries doesn't hold
	Denied                   // the principal may not do this
	Unauthorized             // the principal isn't known, or couldn't prove who it is
	TooLarge                 // a limit on the size of one thing is exceeded
	Limit                    // a limit on how many or how often is exceeded
	NoSpace                  // the disk is full; nothing was written
	Corrupt                  // stored data doesn't match its checksum
	Unavailable              // not now: starting, stopping or in use by another process
	Unsupported              // AgentRun doesn't do this
	Canceled                 // the caller gave up
)

var kindNames = [...]string{"other", "invalid", "not found", "exists", "not empty", "conflict", "precondition failed", "denied",
	"unauthorized", "too large", "limit exceeded", "no space", "corrupt", "unavailable", "unsupported", "canceled"}

// String returns the kind's name, as it stands in errors and on the wire.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "other"
}

// ParseKind is the inverse of String; an unknown name is Other.
func ParseKind(name string) Kind {
	for k, n := range kindNames {
		if n == name {
			return Kind(k)
		}
	}
	return Other
}

// Error is the typed error. Err, when set, is the cause; Hint, when set, tells a person what to do next.
type Error struct {
	Op    string // the operation, such as "fork"
	Thing string // what it was applied to, such as a bucket's name
	Kind  Kind
	Err   error
	Hint  string
}

// New returns an error of a kind. A nil cause leaves the kind's own name as the text.
func New(kind Kind, op, thing string, cause error) *Error {
	return &Error{Op: op, Thing: thing, Kind: kind, Err: cause}
}

// Msg returns an error of a kind whose cause is a plain text.
func Msg(kind Kind, op, thing, text string) *Error {
	return &Error{Op: op, Thing: thing, Kind: kind, Err: errors.New(text)}
}

// WithHint returns a copy that carries advice for a person, such as the next command to run.
func (e *Error) WithHint(hint string) *Error {
	c := *e
	c.Hint = hint
	return &c
}

func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	for _, s := range []string{e.Op, e.Thing} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	} else {
		parts = append(parts, e.Kind.String())
	}
	return strings.Join(parts, ": ")
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost typed error in err's chain. Context errors are Canceled.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case err == nil:
		return Other
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Canceled
	}
	return Other
}

// Is reports whether err is of the kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// HintOf returns the first hint in err's chain, or "".
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}
