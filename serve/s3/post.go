package s3

import (
	"crypto/md5"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/bucket"
	"agentrun.dev/serve/s3/fault"
	"agentrun.dev/serve/s3/postpolicy"
	"agentrun.dev/serve/s3/sigv4"
)

// Limits of a browser upload.
const (
	maxFormFields = 100
	maxFormBytes  = 64 << 10 // all fields together, but for the file
)

// form is a browser upload up to its file.
type form struct {
	fields map[string]string // names in lower case
	name   string            // the file's own name
	file   *multipart.Part
}

// postForm answers POST of a form to a bucket. The signature is over the policy, which is one of its fields.
func (c *call) postForm() error {
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil && !strings.HasPrefix(c.r.Header.Get("Content-Type"), "multipart/form-data") || err == nil && kind != "multipart/form-data" {
		if c.r.Header["Authorization"] != nil {
			return fault.MethodNotAllowed.With("Method", c.r.Method, "ResourceType", "BUCKET")
		}
		return fault.PreconditionFailed.With("Condition", "Bucket POST must be of the enclosure-type multipart/form-data")
	}
	if err != nil || params["boundary"] == "" {
		return fault.MalformedPOSTRequest
	}
	f, err := readForm(multipart.NewReader(c.r.Body, params["boundary"]))
	if err != nil {
		return err
	}
	f.fields["bucket"] = c.name
	policy, err := c.authenticateForm(f)
	if err != nil {
		return err
	}
	b, err := c.openBucket(c.name)
	if err != nil && c.key.Root {
		return err
	}
	if err != nil || !c.key.Allows(access.Write, b.ID()) {
		return fault.AccessDenied
	}
	c.b = b
	if err := policy.Check(c.o.Now(), f.checked()); err != nil {
		return err
	}
	return c.storeForm(f, policy)
}

// readForm reads fields up to the file, which S3 wants last; what follows it is ignored.
func readForm(mr *multipart.Reader) (*form, error) {
	f := &form{fields: map[string]string{}}
	size := 0
	for range maxFormFields {
		part, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, fault.Argument("file", "", "POST requires exactly one file upload per request.")
		}
		if err != nil {
			return nil, formFault(err)
		}
		name := strings.ToLower(part.FormName())
		if name == "file" {
			f.name, f.file = part.FileName(), part
			return f, nil
		}
		value, err := io.ReadAll(io.LimitReader(part, int64(maxFormBytes-size)+1))
		if err != nil {
			return nil, formFault(err)
		}
		if size += len(name) + len(value); size > maxFormBytes {
			return nil, fault.MaxMessageLengthExceeded.With("MaxMessageLengthBytes", strconv.Itoa(maxFormBytes))
		}
		if name == "" {
			return nil, fault.MalformedPOSTRequest
		}
		f.fields[name] = string(value)
	}
	return nil, fault.MalformedPOSTRequest
}

func formFault(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.IncompleteBody
	}
	return fault.MalformedPOSTRequest
}

// authenticateForm finds out who signed the form, and reads its policy.
func (c *call) authenticateForm(f *form) (*postpolicy.Policy, error) {
	names := [...]string{"policy", "x-amz-signature", "x-amz-credential", "x-amz-date", "x-amz-algorithm"}
	missing := ""
	have := 0
	for _, name := range names {
		if _, ok := f.fields[name]; ok {
			have++
		} else if missing == "" {
			missing = name
		}
	}
	if have == 0 {
		return nil, fault.AccessDenied
	}
	if missing != "" {
		return nil, fault.Argument(missing, "", "Bucket POST must contain a field named '"+missing+"'.  If it is specified, please check the order of the fields.")
	}
	sig, err := sigv4.ParseForm(f.fields["x-amz-algorithm"], f.fields["x-amz-credential"], f.fields["x-amz-date"])
	if err != nil {
		return nil, err
	}
	// AWS gives a form an hour from its date, whatever its policy says.
	if d := c.o.Now().Sub(sig.Time); d > time.Hour {
		return nil, fault.AccessDenied.Text("Invalid according to Policy: Policy expired.")
	} else if d < -sigv4.MaxSkew {
		return nil, fault.RequestTimeTooSkewed
	}
	if c.key, err = c.lookup(sig.AccessKey); err != nil {
		return nil, err
	}
	if f.fields["x-amz-security-token"] != "" {
		return nil, fault.InvalidToken
	}
	if err := sig.VerifyText(f.fields["policy"], f.fields["x-amz-signature"], c.key.Secret); err != nil {
		return nil, err
	}
	return postpolicy.Parse(f.fields["policy"])
}

// checked returns the fields as the policy speaks of them: the key with the file's name filled in.
func (f *form) checked() map[string]string {
	f.fields["key"] = strings.ReplaceAll(f.fields["key"], "${filename}", path.Base("/"+strings.ReplaceAll(f.name, `\`, "/")))
	return f.fields
}

// limitedFile yields the file up to a length, and fails beyond it.
type limitedFile struct {
	r     io.Reader
	left  int64
	limit int64
	err   error
}

func (l *limitedFile) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		// What else there is of it is counted, so far as that is cheap, to tell the client.
		more, _ := io.CopyN(io.Discard, l.r, 64<<10)
		size := l.limit - l.left + int64(n) + more
		n, err = int(l.left), fault.EntityTooLarge.With("ProposedSize", strconv.FormatInt(size, 10), "MaxSizeAllowed", strconv.FormatInt(l.limit, 10))
	} else if err != nil && !errors.Is(err, io.EOF) {
		err = formFault(err)
	}
	l.left -= int64(n)
	l.err = err
	return n, err
}

// storeForm stores the file under the form's key.
func (c *call) storeForm(f *form, policy *postpolicy.Policy) error {
	key := f.fields["key"]
	if key == "" {
		return fault.Argument("key", "", "Bucket POST must contain a field named 'key'.  If it is specified, please check the order of the fields.")
	}
	if len(key) > bucket.MaxKey {
		return fault.KeyTooLong.With("Size", strconv.Itoa(len(key)), "MaxSizeAllowed", strconv.Itoa(bucket.MaxKey))
	}
	if err := checkKey(key); err != nil {
		return err
	}
	c.path = key
	h := f.headers()
	if err := refuseUnsupported(h); err != nil {
		return err
	}
	o, err := newObject(h)
	if err != nil {
		return err
	}
	if text := f.fields["tagging"]; text != "" {
		var t tagging
		if err := decodeXML([]byte(text), &t); err != nil {
			return fault.MalformedXML
		}
		if o.Tags, err = t.tags(maxObjectTags, "Object tags cannot be greater than 10"); err != nil {
			return err
		}
	}
	want, err := wantChecksum(h)
	if err != nil {
		return err
	}
	limit := c.o.MaxObject
	if policy.Max >= 0 {
		limit = min(limit, policy.Max)
	}
	p, err := c.stageForm(f, want, limit, policy.Min, o)
	if err != nil {
		return err
	}
	put, err := c.apply([]bucket.Op{{Kind: bucket.OpPut, Key: key, Object: o, Payload: p}})
	if err != nil {
		p.Discard()
		return err
	}
	return c.formStored(f, put)
}

// stageForm stores the file's bytes and sets the object's checksum.
func (c *call) stageForm(f *form, want wanted, limit, least int64, o *bucket.Object) (*bucket.Payload, error) {
	if want.alg == nil {
		want.alg = algorithms[0]
	}
	sum := want.alg.get()
	defer want.alg.put(sum)
	file := &limitedFile{r: f.file, left: limit, limit: limit}
	p, err := c.store.Stage(c.r.Context(), io.TeeReader(file, sum), -1)
	if err != nil {
		if file.err != nil && !errors.Is(file.err, io.EOF) {
			return nil, file.err
		}
		return nil, stageFault(err)
	}
	got := encodeSum(sum.Sum(nil))
	switch {
	case p.Size < least:
		err = fault.EntityTooSmall.With("ProposedSize", strconv.FormatInt(p.Size, 10), "MinSizeAllowed", strconv.FormatInt(least, 10))
	case want.value != "" && want.value != got:
		err = want.alg.badDigest(want.value, got)
	case f.fields["content-md5"] != "":
		raw, derr := base64.StdEncoding.DecodeString(f.fields["content-md5"])
		if derr != nil || len(raw) != md5.Size {
			err = fault.InvalidDigest
		} else if [md5.Size]byte(raw) != p.MD5 {
			err = fault.BadDigest
		}
	}
	if err != nil {
		p.Discard()
		return nil, err
	}
	o.Checksum = []bucket.Checksum{{Algorithm: want.alg.name, Value: got}}
	return p, nil
}

// headers returns the form's fields that speak of the object, as headers of a PUT would.
func (f *form) headers() http.Header {
	h := http.Header{}
	for name, value := range f.fields {
		switch {
		case name == "acl":
			h.Set("X-Amz-Acl", value)
		case strings.HasPrefix(name, "x-amz-meta-"), strings.HasPrefix(name, "x-amz-checksum-"), strings.HasPrefix(name, "x-amz-server-side-encryption"),
			name == "x-amz-storage-class", name == "x-amz-website-redirect-location", name == "content-type", name == "cache-control",
			name == "content-disposition", name == "content-encoding", name == "content-language", name == "expires":
			h.Set(name, value)
		}
	}
	return h
}

// formStored answers as the form asks: with a redirect, or the status that it names.
func (c *call) formStored(f *form, put *bucket.Object) error {
	h := c.w.Header()
	etag := `"` + put.ETag + `"`
	h["ETag"] = []string{etag}
	c.setVersion(put)
	setChecksums(h, put.Checksum)
	redirect := f.fields["success_action_redirect"]
	if redirect == "" {
		redirect = f.fields["redirect"]
	}
	if u, err := url.Parse(redirect); redirect != "" && err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		q := u.Query()
		q.Set("bucket", c.name)
		q.Set("key", put.Key)
		q.Set("etag", etag)
		u.RawQuery = q.Encode()
		h["Location"] = []string{u.String()}
		h["Content-Length"] = []string{"0"}
		c.started = true
		c.w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	location := strings.TrimSuffix(c.location(), "/") + "/" + sigv4.EncodePath(put.Key)
	h["Location"] = []string{location}
	switch f.fields["success_action_status"] {
	case "200":
		return c.ok()
	case "201":
		var x xmlDoc
		x.root("PostResponse")
		x.text("Location", location)
		x.text("Bucket", c.name)
		x.text("Key", put.Key)
		x.quoted("ETag", put.ETag)
		x.close("PostResponse")
		return c.sendXML(http.StatusCreated, &x)
	}
	return c.noContent()
}
