package s3

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"

	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// kindFaults say what a client is told about an error that no operation has translated.
var kindFaults = [...]*fault.Fault{
	errs.Other:        fault.InternalError,
	errs.Invalid:      fault.InvalidArgument,
	errs.NotFound:     fault.NoSuchBucket,
	errs.Exists:       fault.BucketAlreadyOwnedByYou,
	errs.NotEmpty:     fault.BucketNotEmpty,
	errs.Conflict:     fault.Conflict,
	errs.Precondition: fault.PreconditionFailed,
	errs.Denied:       fault.AccessDenied,
	errs.Unauthorized: fault.InvalidAccessKeyId,
	errs.TooLarge:     fault.EntityTooLarge,
	errs.Limit:        fault.SlowDown,
	errs.NoSpace:      fault.InsufficientStorage, // 507, which SDKs don't retry: space comes back by human hand
	errs.Corrupt:      fault.InternalError.Text("The stored data doesn't match its checksum."),
	errs.Unavailable:  fault.SlowDown.Text("The service isn't available now, please try again."),
	errs.Unsupported:  fault.NotImplemented,
	errs.Canceled:     fault.RequestTimeout,
}

// toFault returns what a client is told about an error.
func toFault(err error) *fault.Fault {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f
	}
	kind := errs.KindOf(err)
	if kind == errs.Other && errors.Is(err, os.ErrDeadlineExceeded) {
		kind = errs.Canceled
	}
	f = fault.InternalError
	if int(kind) < len(kindFaults) {
		f = kindFaults[kind]
	}
	// What is wrong with a request is for the client to read; what is wrong inside isn't.
	switch kind {
	case errs.Invalid, errs.Conflict, errs.Unsupported, errs.Limit:
		f = f.Text(err.Error())
	}
	return f
}

// as translates an error of a kind into a fault and leaves any other as it is.
func as(err error, kind errs.Kind, f *fault.Fault) error {
	var already *fault.Fault
	if err == nil || errors.As(err, &already) || !errs.Is(err, kind) {
		return err
	}
	return f
}

// fail answers with an error. Once the body has begun, it can only break the connection, so that the client notices.
func (c *call) fail(err error) {
	if c.gone {
		panic(http.ErrAbortHandler)
	}
	f := toFault(err)
	if f.Status >= 500 && f.Code != fault.NotImplemented.Code {
		c.o.Log.Error("s3 request failed", "request", c.id, "method", c.r.Method, "bucket", c.name, "key", c.path, "error", err)
	}
	if c.started {
		panic(http.ErrAbortHandler)
	}
	h := c.w.Header()
	for _, name := range []string{"Content-Length", "Content-Range", "Content-Encoding", "ETag", "Last-Modified", "Cache-Control", "Content-Disposition"} {
		if f.Status != http.StatusNotModified || strings.HasPrefix(name, "Content") {
			delete(h, name)
		}
	}
	for _, x := range f.Header {
		h.Set(x.Name, x.Value)
	}
	if f == fault.SlowDown || f.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	if f.Status == http.StatusNotModified {
		c.w.WriteHeader(f.Status)
		return
	}
	body := c.errorXML(f)
	h["Content-Type"] = []string{"application/xml"}
	if c.wantsJSON() {
		body = c.errorJSON(f)
		h["Content-Type"] = []string{"application/json"}
	}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.started = true
	c.w.WriteHeader(f.Status)
	if c.r.Method != http.MethodHead {
		c.w.Write(body)
	}
}

// wantsJSON reports whether the client takes JSON and not XML, as Tigris' own clients do in places.
func (c *call) wantsJSON() bool {
	if strings.Contains(c.r.Header.Get("Accept"), "application/json") {
		return true
	}
	if !strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/json") {
		return false
	}
	return c.r.Method == http.MethodPatch || c.r.Method == http.MethodPut || len(c.q) > 0
}

// resource is the path that the error is about.
func (c *call) resource() string {
	switch {
	case c.name == "":
		return "/"
	case c.path == "":
		return "/" + c.name
	}
	return "/" + c.name + "/" + c.path
}

func (c *call) errorXML(f *fault.Fault) []byte {
	var x xmlDoc
	x.open("Error")
	x.text("Code", f.Code)
	x.text("Message", f.Message)
	for _, field := range f.Fields {
		x.text(field.Name, field.Value)
	}
	x.text("Resource", c.resource())
	x.text("RequestId", c.id)
	x.text("HostId", "agentrun")
	x.close("Error")
	return x.buf
}

func (c *call) errorJSON(f *fault.Fault) []byte {
	m := map[string]any{"Code": f.Code, "Message": f.Message, "message": f.Message, "status": "error", "Resource": c.resource(), "RequestId": c.id}
	for _, field := range f.Fields {
		if m[field.Name] == nil {
			m[field.Name] = field.Value
		}
	}
	body, err := json.Marshal(m)
	if err != nil {
		return []byte(`{"Code":"InternalError"}`)
	}
	return body
}
