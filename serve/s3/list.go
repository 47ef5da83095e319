package s3

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"agentrun.dev"
	"agentrun.dev/bucket"
	"agentrun.dev/kv"
	"agentrun.dev/serve/s3/fault"
	"agentrun.dev/serve/s3/sigv4"
)

// maxKeys is the most that one listing answers.
const maxKeys = 1000

// documents are buffers for listings.
var documents = sync.Pool{New: func() any { return &xmlDoc{buf: make([]byte, 0, 64<<10)} }}

func getDocument() *xmlDoc {
	x := documents.Get().(*xmlDoc)
	x.buf = x.buf[:0]
	return x
}

// limit reads a parameter that bounds a listing.
func (c *call) limit(param string) (int, error) {
	text := c.q.Get(param)
	if text == "" {
		return maxKeys, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil:
		return 0, fault.Argument(param, text, fmt.Sprintf("Provided %s not an integer or within integer range", text))
	case n < 0:
		return 0, fault.Argument(param, text, fmt.Sprintf("Argument %s must be an integer between 0 and 2147483647", text))
	}
	return int(min(n, maxKeys)), nil
}

// encoder returns how keys are written: as they are, or escaped if the client asked for it.
func (c *call) encoder() (func(string) string, error) {
	switch t := c.q.Get("encoding-type"); t {
	case "":
		return func(s string) string { return s }, nil
	case "url":
		return sigv4.EncodePath, nil
	default:
		return nil, fault.Argument("encoding-type", t, "Invalid Encoding Method specified in Request")
	}
}

// listing is a walk through keys: those after a marker, with those that share a prefix up to a delimiter rolled up.
type listing struct {
	prefix, delim, after string
	max                  int
	object               func(*bucket.Object)
	common               func(string)

	last      string // the last entry answered
	truncated bool
}

func (l *listing) walk(ctx context.Context, v *bucket.View) error {
	if l.max == 0 {
		return nil
	}
	start := ""
	if l.after != "" {
		start = l.after + "\x00"
		if l.delim != "" && l.group(l.after) == l.after {
			// The marker is a rolled-up prefix: all of it was answered.
			end := kv.PrefixEnd([]byte(l.after))
			if end == nil {
				return nil
			}
			start = string(end)
		}
	}
	cur := v.Scan(bucket.Scan{Prefix: l.prefix, Start: start, Dirs: true})
	n := 0
	for cur.Next(ctx) {
		if n == l.max {
			l.truncated = true
			return nil
		}
		n++
		key := cur.Key()
		group := l.group(key)
		if group == "" {
			l.last = key
			l.object(cur.Object())
			continue
		}
		l.last = group
		l.common(group)
		end := kv.PrefixEnd([]byte(group))
		if end == nil {
			return nil
		}
		cur.Seek(string(end))
	}
	return cur.Err()
}

// group returns the prefix that a key is rolled up into, or "".
func (l *listing) group(key string) string {
	if l.delim == "" || !strings.HasPrefix(key, l.prefix) {
		return ""
	}
	if i := strings.Index(key[len(l.prefix):], l.delim); i >= 0 {
		return key[:len(l.prefix)+i+len(l.delim)]
	}
	return ""
}

// list answers ListObjects and ListObjectsV2.
func (c *call) list() error {
	ctx := c.r.Context()
	encode, err := c.encoder()
	if err != nil {
		return err
	}
	limit, err := c.limit("max-keys")
	if err != nil {
		return err
	}
	l := &listing{prefix: c.q.Get("prefix"), delim: c.q.Get("delimiter"), max: limit}
	v2 := c.q.Get("list-type") == "2"
	owner := ""
	if !v2 || c.q.Get("fetch-owner") == "true" {
		owner = c.owner()
	}
	if v2 {
		l.after = c.q.Get("start-after")
		if c.q.Has("continuation-token") {
			if l.after, err = readToken(c.q.Get("continuation-token")); err != nil {
				return err
			}
		}
	} else {
		l.after = c.q.Get("marker")
	}
	v, err := c.view(ctx)
	if err != nil {
		return err
	}
	defer v.Close()

	entries, groups := getDocument(), getDocument()
	defer documents.Put(entries)
	defer documents.Put(groups)
	count := 0
	l.object = func(o *bucket.Object) {
		count++
		entries.listed(o, encode, owner)
	}
	l.common = func(prefix string) {
		count++
		groups.element("CommonPrefixes", func() { groups.text("Prefix", encode(prefix)) })
	}
	// Both hold parts of one document; neither begins with a declaration.
	entries.buf, groups.buf = append(entries.buf, '\n'), append(groups.buf, '\n')
	if err := l.walk(ctx, v); err != nil {
		return err
	}
	x := getDocument()
	defer documents.Put(x)
	x.root("ListBucketResult")
	x.text("Name", c.name)
	x.opt("Prefix", encode(l.prefix))
	x.opt("Delimiter", encode(l.delim))
	x.int("MaxKeys", int64(limit))
	x.opt("EncodingType", c.q.Get("encoding-type"))
	x.bool("IsTruncated", l.truncated)
	if v2 {
		x.int("KeyCount", int64(count))
		x.opt("StartAfter", encode(c.q.Get("start-after")))
		x.opt("ContinuationToken", c.q.Get("continuation-token"))
		if l.truncated {
			x.text("NextContinuationToken", writeToken(l.last))
		}
	} else {
		x.opt("Marker", encode(l.after))
		if l.truncated {
			x.text("NextMarker", encode(l.last))
		}
	}
	x.buf = append(append(x.buf, entries.buf[1:]...), groups.buf[1:]...)
	x.close("ListBucketResult")
	return c.sendXML(http.StatusOK, x)
}

func (x *xmlDoc) element(tag string, inner func()) {
	x.open(tag)
	inner()
	x.close(tag)
}

// listed writes one object of a listing.
func (x *xmlDoc) listed(o *bucket.Object, encode func(string) string, owner string) {
	x.open("Contents")
	x.text("Key", encode(o.Key))
	x.time("LastModified", o.Modified)
	x.quoted("ETag", etagOf(o))
	x.algorithms(o)
	x.int("Size", o.Size)
	x.text("StorageClass", classOf(o))
	if owner != "" {
		x.owner("Owner", owner)
	}
	x.close("Contents")
}

func (x *xmlDoc) algorithms(o *bucket.Object) {
	for _, s := range o.Checksum {
		x.text("ChecksumAlgorithm", s.Algorithm)
		x.text("ChecksumType", checksumType(s.Composite))
	}
}

// emptyMD5 is the ETag of nothing, which a directory has.
const emptyMD5 = "d41d8cd98f00b204e9800998ecf8427e"

func etagOf(o *bucket.Object) string {
	if o.ETag == "" && o.Size == 0 {
		return emptyMD5
	}
	return o.ETag
}

// A continuation token is the last entry answered, so that it holds no state and can't be wrong for long.
func writeToken(last string) string { return base64.RawURLEncoding.EncodeToString([]byte("1" + last)) }

func readToken(token string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) < 2 || b[0] != '1' || len(b) > 2*bucket.MaxKey {
		return "", fault.Argument("continuation-token", token, "The continuation token provided is incorrect")
	}
	return string(b[1:]), nil
}

// listVersions answers ListObjectVersions.
func (c *call) listVersions() error {
	ctx := c.r.Context()
	encode, err := c.encoder()
	if err != nil {
		return err
	}
	limit, err := c.limit("max-keys")
	if err != nil {
		if text := c.q.Get("max-keys"); strings.HasPrefix(text, "-") {
			err = fault.Argument("maxKeys", text, "max-keys cannot be negative")
		}
		return err
	}
	l := &versionListing{listing: listing{prefix: c.q.Get("prefix"), delim: c.q.Get("delimiter"), after: c.q.Get("key-marker"), max: limit}}
	marker := c.q.Get("version-id-marker")
	if marker != "" && l.after == "" {
		return fault.Argument("version-id-marker", marker, "A version-id marker cannot be specified without a key marker.")
	}
	v, err := c.view(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	if marker != "" {
		at, null, err := versionID(marker)
		if err != nil {
			return err
		}
		if l.version = at; null {
			if o, err := v.GetVersion(ctx, l.after, 0, true); err == nil {
				l.version = o.Version
			}
		}
	}
	entries, groups := getDocument(), getDocument()
	defer documents.Put(entries)
	defer documents.Put(groups)
	entries.buf, groups.buf = append(entries.buf, '\n'), append(groups.buf, '\n')
	l.object = func(o *bucket.Object) { entries.listedVersion(o, encode, c.owner()) }
	l.common = func(prefix string) {
		groups.element("CommonPrefixes", func() { groups.text("Prefix", encode(prefix)) })
	}
	if err := l.walk(ctx, v); err != nil {
		return err
	}
	x := getDocument()
	defer documents.Put(x)
	x.root("ListVersionsResult")
	x.text("Name", c.name)
	x.text("Prefix", encode(l.prefix))
	x.text("KeyMarker", encode(l.after))
	x.text("VersionIdMarker", marker)
	x.int("MaxKeys", int64(limit))
	x.opt("Delimiter", encode(l.delim))
	x.opt("EncodingType", c.q.Get("encoding-type"))
	x.bool("IsTruncated", l.truncated)
	if l.truncated {
		x.text("NextKeyMarker", encode(l.last))
		x.opt("NextVersionIdMarker", l.lastVersion)
	}
	x.buf = append(append(x.buf, entries.buf[1:]...), groups.buf[1:]...)
	x.close("ListVersionsResult")
	return c.sendXML(http.StatusOK, x)
}

func (x *xmlDoc) listedVersion(o *bucket.Object, encode func(string) string, owner string) {
	tag := "Version"
	if o.Marker {
		tag = "DeleteMarker"
	}
	x.open(tag)
	x.text("Key", encode(o.Key))
	x.text("VersionId", wireVersion(o))
	x.bool("IsLatest", o.Latest)
	x.time("LastModified", o.Modified)
	if !o.Marker {
		x.quoted("ETag", etagOf(o))
		x.algorithms(o)
		x.int("Size", o.Size)
		x.text("StorageClass", classOf(o))
	}
	x.owner("Owner", owner)
	x.close(tag)
}

// versionListing is a listing of versions, which also have a place within their key.
type versionListing struct {
	listing
	version     agentrun.Version // after this version of the key after
	lastVersion string
}

func (l *versionListing) walk(ctx context.Context, v *bucket.View) error {
	if l.max == 0 {
		return nil
	}
	key, version := l.after, l.version
	if l.delim != "" && key != "" && l.group(key) == key {
		end := kv.PrefixEnd([]byte(key))
		if end == nil {
			return nil
		}
		key, version = string(end), ^agentrun.Version(0)
	}
	n := 0
	for {
		group := ""
		err := v.Versions(ctx, l.prefix, key, version, func(o *bucket.Object) error {
			if n == l.max {
				l.truncated = true
				return io.EOF
			}
			n++
			if group = l.group(o.Key); group != "" {
				l.last, l.lastVersion = group, ""
				l.common(group)
				return io.EOF
			}
			l.last, l.lastVersion = o.Key, wireVersion(o)
			l.object(o)
			return nil
		})
		if err != nil || group == "" || l.truncated {
			return err
		}
		// On from the first key behind the group.
		end := kv.PrefixEnd([]byte(group))
		if end == nil {
			return nil
		}
		key, version = string(end), ^agentrun.Version(0)
	}
}
