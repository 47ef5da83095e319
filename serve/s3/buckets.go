package s3

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// createRequest is the body of CreateBucket.
type createRequest struct {
	XMLName            xml.Name `xml:"CreateBucketConfiguration"`
	LocationConstraint string   `xml:"LocationConstraint"`
	Tags               *tagSet  `xml:"Tags"`
}

// createBucket answers CreateBucket, and forks if Tigris' header names a source.
func (c *call) createBucket() error {
	h := c.r.Header
	if bucket.CheckName(c.name) != nil {
		return fault.InvalidBucketName.With("BucketName", c.name)
	}
	attrs, err := c.createAttributes()
	if err != nil {
		return err
	}
	if source := h.Get("X-Tigris-Fork-Source-Bucket"); source != "" {
		return c.fork(source, attrs)
	}
	o := bucket.CreateOptions{Attributes: attrs, Snapshots: strings.EqualFold(h.Get("X-Tigris-Enable-Snapshot"), "true")}
	if strings.EqualFold(h.Get("X-Amz-Bucket-Object-Lock-Enabled"), "true") {
		// A lock needs versions, and that is all the header changes: nothing is locked before a retention or a legal hold is put,
		// and these are refused.
		o.Versioning = bucket.Versioned
	}
	if _, err := c.store.Create(c.r.Context(), c.name, o); err != nil {
		return c.createFault(err)
	}
	return c.created()
}

func (c *call) created() error {
	c.w.Header()["Location"] = []string{"/" + c.name}
	c.w.Header()["X-Amz-Bucket-Arn"] = []string{"arn:aws:s3:::" + c.name}
	return c.ok()
}

func (c *call) createFault(err error) error {
	switch errs.KindOf(err) {
	case errs.Exists:
		return fault.BucketAlreadyOwnedByYou.With("BucketName", c.name)
	case errs.Invalid:
		return as(err, errs.Invalid, fault.InvalidBucketName.With("BucketName", c.name))
	}
	return err
}

// createAttributes reads what a request wants of a new bucket, and refuses what it can't have.
func (c *call) createAttributes() (map[string]string, error) {
	h := c.r.Header
	attrs := map[string]string{}
	ownership := h.Get("X-Amz-Object-Ownership")
	if ownership != "" {
		if !validOwnership(ownership) {
			return nil, fault.InvalidArgument.Text("Invalid x-amz-object-ownership header: "+ownership).With("ArgumentName", "x-amz-object-ownership")
		}
		attrs[attrOwnership] = ownership
	}
	if acl := h.Get("X-Amz-Acl"); acl != "" {
		switch err := ownerACL(acl); {
		case err == nil:
		case toFault(err).Code == fault.InvalidArgument.Code:
			return nil, err
		case ownership == "" || ownership == ownerEnforced:
			return nil, fault.InvalidBucketAclWithObjectOwnership
		default:
			return nil, err
		}
	}
	for name := range h {
		if strings.HasPrefix(name, "X-Amz-Grant-") {
			return nil, fault.InvalidBucketAclWithObjectOwnership
		}
	}
	data, err := c.readDocument(maxSettings)
	if err != nil || len(data) == 0 {
		return attrs, err
	}
	if strings.HasPrefix(h.Get("Content-Type"), "application/json") && data[0] != '<' {
		return attrs, nil // Tigris' own clients send an empty JSON document
	}
	var req createRequest
	if err := decodeXML(data, &req); err != nil {
		return nil, fault.MalformedXML
	}
	if !region(req.LocationConstraint) {
		return nil, fault.InvalidLocationConstraint.With("LocationConstraint", req.LocationConstraint)
	}
	if req.Tags != nil && len(req.Tags.Tag) > 0 {
		t := tagging{TagSet: req.Tags}
		tags, err := t.tags(maxBucketTags, "Bucket tag count cannot be greater than 50")
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(tags)
		if err != nil {
			return nil, err
		}
		attrs[attrTags] = string(text)
	}
	return attrs, nil
}

// region reports whether text may name a region. Which one doesn't matter.
func region(s string) bool {
	for _, ch := range []byte(s) {
		if !('a' <= ch && ch <= 'z' || 'A' <= ch && ch <= 'Z' || '0' <= ch && ch <= '9' || ch == '-') {
			return false
		}
	}
	return len(s) <= 64
}

// headBucket answers HeadBucket, with what Tigris tells about snapshots and forks.
func (c *call) headBucket() error {
	info, err := c.info()
	if err != nil {
		return err
	}
	h := c.w.Header()
	h["X-Amz-Bucket-Region"] = []string{c.region()}
	h["X-Tigris-Enable-Snapshot"] = []string{strconv.FormatBool(info.Snapshots)}
	h["X-Tigris-Is-Fork-Parent"] = []string{strconv.FormatBool(info.HasForks)}
	if p := info.Parent; p != nil {
		h["X-Tigris-Fork-Source-Bucket"] = []string{p.Name}
		h["X-Tigris-Fork-Source-Bucket-Snapshot"] = []string{p.Snapshot.String()}
	}
	return c.ok()
}

// deleteBucket answers DeleteBucket; Tigris' header deletes what it holds with it.
func (c *call) deleteBucket() error {
	force := strings.EqualFold(c.r.Header.Get("Tigris-Force-Delete"), "true")
	err := c.store.Delete(c.r.Context(), c.name, bucket.DeleteOptions{Force: force})
	switch errs.KindOf(err) {
	case errs.NotEmpty:
		f := fault.BucketNotEmpty
		if info, ierr := c.info(); ierr == nil && info.Versioning != bucket.Unversioned {
			f = f.Text("The bucket you tried to delete is not empty. You must delete all versions in the bucket.")
		}
		return as(err, errs.NotEmpty, f.With("BucketName", c.name))
	case errs.NotFound:
		return as(err, errs.NotFound, fault.NoSuchBucket.With("BucketName", c.name))
	}
	if err != nil {
		return err
	}
	return c.noContent()
}

// bucketPage is one answer's worth of buckets.
type bucketPage struct {
	buckets []*bucket.Info
	next    string // token for more, or ""
}

// maxBuckets is the most that one ListBuckets answers.
const maxBuckets = 10_000

// pageOfBuckets lists the buckets that the caller may see.
func (c *call) pageOfBuckets() (*bucketPage, error) {
	limit := maxBuckets
	if text := c.q.Get("max-buckets"); c.q.Has("max-buckets") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxBuckets {
			return nil, fault.Argument("max-buckets", text, "Argument max-buckets must be an integer between 1 and 10000.")
		}
		limit = n
	}
	after := ""
	if token := c.q.Get("continuation-token"); token != "" {
		if bucket.CheckName(token) != nil {
			return nil, fault.Argument("continuation-token", token, "The continuation token provided is incorrect")
		}
		after = token
	}
	page := &bucketPage{}
	err := c.store.ListPage(c.r.Context(), bucket.Page{Prefix: c.q.Get("prefix"), After: after}, func(i *bucket.Info) error {
		if !c.key.Allows(access.Read, i.ID) {
			return nil
		}
		if len(page.buckets) == limit {
			page.next = page.buckets[limit-1].Name
			return io.EOF
		}
		page.buckets = append(page.buckets, i)
		return nil
	})
	return page, err
}

// listBuckets answers ListBuckets. Tigris puts its lists of snapshots and forks here too.
func (c *call) listBuckets() error {
	h := c.r.Header
	if name := h.Get("X-Tigris-Snapshot"); name != "" {
		return c.listSnapshots(name)
	}
	if strings.Contains(h.Get("Accept"), "application/json") {
		return c.listBucketsJSON()
	}
	page, err := c.pageOfBuckets()
	if err != nil {
		return err
	}
	var x xmlDoc
	x.root("ListAllMyBucketsResult")
	x.owner("Owner", c.owner())
	x.open("Buckets")
	for _, b := range page.buckets {
		x.open("Bucket")
		x.text("Name", b.Name)
		x.time("CreationDate", b.Created)
		x.text("BucketRegion", c.region())
		x.close("Bucket")
	}
	x.close("Buckets")
	x.opt("ContinuationToken", page.next)
	x.opt("Prefix", c.q.Get("prefix"))
	x.close("ListAllMyBucketsResult")
	return c.sendXML(http.StatusOK, &x)
}

// listSnapshots answers with a bucket's snapshots in the form of a list of buckets.
func (c *call) listSnapshots(name string) error {
	b, err := c.openBucket(name)
	if err != nil {
		if !c.key.Root {
			return fault.AccessDenied
		}
		return err
	}
	if !c.key.Allows(access.Read, b.ID()) {
		return fault.AccessDenied
	}
	snaps, err := c.store.Snapshots(c.r.Context(), name)
	if err != nil {
		return as(err, errs.NotFound, fault.NoSuchBucket.With("BucketName", name))
	}
	slices.SortFunc(snaps, func(a, b *bucket.Snapshot) int {
		if a.Version < b.Version {
			return 1
		}
		return -1
	})
	limit := maxKeys
	if text := c.q.Get("max-buckets"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			return fault.Argument("max-buckets", text, "Argument max-buckets must be an integer between 1 and 10000.")
		}
	}
	if token := c.q.Get("continuation-token"); token != "" {
		v, err := parseSnapshot(token)
		if err != nil {
			return fault.Argument("continuation-token", token, "The continuation token provided is incorrect")
		}
		for len(snaps) > 0 && snaps[0].Version >= v {
			snaps = snaps[1:]
		}
	}
	next := ""
	if len(snaps) > limit {
		snaps = snaps[:limit]
		next = snaps[limit-1].Version.String()
	}
	var x xmlDoc
	x.root("ListAllMyBucketsResult")
	x.owner("Owner", c.owner())
	x.open("Buckets")
	for _, s := range snaps {
		x.open("Bucket")
		label := s.Version.String()
		if s.Name != "" {
			label = fmt.Sprintf("%s; name=%s", label, s.Name)
		}
		x.text("Name", label)
		x.time("CreationDate", s.Created)
		x.close("Bucket")
	}
	x.close("Buckets")
	x.opt("ContinuationToken", next)
	x.close("ListAllMyBucketsResult")
	return c.sendXML(http.StatusOK, &x)
}
