package kv

import (
	"bytes"
	"fmt"

	"agentrun.dev/errs"
)

// quoteMax bounds how much of a key an error repeats.
const quoteMax = 64

// Size returns the bytes in the batch's keys and values, checks included.
func (b *Batch) Size() int {
	n := 0
	for i := range b.Checks {
		n += len(b.Checks[i].Key) + len(b.Checks[i].Value)
	}
	for i := range b.Ranges {
		n += len(b.Ranges[i].Start) + len(b.Ranges[i].End)
	}
	for i := range b.Deletes {
		n += len(b.Deletes[i])
	}
	for i := range b.Puts {
		n += len(b.Puts[i].Key) + len(b.Puts[i].Value)
	}
	return n
}

// Validate reports the first limit that the batch exceeds, as an errs.TooLarge. Every implementation calls it first.
func (b *Batch) Validate() error {
	for i := range b.Checks {
		if err := CheckPair(b.Checks[i].Key, b.Checks[i].Value); err != nil {
			return err
		}
	}
	for i := range b.Ranges {
		if len(b.Ranges[i].Start) > MaxKey || len(b.Ranges[i].End) > MaxKey {
			return errs.Msg(errs.TooLarge, "commit", "range", fmt.Sprintf("a bound exceeds %d bytes", MaxKey))
		}
	}
	for i := range b.Deletes {
		if err := CheckPair(b.Deletes[i], nil); err != nil {
			return err
		}
	}
	for i := range b.Puts {
		if err := CheckPair(b.Puts[i].Key, b.Puts[i].Value); err != nil {
			return err
		}
	}
	if n := b.Size(); n > MaxBatch {
		return errs.Msg(errs.TooLarge, "commit", "batch", fmt.Sprintf("%d bytes exceed the limit of %d", n, MaxBatch))
	}
	return nil
}

// CheckPair reports a key or a value over its limit, as an errs.TooLarge.
func CheckPair(key, value []byte) error {
	if len(key) > MaxKey {
		return errs.Msg(errs.TooLarge, "commit", Quote(key), fmt.Sprintf("key of %d bytes exceeds the limit of %d", len(key), MaxKey))
	}
	if len(value) > MaxValue {
		return errs.Msg(errs.TooLarge, "commit", Quote(key), fmt.Sprintf("value of %d bytes exceeds the limit of %d", len(value), MaxValue))
	}
	return nil
}

// Holds reports whether a check holds on the present value of its key.
func (c *Check) Holds(value []byte, found bool) bool {
	if c.Value == nil {
		return !found
	}
	return found && bytes.Equal(value, c.Value)
}

// Failed returns the errs.Conflict of a check that doesn't hold.
func (c *Check) Failed() error {
	return errs.Msg(errs.Conflict, "commit", Quote(c.Key), "the key was changed meanwhile")
}

// Quote returns a key in printable form for an error, shortened if it is long.
func Quote(key []byte) string {
	if len(key) > quoteMax {
		return fmt.Sprintf("%q…", key[:quoteMax])
	}
	return fmt.Sprintf("%q", key)
}
