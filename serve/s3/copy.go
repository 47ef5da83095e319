package s3

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// source is the object that a copy is made from, with the view that keeps it readable.
type source struct {
	bucket, key string
	view        *bucket.View
	object      *bucket.Object
}

// copySource parses X-Amz-Copy-Source: [/]bucket/key[?versionId=v], the path URL-encoded.
func copySource(text string) (name, key, version string, err error) {
	path, query, found := strings.Cut(text, "?")
	if found {
		v, ok := strings.CutPrefix(query, "versionId=")
		if !ok {
			return "", "", "", fault.Argument("x-amz-copy-source", text, "Unsupported copy source parameter.")
		}
		if version, err = url.QueryUnescape(v); err != nil {
			return "", "", "", fault.Argument("x-amz-copy-source", text, "Invalid copy source encoding")
		}
	}
	path, err = url.PathUnescape(path)
	if err != nil {
		return "", "", "", fault.Argument("x-amz-copy-source", text, "Invalid copy source encoding")
	}
	name, key, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case bucket.CheckName(name) != nil:
		return "", "", "", fault.Argument("x-amz-copy-source", text, "Invalid copy source bucket name")
	case key == "" || len(key) > bucket.MaxKey || checkKey(key) != nil:
		return "", "", "", fault.Argument("x-amz-copy-source", text, "Invalid copy source object key")
	}
	return name, key, version, nil
}

// openSource finds what a copy is made from, if the caller may read it and the request's conditions hold.
func (c *call) openSource() (*source, error) {
	text := c.r.Header.Get("X-Amz-Copy-Source")
	name, key, version, err := copySource(text)
	if err != nil {
		return nil, err
	}
	b, err := c.openBucket(name)
	if err != nil {
		if !c.key.Root {
			return nil, fault.AccessDenied
		}
		return nil, err
	}
	if !c.key.Allows(access.Read, b.ID()) || !c.expectedOwner("X-Amz-Source-Expected-Bucket-Owner") {
		return nil, fault.AccessDenied
	}
	v, err := c.sourceView(b)
	if err != nil {
		return nil, err
	}
	s := &source{bucket: name, key: key, view: v}
	if s.object, err = c.find(c.r.Context(), v, key, version); err == nil {
		err = c.conditions(s.object, "X-Amz-Copy-Source-", false)
	} else if toFault(err).Code == fault.MethodNotAllowed.Code {
		err = fault.Request("The source of a copy request may not specifically refer to a delete marker by version id.")
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	return s, nil
}

// sourceView opens the source bucket as it is, or at the snapshot that the request names.
func (c *call) sourceView(b *bucket.Bucket) (*bucket.View, error) {
	at, err := c.snapshotAt()
	if err != nil {
		return nil, err
	}
	if at == 0 {
		return b.View(c.r.Context())
	}
	v, err := b.ViewAt(c.r.Context(), at)
	return v, as(err, errs.NotFound, fault.NoSuchSnapshot.With("SnapshotVersion", at.String()))
}

// directive reads x-amz-metadata-directive and its like.
func directive(h http.Header, name, message string) (replace bool, err error) {
	switch v := h.Get(name); v {
	case "", "COPY":
		return false, nil
	case "REPLACE":
		return true, nil
	default:
		return false, fault.Argument(strings.ToLower(name), v, message)
	}
}

// copyObject answers CopyObject. No bytes are copied: the new object refers to the source's payload.
func (c *call) copyObject() error {
	h := c.r.Header
	if err := checkKey(c.path); err != nil {
		return err
	}
	if err := refuseUnsupported(h); err != nil {
		return err
	}
	replaceMeta, err := directive(h, "X-Amz-Metadata-Directive", "Unknown metadata directive.")
	if err != nil {
		return err
	}
	replaceTags, err := directive(h, "X-Amz-Tagging-Directive", "Unknown tagging directive.")
	if err != nil {
		return err
	}
	given, err := newObject(h)
	if err != nil {
		return err
	}
	cond, err := writeCondition(h)
	if err != nil {
		return err
	}
	alg, err := checksumAlgorithm(h)
	if err != nil {
		return err
	}
	src, err := c.openSource()
	if err != nil {
		return err
	}
	defer src.view.Close()
	if src.object.Size > bucket.MaxPart {
		return fault.Request(fmt.Sprintf("The specified copy source is larger than the maximum allowable size for a copy source: %d", int64(bucket.MaxPart)))
	}
	_, _, version, _ := copySource(h.Get("X-Amz-Copy-Source"))
	if src.bucket == c.name && src.key == c.path && version == "" && !replaceMeta && !replaceTags &&
		h.Get("X-Tigris-Snapshot-Version") == "" && !changesItself(h) {
		return fault.Request("This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.")
	}
	o := copied(src.object, given, replaceMeta, replaceTags)
	if o.Checksum, err = c.copyChecksum(src, alg); err != nil {
		return err
	}
	ops := []bucket.Op{{Kind: bucket.OpCopy, Key: c.path, Source: src.object, Object: o, Cond: cond}}
	put, err := c.apply(ops)
	if err != nil {
		return err
	}
	c.setVersion(put)
	if !src.object.Null {
		c.w.Header()["X-Amz-Copy-Source-Version-Id"] = []string{wireVersion(src.object)}
	}
	var x xmlDoc
	x.root("CopyObjectResult")
	x.time("LastModified", put.Modified)
	x.quoted("ETag", put.ETag)
	x.checksums(put.Checksum, true)
	x.close("CopyObjectResult")
	return c.sendXML(http.StatusOK, &x)
}

// changesItself reports whether a copy of an object onto itself changes something all the same.
func changesItself(h http.Header) bool {
	return h.Get("X-Amz-Storage-Class") != "" || h.Get("X-Amz-Website-Redirect-Location") != "" || h.Get("X-Amz-Checksum-Algorithm") != ""
}

// copied is the metadata of a copy.
func copied(src, given *bucket.Object, replaceMeta, replaceTags bool) *bucket.Object {
	o := &bucket.Object{Headers: src.Headers, Meta: src.Meta, Tags: src.Tags}
	// A copy's ETag is the MD5 of its bytes; parts aren't copied, but their ETag is all we have without reading them.
	o.ETag = src.ETag
	if replaceMeta {
		o.Headers, o.Meta = given.Headers, given.Meta
	} else {
		o.Posix = src.Posix
		// Redirect and storage class belong to the request and are never copied.
		for _, name := range []string{"X-Amz-Website-Redirect-Location", storageClassHeader} {
			if o.Headers[name] == given.Headers[name] {
				continue
			}
			if o.Headers = maps.Clone(o.Headers); o.Headers == nil {
				o.Headers = map[string]string{}
			}
			delete(o.Headers, name)
			if v := given.Headers[name]; v != "" {
				o.Headers[name] = v
			}
		}
	}
	if replaceTags {
		o.Tags = given.Tags
	}
	return o
}

// checksumAlgorithm reads x-amz-checksum-algorithm; nil if there is none.
func checksumAlgorithm(h http.Header) (*algorithm, error) {
	name := h.Get("X-Amz-Checksum-Algorithm")
	if name == "" {
		return nil, nil
	}
	a := findAlgorithm(name)
	if a == nil {
		return nil, fault.Request("Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, CRC64NVME, MD5, SHA1, SHA256, SHA512, XXHASH128, XXHASH3, XXHASH64]")
	}
	return a, nil
}

// copyChecksum returns a copy's checksum: the source's if that is one of all bytes and by the algorithm asked for,
// or else one computed by reading it.
func (c *call) copyChecksum(src *source, alg *algorithm) ([]bucket.Checksum, error) {
	for _, s := range src.object.Checksum {
		if !s.Composite && (alg == nil || s.Algorithm == alg.name) {
			return []bucket.Checksum{s}, nil
		}
	}
	if alg == nil {
		if len(src.object.Checksum) == 0 {
			return nil, nil
		}
		alg = findAlgorithm(src.object.Checksum[0].Algorithm)
		if alg == nil {
			return nil, nil
		}
	}
	return c.computeChecksum(src, alg, 0, src.object.Size)
}

// computeChecksum reads n bytes of a source from off.
func (c *call) computeChecksum(src *source, alg *algorithm, off, n int64) ([]bucket.Checksum, error) {
	r, err := src.view.Open(c.r.Context(), src.object)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := alg.get()
	defer alg.put(h)
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	for n > 0 {
		chunk := (*buf)[:min(n, int64(len(*buf)))]
		m, err := r.ReadAt(chunk, off)
		h.Write(chunk[:m])
		off, n = off+int64(m), n-int64(m)
		if err != nil && m < len(chunk) {
			return nil, err
		}
		if err := c.r.Context().Err(); err != nil {
			return nil, err
		}
	}
	return []bucket.Checksum{{Algorithm: alg.name, Value: encodeSum(h.Sum(nil))}}, nil
}

// renameObject answers Tigris' rename: the key changes, the object stays the same.
func (c *call) renameObject() error {
	name, key, _, err := copySource(c.r.Header.Get("X-Amz-Copy-Source"))
	if err != nil {
		return err
	}
	if err := checkKey(c.path); err != nil {
		return err
	}
	if name != c.name {
		return fault.Argument("x-amz-copy-source", name, "An object can be renamed only within its bucket.")
	}
	ops := []bucket.Op{{Kind: bucket.OpRename, Key: key, To: c.path}}
	o, err := c.apply(ops)
	if err != nil {
		return err
	}
	c.setVersion(o)
	var x xmlDoc
	x.root("CopyObjectResult")
	if o != nil {
		x.time("LastModified", o.Modified)
		x.quoted("ETag", etagOf(o))
	}
	x.close("CopyObjectResult")
	return c.sendXML(http.StatusOK, &x)
}

// copyRange reads x-amz-copy-source-range, which unlike Range must have both ends and lie within the source.
func copyRange(text string, size int64) (off, n int64, err error) {
	if text == "" {
		return 0, size, nil
	}
	bad := fault.Argument("x-amz-copy-source-range", text, "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy")
	spec, ok := strings.CutPrefix(text, "bytes=")
	first, last, dash := strings.Cut(spec, "-")
	if !ok || !dash || first == "" || last == "" || !digits(first) || !digits(last) {
		return 0, 0, bad
	}
	from, to := number(first), number(last)
	if to < from {
		return 0, 0, bad
	}
	if to >= size {
		return 0, 0, fault.Argument("x-amz-copy-source-range", strconv.FormatInt(size, 10),
			fmt.Sprintf("Range specified is not valid for source object of size: %d", size))
	}
	return from, to - from + 1, nil
}
