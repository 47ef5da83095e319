package s3

import (
	"encoding/xml"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// deleteObject answers DELETE of an object or of one of its versions.
func (c *call) deleteObject() error {
	cond, err := deleteCondition(c.r.Header)
	if err != nil {
		return err
	}
	ops, err := c.deletion(c.path, c.q.Get("versionId"), cond)
	if err != nil {
		return err
	}
	res, err := c.b.Apply(c.r.Context(), ops, bucket.ApplyOptions{})
	if err != nil {
		return c.deleteFault(err, c.path)
	}
	c.setDeleted(res[0], c.q.Get("versionId"))
	return c.noContent()
}

func (c *call) deleteFault(err error, key string) error {
	switch errs.KindOf(err) {
	case errs.Precondition:
		return fault.PreconditionFailed.With("Condition", "If-Match")
	case errs.NotFound:
		return fault.NoSuchKey.With("Key", key)
	}
	return err
}

// deletion returns the operations that delete a key, or the version that version names.
func (c *call) deletion(key, version string, cond *bucket.Condition) ([]bucket.Op, error) {
	if version != "" {
		at, null, err := versionID(version)
		if errors.Is(err, fault.NoSuchVersion) {
			// Deleting what isn't there succeeds; a version that can't exist is deleted by doing nothing.
			return []bucket.Op{{Kind: bucket.OpDeleteExact, Key: key, Version: 1}}, nil
		}
		if err != nil {
			return nil, err
		}
		return []bucket.Op{{Kind: bucket.OpDeleteExact, Key: key, Version: at, NullVersion: null, Cond: cond}}, nil
	}
	ops := []bucket.Op{{Kind: bucket.OpDelete, Key: key, Cond: cond}}
	if strings.HasSuffix(key, "/") && c.hasDir(key) {
		ops = append(ops, bucket.Op{Kind: bucket.OpDeleteDir, Key: key})
	}
	return ops, nil
}

// hasDir reports whether a directory that a filesystem made lies at a key.
func (c *call) hasDir(key string) bool {
	v, err := c.b.View(c.r.Context())
	if err != nil {
		return false
	}
	defer v.Close()
	_, err = v.Dir(c.r.Context(), key)
	return err == nil
}

// setDeleted tells what was deleted or which marker was made.
func (c *call) setDeleted(o *bucket.Object, version string) {
	h := c.w.Header()
	if version != "" {
		h["X-Amz-Version-Id"] = []string{version}
	}
	if o == nil {
		return
	}
	if o.Marker {
		h["X-Amz-Delete-Marker"] = []string{"true"}
		h["X-Amz-Version-Id"] = []string{wireVersion(o)}
	}
}

func deleteCondition(h http.Header) (*bucket.Condition, error) {
	var cond bucket.Condition
	set := false
	if m := h["If-Match"]; m != nil {
		cond.IfMatch, set = []string{trimETag(m[0])}, true
	}
	if t := h["X-Amz-If-Match-Last-Modified-Time"]; t != nil {
		at, err := http.ParseTime(t[0])
		if err != nil {
			return nil, fault.Argument("x-amz-if-match-last-modified-time", t[0], "Invalid time")
		}
		cond.IfModifiedAt, set = at, true
	}
	if s := h["X-Amz-If-Match-Size"]; s != nil {
		n, err := strconv.ParseInt(s[0], 10, 64)
		if err != nil || n < 0 {
			return nil, fault.Argument("x-amz-if-match-size", s[0], "Invalid size")
		}
		cond.IfSize, set = &n, true
	}
	if !set {
		return nil, nil
	}
	return &cond, nil
}

// deleteRequest is the body of DeleteObjects.
type deleteRequest struct {
	XMLName xml.Name `xml:"Delete"`
	Quiet   bool     `xml:"Quiet"`
	Object  []struct {
		Key              string  `xml:"Key"`
		VersionID        string  `xml:"VersionId"`
		ETag             *string `xml:"ETag"`
		LastModifiedTime string  `xml:"LastModifiedTime"`
		Size             *int64  `xml:"Size"`
	} `xml:"Object"`
}

// deleteObjects answers DeleteObjects: each key by itself, as S3 has it, but all that need no condition at once.
func (c *call) deleteObjects() error {
	var req deleteRequest
	if err := c.readXML(&req, maxDelete); err != nil {
		return err
	}
	if len(req.Object) == 0 || len(req.Object) > maxKeys {
		return fault.MalformedXML
	}
	var x xmlDoc
	x.root("DeleteResult")
	results := make([]error, len(req.Object))
	objects := make([]*bucket.Object, len(req.Object))
	var ops []bucket.Op
	var owners []int // the request's index of each operation
	for i := range req.Object {
		o := &req.Object[i]
		if o.Key == "" {
			return fault.MalformedXML
		}
		var cond *bucket.Condition
		if o.ETag != nil || o.Size != nil || o.LastModifiedTime != "" {
			if cond, results[i] = elementCondition(o.ETag, o.LastModifiedTime, o.Size); results[i] != nil {
				continue
			}
		}
		var own []bucket.Op
		if own, results[i] = c.deletion(o.Key, o.VersionID, cond); results[i] != nil {
			continue
		}
		if cond != nil {
			objects[i], results[i] = c.deleteOne(own)
			continue
		}
		for j, op := range own {
			ops = append(ops, op)
			if j == 0 {
				owners = append(owners, i)
			} else {
				owners = append(owners, -1)
			}
		}
	}
	c.deleteAll(ops, owners, objects, results)
	for i := range req.Object {
		o := &req.Object[i]
		x.deleted(o.Key, o.VersionID, objects[i], results[i], req.Quiet)
	}
	x.close("DeleteResult")
	return c.sendXML(http.StatusOK, &x)
}

func (c *call) deleteOne(ops []bucket.Op) (*bucket.Object, error) {
	res, err := c.b.Apply(c.r.Context(), ops, bucket.ApplyOptions{})
	if err != nil {
		return nil, c.deleteFault(err, ops[0].Key)
	}
	return res[0], nil
}

// deleteAll applies all operations as one write; if that fails, each by itself, so that one bad key spoils no other.
func (c *call) deleteAll(ops []bucket.Op, owners []int, objects []*bucket.Object, results []error) {
	if len(ops) == 0 {
		return
	}
	res, err := c.b.Apply(c.r.Context(), ops, bucket.ApplyOptions{})
	for i, owner := range owners {
		if owner < 0 {
			continue
		}
		if err == nil {
			objects[owner] = res[i]
			continue
		}
		objects[owner], results[owner] = c.deleteOne(ops[i : i+1])
	}
}

func elementCondition(etag *string, modified string, size *int64) (*bucket.Condition, error) {
	cond := &bucket.Condition{IfSize: size}
	if etag != nil {
		cond.IfMatch = []string{trimETag(*etag)}
	}
	if modified != "" {
		t, err := time.Parse(time.RFC3339, modified)
		if err != nil {
			if t, err = http.ParseTime(modified); err != nil {
				return nil, fault.Argument("LastModifiedTime", modified, "Invalid time")
			}
		}
		cond.IfModifiedAt = t
	}
	return cond, nil
}

func (x *xmlDoc) deleted(key, version string, o *bucket.Object, err error, quiet bool) {
	if err != nil {
		f := toFault(err)
		x.open("Error")
		x.text("Key", key)
		x.opt("VersionId", version)
		x.text("Code", f.Code)
		x.text("Message", f.Message)
		x.close("Error")
		return
	}
	if quiet {
		return
	}
	x.open("Deleted")
	x.text("Key", key)
	x.opt("VersionId", version)
	if o != nil && o.Marker {
		x.bool("DeleteMarker", true)
		x.text("DeleteMarkerVersionId", wireVersion(o))
	} else if version != "" {
		x.bool("DeleteMarker", false)
	}
	x.close("Deleted")
}
