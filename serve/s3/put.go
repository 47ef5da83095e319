package s3

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// maxUserMeta bounds user metadata, in bytes of names and values, as AWS has it.
const maxUserMeta = 2 << 10

// storedHeaders are the headers that an object keeps, in canonical form.
var storedHeaders = [...]string{"Content-Type", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language",
	"Expires", "X-Amz-Website-Redirect-Location", storageClassHeader}

// storageClassHeader is kept unless it says STANDARD, which answers leave out, as AWS' do. All classes are stored alike.
const storageClassHeader = "X-Amz-Storage-Class"

// classOf returns an object's storage class for listings.
func classOf(o *bucket.Object) string {
	if class := o.Headers[storageClassHeader]; class != "" {
		return class
	}
	return "STANDARD"
}

// putObject answers PUT of an object.
func (c *call) putObject() error {
	h := c.r.Header
	if err := checkKey(c.path); err != nil {
		return err
	}
	if err := refuseUnsupported(h); err != nil {
		return err
	}
	o, err := newObject(h)
	if err != nil {
		return err
	}
	cond, err := writeCondition(h)
	if err != nil {
		return err
	}
	p, sums, err := c.stage(nil, nil)
	if err != nil {
		return stageFault(err)
	}
	o.Checksum = sums
	ops := [1]bucket.Op{{Kind: bucket.OpPut, Key: c.path, Object: o, Payload: p, Cond: cond}}
	put, err := c.apply(ops[:])
	if err != nil {
		p.Discard()
		return err
	}
	c.set("ETag", `"`+put.ETag+`"`)
	c.set("X-Amz-Object-Size", strconv.FormatInt(put.Size, 10))
	setChecksums(c.w.Header(), sums)
	c.setVersion(put)
	return c.ok()
}

// apply carries operations out and returns the last one's object.
func (c *call) apply(ops []bucket.Op) (*bucket.Object, error) {
	res, err := c.b.Apply(c.r.Context(), ops, bucket.ApplyOptions{})
	if err != nil {
		op := &ops[len(ops)-1]
		switch errs.KindOf(err) {
		case errs.NotFound:
			if op.Cond != nil || op.Kind == bucket.OpSetMeta || op.Kind == bucket.OpRename {
				return nil, fault.NoSuchKey.With("Key", op.Key)
			}
			return nil, fault.NoSuchBucket.With("BucketName", c.name)
		case errs.Precondition:
			return nil, fault.PreconditionFailed.With("Condition", conditionName(op.Cond))
		case errs.TooLarge:
			return nil, as(err, errs.TooLarge, fault.MetadataTooLarge)
		}
		return nil, err
	}
	return res[len(res)-1], nil
}

func conditionName(cond *bucket.Condition) string {
	if cond != nil && cond.IfNoneMatch != nil {
		return "If-None-Match"
	}
	return "If-Match"
}

// setVersion tells the version that a write made. Of the version null, S3 says nothing here.
func (c *call) setVersion(o *bucket.Object) {
	if o == nil || o.Null {
		return
	}
	c.set("X-Amz-Version-Id", wireVersion(o))
}

// checkKey refuses keys whose path leaves the bucket, as AWS does: "..", "a/../../b".
func checkKey(key string) error {
	if !strings.Contains(key, ".") && !strings.Contains(key, "//") {
		return nil
	}
	depth := 0
	named := false
	for part := range strings.SplitSeq(key, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return badKey()
			}
		default:
			depth++
			named = true
		}
	}
	if !named || depth <= 0 {
		return badKey()
	}
	return nil
}

func badKey() error { return fault.BadRequest.Text("Bad Request").Coded("400") }

// newObject reads what a request says about the object that it makes.
func newObject(h http.Header) (*bucket.Object, error) {
	o := &bucket.Object{}
	var err error
	if o.Headers, err = objectHeaders(h); err != nil {
		return nil, err
	}
	if o.Meta, err = userMeta(h); err != nil {
		return nil, err
	}
	if t := h["X-Amz-Tagging"]; t != nil {
		if o.Tags, err = headerTags(t[0]); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func objectHeaders(h http.Header) (map[string]string, error) {
	var kept map[string]string
	for _, name := range storedHeaders {
		v := h[name]
		if v == nil {
			continue
		}
		value := v[0]
		if name == "Content-Encoding" {
			value = withoutChunked(v)
		}
		if name == "X-Amz-Website-Redirect-Location" && !strings.HasPrefix(value, "/") &&
			!strings.HasPrefix(value, "http://") && !strings.HasPrefix(value, "https://") {
			return nil, fault.InvalidRedirectLocation
		}
		if value == "" || name == storageClassHeader && value == "STANDARD" {
			continue
		}
		if kept == nil {
			kept = make(map[string]string, 4)
		}
		kept[name] = value
	}
	return kept, nil
}

// withoutChunked takes aws-chunked, which concerns only the transfer, out of Content-Encoding.
func withoutChunked(values []string) string {
	var kept []string
	for _, v := range values {
		for e := range strings.SplitSeq(v, ",") {
			if e = strings.TrimSpace(e); e != "" && !strings.EqualFold(e, "aws-chunked") {
				kept = append(kept, e)
			}
		}
	}
	return strings.Join(kept, ",")
}

func userMeta(h http.Header) (map[string]string, error) {
	var meta map[string]string
	size := 0
	for name, values := range h {
		rest, ok := strings.CutPrefix(name, "X-Amz-Meta-")
		if !ok {
			continue
		}
		value := strings.Join(values, ",")
		if meta == nil {
			meta = make(map[string]string, 4)
		}
		meta[strings.ToLower(rest)] = value
		size += len(rest) + len(value)
	}
	if size > maxUserMeta {
		return nil, fault.MetadataTooLarge.With("Size", strconv.Itoa(size), "MaxSizeAllowed", strconv.Itoa(maxUserMeta))
	}
	return meta, nil
}

// refuseUnsupported answers requests for what AgentRun doesn't have, rather than ignore a promise: encryption with
// keys that the client names, object lock, access control lists other than the owner's.
func refuseUnsupported(h http.Header) error {
	for name, values := range h {
		if len(name) < 9 || name[:6] != "X-Amz-" {
			continue
		}
		switch {
		case strings.HasPrefix(name, "X-Amz-Server-Side-Encryption"):
			return fault.NotImplemented.With("Header", name)
		case strings.HasPrefix(name, "X-Amz-Object-Lock-"):
			return fault.Request("Bucket is missing ObjectLockConfiguration")
		case strings.HasPrefix(name, "X-Amz-Grant-"):
			return fault.AccessControlListNotSupported
		case name == "X-Amz-Acl":
			if err := ownerACL(values[0]); err != nil {
				return err
			}
		case name == "X-Amz-Storage-Class":
			if !storageClass(values[0]) {
				return fault.InvalidStorageClass
			}
		}
	}
	return nil
}

// ownerACL takes the canned lists that leave all to the owner; any other can't be had.
func ownerACL(acl string) error {
	switch acl {
	case "", "private", "bucket-owner-full-control":
		return nil
	case "public-read", "public-read-write", "authenticated-read", "aws-exec-read", "bucket-owner-read", "log-delivery-write":
		return fault.AccessControlListNotSupported
	}
	return fault.Argument("x-amz-acl", acl, "")
}

// storageClass reports whether S3 knows the class.
func storageClass(class string) bool {
	switch class {
	case "", "STANDARD", "REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER", "DEEP_ARCHIVE",
		"OUTPOSTS", "GLACIER_IR", "SNOW", "EXPRESS_ONEZONE":
		return true
	}
	return false
}

// writeCondition reads If-Match and If-None-Match of a write. S3 takes only "*" for the latter.
func writeCondition(h http.Header) (*bucket.Condition, error) {
	match, none := h["If-Match"], h["If-None-Match"]
	switch {
	case match == nil && none == nil:
		return nil, nil
	case match != nil && none != nil:
		return nil, fault.NotImplemented.With("Header", "If-Match,If-None-Match",
			"additionalMessage", "Multiple conditional request headers present in the request")
	case none != nil:
		if trimETag(none[0]) != "*" {
			return nil, fault.NotImplemented.With("Header", "If-None-Match",
				"additionalMessage", "We don't accept the provided value of If-None-Match header for this API")
		}
		return &bucket.Condition{IfNoneMatch: []string{"*"}}, nil
	}
	cond := &bucket.Condition{}
	for e := range strings.SplitSeq(match[0], ",") {
		cond.IfMatch = append(cond.IfMatch, trimETag(e))
	}
	return cond, nil
}

// Limits of tags, as AWS has them; lengths in characters.
const (
	maxObjectTags = 10
	maxBucketTags = 50
	maxTagKey     = 128
	maxTagValue   = 256
)

// headerTags reads tags that are written as a query.
func headerTags(text string) (map[string]string, error) {
	bad := fault.Argument("x-amz-tagging", text, "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.")
	if text == "" {
		return nil, nil
	}
	tags := make(map[string]string)
	for pair := range strings.SplitSeq(text, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return nil, bad
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, bad
		}
		if _, dup := tags[name]; dup || name == "" {
			return nil, bad
		}
		if err := checkTag(name, value); err != nil {
			return nil, err
		}
		tags[name] = value
	}
	if len(tags) > maxObjectTags {
		return nil, fault.BadRequest.Text("Object tags cannot be greater than 10")
	}
	return tags, nil
}

func checkTag(name, value string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > maxTagKey || !tagText(name) {
		return fault.InvalidTag.Text("The TagKey you have provided is invalid").With("TagKey", name)
	}
	if utf8.RuneCountInString(value) > maxTagValue || !tagText(value) {
		return fault.InvalidTag.Text("The TagValue you have provided is invalid").With("TagKey", name, "TagValue", value)
	}
	return nil
}

// tagText reports whether text is made of what S3 allows in tags: letters, digits, spaces and + - = . _ : / @.
func tagText(s string) bool {
	for _, r := range s {
		switch {
		case r == utf8.RuneError:
			return false
		case r < utf8.RuneSelf && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(" +-=._:/@", r)):
			return false
		}
	}
	return true
}
