package client

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// ReadFile opens a file of a sandbox. The caller closes the reader, whose end is checked: a transfer that was cut off is
// io.ErrUnexpectedEOF.
func (c *Client) ReadFile(ctx context.Context, id, name string) (io.ReadCloser, error) {
	return c.ReadFileAt(ctx, id, name, 0, -1)
}

// ReadFileAt opens a part of a file: length bytes from an offset on, or with a negative length all of them. A file that ends
// before the offset is errs.Invalid.
func (c *Client) ReadFileAt(ctx context.Context, id, name string, offset, length int64) (io.ReadCloser, error) {
	q := &request{method: http.MethodGet, path: path("sandboxes", id, "files"), query: url.Values{"path": {name}}, header: http.Header{"Accept": {"*/*"}}}
	switch {
	case offset < 0 || length == 0:
		return nil, errs.Msg(errs.Invalid, "read file", name, "want an offset from 0 on, and a length that isn't 0")
	case length > 0:
		q.header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		q.header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := c.send(ctx, q)
	if err != nil {
		return nil, err
	}
	if offset > 0 && resp.StatusCode != http.StatusPartialContent { // a file that the system makes up has no ranges
		if _, err := io.CopyN(io.Discard, resp.Body, offset); err != nil {
			resp.Body.Close()
			return nil, errs.New(errs.Invalid, "read file", name, err)
		}
	}
	return resp.Body, nil
}

// WriteFile puts a file of a sandbox into its place, once all of r was sent. Directories above it are made. A mode of 0 is the
// server's default. size is how many bytes r has; less than 0 if that isn't known. It is sent again after a failure only if r is
// an io.Seeker.
func (c *Client) WriteFile(ctx context.Context, id, name string, mode fs.FileMode, r io.Reader, size int64) (*api.FileInfo, error) {
	q := &request{method: http.MethodPut, path: path("sandboxes", id, "files"), query: url.Values{"path": {name}},
		header: http.Header{"Accept": {api.JSON}, "Content-Type": {api.Bytes}}, size: max(size, 0)}
	if mode != 0 {
		q.query.Set("mode", fmt.Sprintf("%#o", mode.Perm()))
	}
	seeker, ok := r.(io.Seeker)
	var begin int64
	if ok {
		var err error
		if begin, err = seeker.Seek(0, io.SeekCurrent); err != nil {
			ok = false
		}
	}
	q.once = !ok
	q.body = func() io.Reader {
		if ok {
			if _, err := seeker.Seek(begin, io.SeekStart); err != nil {
				return failing{err}
			}
		}
		if size == 0 {
			return http.NoBody
		}
		return io.NopCloser(r) // the caller's to close
	}
	out := new(api.FileInfo)
	return out, c.decoded(ctx, q, out)
}

// failing is a reader that can't begin anew.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// StatFile describes a file of a sandbox.
func (c *Client) StatFile(ctx context.Context, id, name string) (*api.FileInfo, error) {
	return get[api.FileInfo](ctx, c, path("sandboxes", id, "files", "stat"), url.Values{"path": {name}})
}

// ListFiles lists a directory of a sandbox, so many levels deep; 0 is 1.
func (c *Client) ListFiles(ctx context.Context, id, name string, depth int, p Page) (*api.Files, error) {
	q := url.Values{"path": {name}}
	if depth > 0 {
		q.Set("depth", strconv.Itoa(depth))
	}
	return get[api.Files](ctx, c, path("sandboxes", id, "files", "list"), p.query(q))
}

// RemoveFile deletes a file of a sandbox; a directory that isn't empty only if recursive.
func (c *Client) RemoveFile(ctx context.Context, id, name string, recursive bool) error {
	q := url.Values{"path": {name}}
	if recursive {
		q.Set("recursive", "true")
	}
	return c.call(ctx, http.MethodDelete, path("sandboxes", id, "files"), q, nil, nil)
}

// MakeDirectory makes a directory of a sandbox, with those above it.
func (c *Client) MakeDirectory(ctx context.Context, id, name string) (*api.FileInfo, error) {
	return post[api.FileInfo](ctx, c, path("sandboxes", id, "files", "mkdir"), api.FileAction{Path: name})
}

// MoveFile moves a file of a sandbox.
func (c *Client) MoveFile(ctx context.Context, id, from, to string) (*api.FileInfo, error) {
	return post[api.FileInfo](ctx, c, path("sandboxes", id, "files", "move"), api.FileAction{Path: from, To: to})
}

// WatchFiles yields changes of files, until ctx is done or event returns an error. The first event says that it has begun: its
// Kind is ready.
func (c *Client) WatchFiles(ctx context.Context, id, name string, recursive bool, event func(*api.FileEvent) error) error {
	q := url.Values{"path": {name}}
	if recursive {
		q.Set("recursive", "true")
	}
	return lines(ctx, c, path("sandboxes", id, "files", "watch"), q, event)
}
