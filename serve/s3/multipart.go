package s3

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// minPart is the least that a part holds, but for the last, in bytes.
const minPart = 5 << 20

// uploadFault translates errors of an upload.
func (c *call) uploadFault(err error) error {
	return as(err, errs.NotFound, fault.NoSuchUpload.With("UploadId", c.q.Get("uploadId")))
}

// createUpload answers CreateMultipartUpload. What checksum the upload will have is kept in its metadata.
func (c *call) createUpload() error {
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
	sum, err := uploadChecksum(h)
	if err != nil {
		return err
	}
	if sum != nil {
		o.Checksum = []bucket.Checksum{*sum}
	}
	u, err := c.b.CreateUpload(c.r.Context(), c.path, o)
	if err != nil {
		return err
	}
	rh := c.w.Header()
	if sum != nil {
		rh["X-Amz-Checksum-Algorithm"] = []string{sum.Algorithm}
		rh["X-Amz-Checksum-Type"] = []string{checksumType(sum.Composite)}
	}
	var x xmlDoc
	x.root("InitiateMultipartUploadResult")
	x.text("Bucket", c.name)
	x.text("Key", c.path)
	x.text("UploadId", u.ID)
	x.close("InitiateMultipartUploadResult")
	return c.sendXML(http.StatusOK, &x)
}

// uploadChecksum reads which checksum an upload will have; nil if the client doesn't say.
func uploadChecksum(h http.Header) (*bucket.Checksum, error) {
	kind := strings.ToUpper(h.Get("X-Amz-Checksum-Type"))
	a, err := checksumAlgorithm(h)
	if err != nil {
		return nil, err
	}
	if kind != "" && kind != "COMPOSITE" && kind != "FULL_OBJECT" {
		return nil, fault.Request("Value for x-amz-checksum-type header is invalid.")
	}
	if a == nil {
		if kind != "" {
			return nil, fault.Request("The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.")
		}
		return nil, nil
	}
	composite := a.composite
	switch {
	case kind == "COMPOSITE" && !a.composite, kind == "FULL_OBJECT" && !a.full:
		return nil, fault.Request(fmt.Sprintf("The %s checksum type cannot be used with the %s checksum algorithm.", kind, strings.ToLower(a.name)))
	case kind != "":
		composite = kind == "COMPOSITE"
	}
	return &bucket.Checksum{Algorithm: a.name, Composite: composite}, nil
}

// partNumber reads the query's partNumber.
func (c *call) partNumber() (int, error) { return parsePart(c.q.Get("partNumber")) }

// uploadSum returns the algorithm that an upload was begun with; declared is nil if there is none.
func uploadSum(u *bucket.Upload) (declared *bucket.Checksum, a *algorithm) {
	if u.Object == nil || len(u.Object.Checksum) == 0 {
		return nil, algorithms[0]
	}
	declared = &u.Object.Checksum[0]
	return declared, findAlgorithm(declared.Algorithm)
}

// uploadPart answers UploadPart.
func (c *call) uploadPart() error {
	number, err := c.partNumber()
	if err != nil {
		return err
	}
	id := c.q.Get("uploadId")
	u, err := c.b.Upload(c.r.Context(), c.path, id)
	if err != nil {
		return c.uploadFault(err)
	}
	declared, a := uploadSum(u)
	w, err := wantChecksum(c.r.Header)
	if err != nil {
		return err
	}
	if declared != nil && (w.alg != nil && w.alg != a || w.alg == nil && declared.Composite) {
		got := "null"
		if w.alg != nil {
			got = w.alg.name
		}
		return fault.Request(fmt.Sprintf("Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s", a.name, got))
	}
	// A part that comes with another checksum than the finished object will have gets both.
	p, sums, err := c.stage(a, a)
	if err != nil {
		return stageFault(err)
	}
	part, err := c.b.PutPart(c.r.Context(), c.path, id, number, p, sums)
	if err != nil {
		p.Discard()
		return c.uploadFault(err)
	}
	h := c.w.Header()
	h["ETag"] = []string{`"` + part.ETag + `"`}
	if declared != nil || w.alg != nil {
		h[findAlgorithm(sums[0].Algorithm).header] = []string{sums[0].Value}
	}
	return c.ok()
}

// uploadPartCopy answers UploadPartCopy. No bytes are copied, though they are read where the upload needs a checksum.
func (c *call) uploadPartCopy() error {
	number, err := c.partNumber()
	if err != nil {
		return err
	}
	src, err := c.openSource()
	if err != nil {
		return err
	}
	defer src.view.Close()
	off, n, err := copyRange(c.r.Header.Get("X-Amz-Copy-Source-Range"), src.object.Size)
	if err != nil {
		return err
	}
	if n > bucket.MaxPart {
		return fault.Request(fmt.Sprintf("The specified copy source is larger than the maximum allowable size for a copy source: %d", int64(bucket.MaxPart)))
	}
	id := c.q.Get("uploadId")
	u, err := c.b.Upload(c.r.Context(), c.path, id)
	if err != nil {
		return c.uploadFault(err)
	}
	part, err := c.copyPart(u, src, number, off, n)
	if err != nil {
		return c.uploadFault(err)
	}
	if !src.object.Null {
		c.w.Header()["X-Amz-Copy-Source-Version-Id"] = []string{wireVersion(src.object)}
	}
	var x xmlDoc
	x.root("CopyPartResult")
	x.time("LastModified", part.Modified)
	x.quoted("ETag", part.ETag)
	x.checksums(part.Checksum, false)
	x.close("CopyPartResult")
	return c.sendXML(http.StatusOK, &x)
}

// copyPart makes a part of a source's bytes. Where the upload needs a checksum of each part they are read and stored
// anew, because a part that refers to its source has none.
func (c *call) copyPart(u *bucket.Upload, src *source, number int, off, n int64) (*bucket.Part, error) {
	ctx := c.r.Context()
	declared, a := uploadSum(u)
	if declared == nil {
		return c.b.CopyPart(ctx, c.path, u.ID, number, src.object, off, n)
	}
	r, err := src.view.Open(ctx, src.object)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := a.get()
	defer a.put(h)
	p, err := c.store.Stage(ctx, io.TeeReader(io.NewSectionReader(r, off, n), h), n)
	if err != nil {
		return nil, err
	}
	part, err := c.b.PutPart(ctx, c.path, u.ID, number, p, []bucket.Checksum{{Algorithm: a.name, Value: encodeSum(h.Sum(nil))}})
	if err != nil {
		p.Discard()
	}
	return part, err
}

// completeRequest is the body of CompleteMultipartUpload.
type completeRequest struct {
	XMLName xml.Name      `xml:"CompleteMultipartUpload"`
	Part    []requestPart `xml:"Part"`
}

type requestPart struct {
	PartNumber        *int   `xml:"PartNumber"`
	ETag              string `xml:"ETag"`
	ChecksumCRC32     string
	ChecksumCRC32C    string
	ChecksumCRC64NVME string
	ChecksumSHA1      string
	ChecksumSHA256    string
	ChecksumSHA512    string
	ChecksumMD5       string
	ChecksumXXHASH64  string
	ChecksumXXHASH3   string
	ChecksumXXHASH128 string
}

// checksums returns the checksums that a part is named with.
func (p *requestPart) checksums() (sums []bucket.Checksum) {
	for _, s := range []bucket.Checksum{{Algorithm: "CRC32", Value: p.ChecksumCRC32}, {Algorithm: "CRC32C", Value: p.ChecksumCRC32C},
		{Algorithm: "CRC64NVME", Value: p.ChecksumCRC64NVME}, {Algorithm: "SHA1", Value: p.ChecksumSHA1},
		{Algorithm: "SHA256", Value: p.ChecksumSHA256}, {Algorithm: "SHA512", Value: p.ChecksumSHA512}, {Algorithm: "MD5", Value: p.ChecksumMD5},
		{Algorithm: "XXHASH64", Value: p.ChecksumXXHASH64}, {Algorithm: "XXHASH3", Value: p.ChecksumXXHASH3}, {Algorithm: "XXHASH128", Value: p.ChecksumXXHASH128}} {
		if s.Value != "" {
			sums = append(sums, s)
		}
	}
	return sums
}

// completeUpload answers CompleteMultipartUpload.
func (c *call) completeUpload() error {
	ctx, h, id := c.r.Context(), c.r.Header, c.q.Get("uploadId")
	// The request's own checksum header speaks of the object, not of this document.
	want, err := c.takeObjectChecksum()
	if err != nil {
		return err
	}
	var req completeRequest
	if err := c.readXML(&req, maxDelete); err != nil {
		return err
	}
	cond, err := writeCondition(h)
	if err != nil {
		return err
	}
	if len(req.Part) == 0 || len(req.Part) > bucket.MaxParts {
		return fault.MalformedXML
	}
	var o *bucket.Object
	u, err := c.b.Upload(ctx, c.path, id)
	if err == nil {
		o, err = c.complete(u, &req, want, cond)
	} else if errs.Is(err, errs.NotFound) {
		// A retry of a completion that succeeded gets the same answer.
		o, err = c.b.Complete(ctx, c.path, id, plainParts(&req), nil, cond)
	}
	if err != nil {
		switch errs.KindOf(err) {
		case errs.Precondition:
			return as(err, errs.Precondition, fault.PreconditionFailed.With("Condition", conditionName(cond)))
		case errs.NotFound:
			if cond != nil && cond.IfMatch != nil {
				return as(err, errs.NotFound, fault.NoSuchKey.With("Key", c.path))
			}
		case errs.Invalid:
			return as(err, errs.Invalid, fault.InvalidPart.With("UploadId", id))
		case errs.TooLarge:
			return as(err, errs.TooLarge, fault.EntityTooLarge)
		}
		return c.uploadFault(err)
	}
	c.setVersion(o)
	var x xmlDoc
	x.root("CompleteMultipartUploadResult")
	x.text("Location", c.location())
	x.text("Bucket", c.name)
	x.text("Key", c.path)
	x.quoted("ETag", o.ETag)
	x.checksums(o.Checksum, true)
	x.close("CompleteMultipartUploadResult")
	return c.sendXML(http.StatusOK, &x)
}

func plainParts(req *completeRequest) []bucket.CompletePart {
	parts := make([]bucket.CompletePart, len(req.Part))
	for i := range req.Part {
		if req.Part[i].PartNumber != nil {
			parts[i].Number = *req.Part[i].PartNumber
		}
		parts[i].ETag = trimETag(req.Part[i].ETag)
	}
	return parts
}

// location is the object's URL as the client reaches it.
func (c *call) location() string {
	scheme := "http"
	if c.r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + c.r.Host + c.r.URL.EscapedPath()
}

// takeObjectChecksum takes the checksum of the object to be completed out of the headers.
func (c *call) takeObjectChecksum() (wanted, error) {
	h := c.r.Header
	sdk := h["X-Amz-Sdk-Checksum-Algorithm"]
	delete(h, "X-Amz-Sdk-Checksum-Algorithm")
	w, err := wantChecksumForm(h)
	if sdk != nil && err == nil && w.alg != nil {
		h["X-Amz-Sdk-Checksum-Algorithm"] = sdk
		err = w.checkSDK(h)
		delete(h, "X-Amz-Sdk-Checksum-Algorithm")
	}
	for _, a := range algorithms {
		delete(h, a.header)
	}
	return w, err
}

// wantChecksumForm reads a checksum header whose value may be composite, as in "value-2".
func wantChecksumForm(h http.Header) (wanted, error) {
	plain := make(http.Header, len(h))
	composite := ""
	for name, values := range h {
		if strings.HasPrefix(name, checksumPrefix) {
			if base, n, ok := strings.Cut(values[0], "-"); ok && digits(n) && name != "X-Amz-Checksum-Type" {
				composite, values = values[0], []string{base}
			}
			plain[name] = values
		}
	}
	w, err := wantChecksum(plain)
	if composite != "" && w.alg != nil {
		w.value = composite
	}
	return w, err
}

// complete checks the parts that are named against those that were uploaded, and makes the object.
func (c *call) complete(u *bucket.Upload, req *completeRequest, want wanted, cond *bucket.Condition) (*bucket.Object, error) {
	ctx := c.r.Context()
	have, err := c.b.Parts(ctx, c.path, u.ID)
	if err != nil {
		return nil, err
	}
	declared, a := uploadSum(u)
	composite := declared != nil && declared.Composite
	if kind := strings.ToUpper(c.r.Header.Get("X-Amz-Checksum-Type")); kind != "" {
		if kind != "COMPOSITE" && kind != "FULL_OBJECT" {
			return nil, fault.Request("Value for x-amz-checksum-type header is invalid.")
		}
		if declared != nil && kind != checksumType(composite) {
			return nil, fault.Request(fmt.Sprintf("The upload was created using the %s checksum mode. The complete request must use the same checksum mode.", checksumType(composite)))
		}
	}
	parts, picked, err := pickParts(req, have, u, declared != nil && composite, a)
	if err != nil {
		return nil, err
	}
	var size int64
	for i, p := range picked {
		if p.Size < minPart && i < len(picked)-1 {
			return nil, fault.EntityTooSmall.With("ProposedSize", strconv.FormatInt(p.Size, 10), "MinSizeAllowed", strconv.Itoa(minPart))
		}
		size += p.Size
	}
	if err := checkObjectSize(c.r.Header.Get("X-Amz-Mp-Object-Size"), size); err != nil {
		return nil, err
	}
	sums := objectChecksum(a, composite, picked)
	if err := checkObjectSum(want, declared, a, sums); err != nil {
		return nil, err
	}
	return c.b.Complete(ctx, c.path, u.ID, parts, sums, cond)
}

func checkObjectSum(want wanted, declared *bucket.Checksum, a *algorithm, sums []bucket.Checksum) error {
	if want.alg == nil || declared == nil {
		return nil // S3 ignores a checksum that the upload wasn't begun with
	}
	if want.alg != a {
		return fault.Request(fmt.Sprintf("Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s", a.name, want.alg.name))
	}
	if len(sums) > 0 && !strings.EqualFold(strings.Split(sums[0].Value, "-")[0], strings.Split(want.value, "-")[0]) {
		return a.badDigest(want.value, sums[0].Value)
	}
	return nil
}

func checkObjectSize(text string, size int64) error {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return fault.Request(fmt.Sprintf("Value for x-amz-mp-object-size header is invalid: '%s'", text))
	case n < 0:
		return fault.Request(fmt.Sprintf("Value for x-amz-mp-object-size header is less than zero: '%d'", n))
	case n != size:
		return fault.Request(fmt.Sprintf("The provided 'x-amz-mp-object-size' header value %d does not match what was computed: %d", n, size))
	}
	return nil
}

// pickParts finds the uploaded part of each one named.
func pickParts(req *completeRequest, have []bucket.Part, u *bucket.Upload, needSums bool, a *algorithm) (parts []bucket.CompletePart, picked []bucket.Part, err error) {
	last := 0
	for i := range req.Part {
		p := &req.Part[i]
		if p.PartNumber == nil || p.ETag == "" {
			return nil, nil, fault.MalformedXML
		}
		if *p.PartNumber < 1 {
			return nil, nil, fault.Argument("PartNumber", strconv.Itoa(*p.PartNumber), "PartNumber must be >= 1")
		}
		if *p.PartNumber <= last {
			return nil, nil, fault.InvalidPartOrder
		}
		last = *p.PartNumber
		invalid := fault.InvalidPart.With("UploadId", u.ID, "PartNumber", strconv.Itoa(last), "ETag", trimETag(p.ETag))
		at, found := slices.BinarySearchFunc(have, last, func(p bucket.Part, n int) int { return p.Number - n })
		if !found || trimETag(p.ETag) != have[at].ETag {
			return nil, nil, invalid
		}
		sums := p.checksums()
		if err := checkPartSums(sums, have[at].Checksum, last, needSums, a, invalid); err != nil {
			return nil, nil, err
		}
		parts = append(parts, bucket.CompletePart{Number: last, ETag: have[at].ETag})
		picked = append(picked, have[at])
	}
	return parts, picked, nil
}

// checkPartSums compares the checksums that a part is named with to those that it was uploaded with.
func checkPartSums(named, have []bucket.Checksum, number int, need bool, a *algorithm, invalid error) error {
	if len(named) > 1 {
		return fault.Argument("Checksum", "", "Invalid Base64 or multiple checksums present in request")
	}
	if len(named) == 0 {
		if need {
			return fault.Request(fmt.Sprintf("The upload was created using a %s checksum. The complete request must include the checksum for each part. It was missing for part %d in the request.", strings.ToLower(a.name), number))
		}
		return nil
	}
	alg := findAlgorithm(named[0].Algorithm)
	if !alg.valid(named[0].Value) {
		return fault.Argument("Checksum", named[0].Value, "Invalid Base64 or multiple checksums present in request")
	}
	for _, h := range have {
		if h.Algorithm == named[0].Algorithm {
			if h.Value == named[0].Value {
				return nil
			}
			return invalid
		}
	}
	return fault.BadDigest.Text(fmt.Sprintf("The %s you specified for part %d did not match what we received.", strings.ToLower(alg.name), number))
}

// objectChecksum returns the checksum of an object made of parts, if every part has one.
func objectChecksum(a *algorithm, composite bool, parts []bucket.Part) []bucket.Checksum {
	values, sizes := make([]string, len(parts)), make([]int64, len(parts))
	for i := range parts {
		for _, s := range parts[i].Checksum {
			if s.Algorithm == a.name {
				values[i] = s.Value
			}
		}
		if values[i] == "" {
			return nil
		}
		sizes[i] = parts[i].Size
	}
	var value string
	var ok bool
	if composite {
		value, ok = a.compose(values)
	} else if a.full {
		value, ok = a.combine(values, sizes)
	}
	if !ok {
		return nil
	}
	return []bucket.Checksum{{Algorithm: a.name, Value: value, Composite: composite}}
}

// abortUpload answers AbortMultipartUpload.
func (c *call) abortUpload() error {
	id := c.q.Get("uploadId")
	if t := c.r.Header.Get("X-Amz-If-Match-Initiated-Time"); t != "" {
		at, err := http.ParseTime(t)
		if err != nil {
			return fault.Argument("x-amz-if-match-initiated-time", t, "Invalid time")
		}
		u, err := c.b.Upload(c.r.Context(), c.path, id)
		if err != nil {
			return c.uploadFault(err)
		}
		// A time in the future can't be one that the client saw; AWS ignores it.
		if u.Initiated.Unix() != at.Unix() && !at.After(c.o.Now()) {
			return fault.PreconditionFailed.With("Condition", "x-amz-if-match-initiated-time")
		}
	}
	if err := c.b.Abort(c.r.Context(), c.path, id); err != nil {
		return c.uploadFault(err)
	}
	return c.noContent()
}
