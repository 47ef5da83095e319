package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
)

// CheckName says whether a bucket's name is well formed, as S3 has it: 3–63 of a–z, 0–9, '-' and '.', beginning and
// ending with a letter or digit, without "..", and not an IP address. Anything else is errs.Invalid.
func CheckName(name string) error {
	bad := func(why string) error {
		return errs.Msg(errs.Invalid, "bucket", strconv.Quote(clip(name)), why)
	}
	if len(name) < 3 || len(name) > 63 {
		return bad("a name has 3 to 63 characters")
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			continue
		}
		if c != '-' && c != '.' {
			return bad("a name has only a-z, 0-9, '-' and '.'")
		}
		if i == 0 || i == len(name)-1 {
			return bad("a name begins and ends with a letter or digit")
		}
	}
	if strings.Contains(name, "..") {
		return bad("a name has no two dots in a row")
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return bad("a name is no IP address")
	}
	if strings.HasPrefix(name, "xn--") || strings.HasSuffix(name, "-s3alias") {
		return bad("a name doesn't begin with xn-- or end with -s3alias")
	}
	return nil
}

// clip shortens what a caller sent, for an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:77] + "..."
	}
	return s
}

// CheckKey says whether an object's key is well formed: 1 to MaxKey bytes.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errs.Msg(errs.Invalid, "key", "", "a key has at least one byte")
	case len(key) > MaxKey:
		return errs.Msg(errs.TooLarge, "key", strconv.Quote(clip(key)), "a key has at most 1024 bytes")
	}
	return nil
}

func noBucket(name string) error {
	return errs.Msg(errs.NotFound, "bucket", clip(name), "no such bucket").WithHint("agentrun buckets list")
}

// resolve finds a living bucket's id by name.
func (s *Store) resolve(ctx context.Context, name string) (id agentrun.RefID, err error) {
	if len(name) > 63 || name == "" {
		return id, noBucket(name)
	}
	b, err := s.kv.Get(ctx, nameKey(name))
	if errs.Is(err, errs.NotFound) {
		return id, noBucket(name)
	}
	if err != nil {
		return id, err
	}
	d := dec{b: b}
	if err := d.version("name"); err != nil {
		return id, err
	}
	id = d.ref()
	return id, d.end("name")
}

// reserve keeps a name from being created twice at once: whoever comes second waits, so that what is said to exist does. done gives
// the name back.
func (s *Store) reserve(ctx context.Context, name string) (done func(), err error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	free := make(chan struct{})
	for {
		s.mu.Lock()
		other, busy := s.names[name]
		if !busy {
			s.names[name] = free
		}
		s.mu.Unlock()
		if !busy {
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, errs.New(errs.Canceled, "bucket", name, context.Cause(ctx))
		}
	}
	done = func() {
		s.mu.Lock()
		delete(s.names, name)
		s.mu.Unlock()
		close(free)
	}
	if _, err := s.kv.Get(ctx, nameKey(name)); err == nil {
		done()
		return nil, errs.Msg(errs.Exists, "bucket", name, "the name is taken")
	} else if !errs.Is(err, errs.NotFound) {
		done()
		return nil, err
	}
	return done, nil
}

func newRefID() (id agentrun.RefID, err error) {
	_, err = rand.Read(id[:])
	return id, err
}

// Point resolves "name", "name@version", "name@snapshot-name" or "name@time" (RFC 3339) to a bucket and a version, 0
// being now. Of several snapshots with one name, the newest counts.
func (s *Store) Point(ctx context.Context, ref string) (name string, at agentrun.Version, err error) {
	name, point, has := strings.Cut(ref, "@")
	if !has {
		return name, 0, nil
	}
	snaps, err := s.Snapshots(ctx, name)
	if err != nil {
		return "", 0, err
	}
	for i := len(snaps) - 1; i >= 0; i-- {
		if point != "" && snaps[i].Name == point {
			return name, snaps[i].Version, nil
		}
	}
	if n, err := strconv.ParseUint(point, 10, 64); err == nil && n > 0 {
		return name, agentrun.Version(n), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, point); err == nil {
		return name, agentrun.VersionAt(t), nil
	}
	return "", 0, errs.New(errs.NotFound, "snapshot", clip(ref), errors.New("no snapshot of that name or version, nor a time")).
		WithHint("agentrun snapshots list " + name)
}
