package bucket

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"agentrun.dev/errs"
)

// maxLogged is how many keys one logged rename moves; beyond it the new tree is computed aside.
const maxLogged = 10_000

var errManyKeys = errors.New("too many keys for one batch")

// checkRenameDir checks the shape of a directory's rename, and that nothing is in its way.
func checkRenameDir(ctx context.Context, st *snap, op *Op) error {
	bad := func(kind errs.Kind, why string) error {
		return errs.Msg(kind, "rename", strconv.Quote(clip(op.Key)), why)
	}
	switch {
	case !strings.HasSuffix(op.Key, "/") || !strings.HasSuffix(op.To, "/"):
		return bad(errs.Invalid, "a directory's path ends in a slash")
	case strings.HasPrefix(op.To, op.Key):
		return bad(errs.Invalid, "a directory can't move below itself")
	}
	if c := st.scan(objectKey(op.To), stringEnd(objectKey(op.To))); c.next(ctx) {
		return bad(errs.NotEmpty, "the target holds something")
	} else if c.err != nil {
		return c.err
	}
	c := st.scan(dirKey(op.To)+"\x00", stringEnd(dirKey(op.To)))
	if c.next(ctx) {
		return bad(errs.NotEmpty, "the target holds a directory")
	}
	return c.err
}

// movedPlanes are the planes whose keys contain paths, each with how a path stands in it.
func movedPlanes(path string) []string {
	return []string{objectKey(path), dirKey(path), "v" + escapeKey(path)}
}

// doRenameDir moves every record below a directory, keeping ids.
func (w *writer) doRenameDir(ctx context.Context, op *Op) error {
	if op.Key == op.To {
		return nil
	}
	if err := checkRenameDir(ctx, &w.t.snap, op); err != nil {
		return err
	}
	type move struct {
		from, to string
		rec      record
	}
	var moves []move
	from, to := movedPlanes(op.Key), movedPlanes(op.To)
	for i := range from {
		c := w.t.scan(from[i], stringEnd(from[i]))
		for c.next(ctx) {
			if moves = append(moves, move{c.key, to[i] + c.key[len(from[i]):], c.rec}); len(moves) > maxLogged {
				return errManyKeys
			}
			if len(moves[len(moves)-1].to) > MaxKey+64 {
				return errs.Msg(errs.TooLarge, "rename", strconv.Quote(clip(op.To)), "a key would exceed 1024 bytes")
			}
		}
		if c.err != nil {
			return c.err
		}
	}
	if len(moves) == 0 {
		return notFound("rename", strconv.Quote(clip(op.Key)), "no such directory")
	}
	for _, m := range moves {
		if err := w.moveRecord(ctx, m.from, m.to, m.rec); err != nil {
			return err
		}
	}
	return nil
}

// moveRecord gives a record another key in its plane.
func (w *writer) moveRecord(ctx context.Context, from, to string, rec record) error {
	l := logRecord{op: logPut, key: to, val: rec.val}
	if flags := recordFlags(rec.val); from[0] != planeDir && flags&(flagLogged|flagLinked) != 0 {
		o, err := w.t.object(ctx, "", rec)
		if err != nil {
			return err
		}
		if l.payload, err = w.again(ctx, o); err != nil {
			return err
		}
		if flags&flagLinked != 0 && from[0] == planeObject {
			names, err := w.names(ctx, o.ID)
			if err != nil {
				return err
			}
			if i := slices.Index(names, from[1:]); i >= 0 {
				names[i] = to[1:]
				slices.Sort(names)
				if err := w.emit(ctx, logRecord{op: logPut, key: linkKey(o.ID), val: encodeNames(names)}); err != nil {
					return err
				}
			}
		}
	}
	if err := w.emit(ctx, l); err != nil {
		return err
	}
	return w.delete(ctx, from)
}
