package s3

import (
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	"agentrun.dev/bucket"
	"agentrun.dev/serve/s3/fault"
)

// listParts answers ListParts.
func (c *call) listParts() error {
	ctx, id := c.r.Context(), c.q.Get("uploadId")
	limit, err := c.limit("max-parts")
	if err != nil {
		return err
	}
	marker := 0
	if text := c.q.Get("part-number-marker"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if marker = int(n); err != nil {
			return fault.Argument("part-number-marker", text, "Provided "+text+" not an integer or within integer range")
		}
		if marker < 0 {
			return fault.Argument("part-number-marker", text, "Argument "+text+" must be an integer between 0 and 2147483647")
		}
	}
	u, err := c.b.Upload(ctx, c.path, id)
	if err != nil {
		return c.uploadFault(err)
	}
	parts, err := c.b.Parts(ctx, c.path, id)
	if err != nil {
		return c.uploadFault(err)
	}
	first := sort.Search(len(parts), func(i int) bool { return parts[i].Number > marker })
	parts = parts[first:]
	truncated := len(parts) > limit && limit > 0
	parts = parts[:min(len(parts), limit)]
	var x xmlDoc
	x.root("ListPartsResult")
	x.text("Bucket", c.name)
	x.text("Key", c.path)
	x.text("UploadId", id)
	x.int("PartNumberMarker", int64(marker))
	if len(parts) > 0 {
		x.int("NextPartNumberMarker", int64(parts[len(parts)-1].Number))
	}
	x.int("MaxParts", int64(limit))
	x.bool("IsTruncated", truncated)
	x.owner("Initiator", c.owner())
	x.owner("Owner", c.owner())
	x.text("StorageClass", "STANDARD")
	declared, _ := uploadSum(u)
	if declared != nil {
		x.text("ChecksumAlgorithm", declared.Algorithm)
		x.text("ChecksumType", checksumType(declared.Composite))
	} else {
		x.text("ChecksumAlgorithm", "null") // as S3 writes it
		x.text("ChecksumType", "null")
	}
	for i := range parts {
		p := &parts[i]
		x.open("Part")
		x.int("PartNumber", int64(p.Number))
		x.time("LastModified", p.Modified)
		x.quoted("ETag", p.ETag)
		x.int("Size", p.Size)
		if declared != nil {
			x.checksums(p.Checksum[:min(1, len(p.Checksum))], false)
		}
		x.close("Part")
	}
	x.close("ListPartsResult")
	return c.sendXML(http.StatusOK, &x)
}

// listUploads answers ListMultipartUploads.
func (c *call) listUploads() error {
	encode, err := c.encoder()
	if err != nil {
		return err
	}
	limit, err := c.limit("max-uploads")
	if err != nil {
		return err
	}
	prefix, delim := c.q.Get("prefix"), c.q.Get("delimiter")
	keyMarker, idMarker := c.q.Get("key-marker"), c.q.Get("upload-id-marker")
	uploads, err := c.b.Uploads(c.r.Context(), prefix)
	if err != nil {
		return err
	}
	if keyMarker == "" {
		idMarker = ""
	}
	rest, ok := afterUpload(uploads, keyMarker, idMarker)
	if !ok {
		return fault.Argument("upload-id-marker", idMarker, "Invalid uploadId marker")
	}
	x := getDocument()
	defer documents.Put(x)
	page := uploadPage{listing: listing{prefix: prefix, delim: delim, after: keyMarker, max: limit}}
	page.collect(rest)
	x.root("ListMultipartUploadsResult")
	x.text("Bucket", c.name)
	x.text("KeyMarker", encode(keyMarker))
	x.text("UploadIdMarker", idMarker)
	if page.truncated {
		x.text("NextKeyMarker", encode(page.last))
		x.text("NextUploadIdMarker", page.lastID)
	}
	x.opt("Delimiter", encode(delim))
	x.text("Prefix", encode(prefix))
	x.opt("EncodingType", c.q.Get("encoding-type"))
	x.int("MaxUploads", int64(limit))
	x.bool("IsTruncated", page.truncated)
	for _, u := range page.uploads {
		x.open("Upload")
		x.text("Key", encode(u.Key))
		x.text("UploadId", u.ID)
		x.owner("Initiator", c.owner())
		x.owner("Owner", c.owner())
		x.text("StorageClass", "STANDARD")
		x.time("Initiated", u.Initiated)
		if declared, _ := uploadSum(u); declared != nil {
			x.text("ChecksumAlgorithm", declared.Algorithm)
			x.text("ChecksumType", checksumType(declared.Composite))
		}
		x.close("Upload")
	}
	for _, group := range page.groups {
		x.element("CommonPrefixes", func() { x.text("Prefix", encode(group)) })
	}
	x.close("ListMultipartUploadsResult")
	return c.sendXML(http.StatusOK, x)
}

// afterUpload returns the uploads that follow a marker; ok is false if the upload id belongs to no upload of the key.
func afterUpload(uploads []*bucket.Upload, key, id string) (rest []*bucket.Upload, ok bool) {
	if id == "" {
		return uploads[sort.Search(len(uploads), func(i int) bool { return uploads[i].Key > key || key == "" }):], true
	}
	first := sort.Search(len(uploads), func(i int) bool { return uploads[i].Key >= key })
	// A key without uploads is a place all the same; then the id may be that of a later key.
	known := first < len(uploads) && uploads[first].Key == key
	for i, u := range uploads[first:] {
		if u.ID == id && (!known || u.Key == key) {
			return uploads[first+i+1:], true
		}
	}
	return nil, false
}

// uploadPage is one answer's worth of uploads.
type uploadPage struct {
	listing
	uploads []*bucket.Upload
	groups  []string
	lastID  string
}

func (p *uploadPage) collect(uploads []*bucket.Upload) {
	if p.max == 0 {
		return
	}
	for _, u := range uploads {
		group := p.group(u.Key)
		if group != "" && (group == p.after || len(p.groups) > 0 && p.groups[len(p.groups)-1] == group) {
			continue
		}
		if len(p.uploads)+len(p.groups) == p.max {
			p.truncated = true
			return
		}
		if group != "" {
			p.groups = append(p.groups, group)
			p.last, p.lastID = group, ""
			continue
		}
		p.uploads = append(p.uploads, u)
		p.last, p.lastID = u.Key, u.ID
	}
}

// attributes answers GetObjectAttributes.
func (c *call) attributes() error {
	ctx, h := c.r.Context(), c.r.Header
	wants := map[string]bool{}
	for _, line := range h["X-Amz-Object-Attributes"] {
		for name := range strings.SplitSeq(line, ",") {
			switch name = strings.TrimSpace(name); name {
			case "ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize":
				wants[name] = true
			case "":
			default:
				return fault.Argument("x-amz-object-attributes", name, "Invalid attribute name specified.")
			}
		}
	}
	if len(wants) == 0 {
		return fault.Request("The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty")
	}
	v, err := c.view(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	o, err := c.find(ctx, v, c.path, c.q.Get("versionId"))
	if err != nil {
		return err
	}
	rh := c.w.Header()
	rh["Last-Modified"] = []string{httpTime(o.Modified)}
	if !o.Null || v.Info().Versioning != bucket.Unversioned {
		rh["X-Amz-Version-Id"] = []string{wireVersion(o)}
	}
	var x xmlDoc
	x.root("GetObjectAttributesResponse")
	if wants["ETag"] {
		x.text("ETag", etagOf(o))
	}
	if wants["Checksum"] && len(o.Checksum) > 0 {
		x.element("Checksum", func() { x.checksums(withoutCount(o.Checksum), true) })
	}
	if wants["ObjectParts"] && len(o.Parts) > 0 {
		if err := c.attributeParts(&x, o); err != nil {
			return err
		}
	}
	if wants["StorageClass"] {
		x.text("StorageClass", classOf(o))
	}
	if wants["ObjectSize"] {
		x.int("ObjectSize", o.Size)
	}
	x.close("GetObjectAttributesResponse")
	return c.sendXML(http.StatusOK, &x)
}

// withoutCount takes the number of parts off composite checksums, which GetObjectAttributes leaves out as AWS does.
func withoutCount(sums []bucket.Checksum) []bucket.Checksum {
	sums = slices.Clone(sums)
	for i := range sums {
		sums[i].Value, _, _ = strings.Cut(sums[i].Value, "-")
	}
	return sums
}

// attributeParts writes the parts of an object, paged by headers.
func (c *call) attributeParts(x *xmlDoc, o *bucket.Object) error {
	number := func(name string, otherwise int) (int, error) {
		text := c.r.Header.Get(name)
		if text == "" {
			return otherwise, nil
		}
		n, err := strconv.ParseInt(text, 10, 32)
		param := strings.ToLower(strings.TrimPrefix(name, "X-Amz-"))
		if err != nil {
			return 0, fault.Argument(param, text, "Provided "+text+" not an integer or within integer range")
		}
		if n < 0 {
			return 0, fault.Argument(param, text, "Argument "+text+" must be an integer between 0 and 2147483647")
		}
		return int(n), nil
	}
	limit, err := number("X-Amz-Max-Parts", maxKeys)
	if err != nil {
		return err
	}
	marker, err := number("X-Amz-Part-Number-Marker", 0)
	if err != nil {
		return err
	}
	limit = min(limit, maxKeys)
	parts := o.Parts[sort.Search(len(o.Parts), func(i int) bool { return o.Parts[i].Number > marker }):]
	truncated := len(parts) > limit
	parts = parts[:min(len(parts), limit)]
	x.open("ObjectParts")
	x.int("PartsCount", int64(len(o.Parts)))
	x.int("PartNumberMarker", int64(marker))
	next := 0
	if len(parts) > 0 {
		next = parts[len(parts)-1].Number
	}
	x.int("NextPartNumberMarker", int64(next))
	x.int("MaxParts", int64(limit))
	x.bool("IsTruncated", truncated)
	for i := range parts {
		x.open("Part")
		x.int("PartNumber", int64(parts[i].Number))
		x.int("Size", parts[i].Size)
		x.checksums(parts[i].Checksum, false)
		x.close("Part")
	}
	x.close("ObjectParts")
	return nil
}
