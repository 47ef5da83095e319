package tree

import (
	"bytes"
	"fmt"
	"iter"

	"agentrun.dev/errs"
)

// Edit is one change: a put of Key (Delete unset); a delete of Key (Delete set, End nil); or a delete of all keys in
// [Key, End) (Delete and End set).
//
// A range applies to the keys of the old tree only: a put always wins, also inside a range, before or after it in the
// stream. Deleting what isn't there does nothing.
type Edit struct {
	Key    []byte
	Value  []byte
	Delete bool
	End    []byte
}

// Edits is a stream of edits sorted by Key; an error ends it. Two edits may have the same Key only if one of them is a
// range. Ranges may overlap. The slices of an edit need to stay valid only until the next is asked for.
type Edits = iter.Seq2[Edit, error]

// Slice returns the edits of a slice as a stream.
func Slice(edits []Edit) Edits {
	return func(yield func(Edit, error) bool) {
		for _, e := range edits {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (e *Edit) isRange() bool { return e.Delete && e.End != nil }

// checker verifies a stream's edits one by one. A range that follows a point edit of the same key is made to begin behind
// that key, which has been dealt with.
type checker struct {
	key   []byte // of the edit before
	point bool   // that edit, or one before it with the same key, wasn't a range
	any   bool
}

func (c *checker) check(e *Edit) error {
	order := 1
	if c.any {
		order = bytes.Compare(e.Key, c.key)
	}
	switch {
	case len(e.Key) > MaxKey || len(e.End) > MaxKey+1: // an End may be the successor of the longest key
		return errs.Msg(errs.TooLarge, "apply edits", "", fmt.Sprintf("a key is longer than %d bytes", MaxKey))
	case len(e.Value) > MaxValue:
		return errs.Msg(errs.TooLarge, "apply edits", "", fmt.Sprintf("a value is longer than %d bytes", MaxValue))
	case e.isRange() && bytes.Compare(e.Key, e.End) >= 0:
		return errs.Msg(errs.Invalid, "apply edits", "", "a range ends before it begins")
	case !e.Delete && e.End != nil:
		return errs.Msg(errs.Invalid, "apply edits", "", "a put has an end")
	case order < 0 || (order == 0 && c.point && !e.isRange()):
		return errs.Msg(errs.Invalid, "apply edits", "", "edits out of order")
	}
	c.point = !e.isRange() || (order == 0 && c.point)
	c.key, c.any = append(c.key[:0], e.Key...), true
	if e.isRange() && c.point {
		e.Key = append(c.key, 0)
	}
	return nil
}
