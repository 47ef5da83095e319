package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"agentrun.dev/api"
)

// Server describes the server. It also proves that the key is good.
func (c *Client) Server(ctx context.Context) (*api.Server, error) {
	return get[api.Server](ctx, c, path("server"), nil)
}

func get[T any](ctx context.Context, c *Client, path string, query url.Values) (*T, error) {
	out := new(T)
	if err := c.call(ctx, http.MethodGet, path, query, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

func post[T any](ctx context.Context, c *Client, path string, in any) (*T, error) {
	out := new(T)
	if err := c.call(ctx, http.MethodPost, path, nil, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Buckets lists the buckets that the key may see, by name.
func (c *Client) Buckets(ctx context.Context) ([]api.Bucket, error) {
	return c.buckets(ctx, url.Values{})
}

// buckets goes through all pages.
func (c *Client) buckets(ctx context.Context, q url.Values) ([]api.Bucket, error) {
	var all []api.Bucket
	for {
		page, err := get[api.Buckets](ctx, c, path("buckets"), q)
		if err != nil {
			return nil, err
		}
		if all = append(all, page.Buckets...); page.Next == "" {
			return all, nil
		}
		q.Set("cursor", page.Next)
	}
}

// Forks lists the living forks of a bucket.
func (c *Client) Forks(ctx context.Context, name string) ([]api.Bucket, error) {
	return c.buckets(ctx, url.Values{"forksOf": {name}})
}

// Bucket describes a bucket.
func (c *Client) Bucket(ctx context.Context, name string) (*api.Bucket, error) {
	return get[api.Bucket](ctx, c, path("buckets", name), nil)
}

// CreateBucket makes a bucket or, with ForkOf set, a fork.
func (c *Client) CreateBucket(ctx context.Context, in api.CreateBucket) (*api.Bucket, error) {
	return post[api.Bucket](ctx, c, path("buckets"), in)
}

// DeleteBucket deletes a bucket; one that holds objects only if forced.
func (c *Client) DeleteBucket(ctx context.Context, name string, force bool) error {
	var q url.Values
	if force {
		q = url.Values{"force": {"true"}}
	}
	return c.call(ctx, http.MethodDelete, path("buckets", name), q, nil, nil)
}

// Usage says what a bucket takes. It costs what the bucket has changed since it was forked.
func (c *Client) Usage(ctx context.Context, name string) (*api.Usage, error) {
	return get[api.Usage](ctx, c, path("buckets", name, "usage"), nil)
}

// StoreUsage says what the whole store takes.
func (c *Client) StoreUsage(ctx context.Context) (*api.StoreUsage, error) {
	return get[api.StoreUsage](ctx, c, path("usage"), nil)
}

// Snapshots lists a bucket's snapshots, oldest first.
func (c *Client) Snapshots(ctx context.Context, bucket string) ([]api.Snapshot, error) {
	out, err := get[api.Snapshots](ctx, c, path("buckets", bucket, "snapshots"), nil)
	if err != nil {
		return nil, err
	}
	return out.Snapshots, nil
}

// TakeSnapshot freezes a bucket as it is.
func (c *Client) TakeSnapshot(ctx context.Context, bucket string, in api.TakeSnapshot) (*api.Snapshot, error) {
	return post[api.Snapshot](ctx, c, path("buckets", bucket, "snapshots"), in)
}

// DeleteSnapshot deletes a snapshot, named by its version or its name.
func (c *Client) DeleteSnapshot(ctx context.Context, bucket, snapshot string) error {
	return c.call(ctx, http.MethodDelete, path("buckets", bucket, "snapshots", snapshot), nil, nil, nil)
}

// Diff calls f for each change from one point to another ("name", "name@version", "name@snapshot", "name@time"), in order
// of key. An error from f ends it and comes back.
func (c *Client) Diff(ctx context.Context, from, to, prefix string, f func(*api.Change) error) (*api.DiffResult, error) {
	q := url.Values{"from": {from}, "to": {to}}
	if prefix != "" {
		q.Set("prefix", prefix)
	}
	return stream[api.Change, api.DiffResult](ctx, c, http.MethodGet, path("diff"), q, nil, f, nil)
}

// Merge merges a bucket into another. A merge that met conflicts returns both the result, which lists them, and an
// errs.Conflict. progress may be nil.
func (c *Client) Merge(ctx context.Context, source string, in api.Merge, progress func(api.Progress)) (*api.MergeResult, error) {
	return c.merge(ctx, path("buckets", source, "merge"), in, progress)
}

// Rebase brings into a fork what its parent has gained; as Merge.
func (c *Client) Rebase(ctx context.Context, fork string, in api.Merge, progress func(api.Progress)) (*api.MergeResult, error) {
	return c.merge(ctx, path("buckets", fork, "rebase"), in, progress)
}

func (c *Client) merge(ctx context.Context, path string, in api.Merge, progress func(api.Progress)) (*api.MergeResult, error) {
	res, err := stream[api.None, api.MergeResult](ctx, c, http.MethodPost, path, nil, in, nil, progress)
	var e *Error
	if errors.As(err, &e) {
		res = e.Problem.Merge
	}
	return res, err
}

// Keys lists the access keys, without their secrets.
func (c *Client) Keys(ctx context.Context) ([]api.Key, error) {
	var all []api.Key
	for q := (url.Values{}); ; {
		page, err := get[api.Keys](ctx, c, path("keys"), q)
		if err != nil {
			return nil, err
		}
		if all = append(all, page.Keys...); page.Next == "" {
			return all, nil
		}
		q.Set("cursor", page.Next)
	}
}

// CreateKey makes an access key. Its secret is told only here.
func (c *Client) CreateKey(ctx context.Context, in api.CreateKey) (*api.Key, error) {
	return post[api.Key](ctx, c, path("keys"), in) // without an Idempotency-Key: a server without the sandbox service knows none
}

// RevokeKey ends an access key.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, path("keys", id), nil, nil, nil)
}

// RotateKey gives an access key a new secret, which is told only here.
func (c *Client) RotateKey(ctx context.Context, id string) (*api.Key, error) {
	return post[api.Key](ctx, c, path("keys", id, "rotate"), nil)
}

// GC collects what nothing refers to any more.
func (c *Client) GC(ctx context.Context) (*api.GCResult, error) {
	return post[api.GCResult](ctx, c, path("gc"), nil)
}

// Fsck checks the store. progress may be nil.
func (c *Client) Fsck(ctx context.Context, in api.Fsck, progress func(api.Progress)) (*api.FsckResult, error) {
	return stream[api.None, api.FsckResult](ctx, c, http.MethodPost, path("fsck"), nil, in, nil, progress)
}

// ReadObject opens an object of a bucket, as it is or, with at, was at a version, snapshot or time. The caller closes the
// reader, whose end is checked: a transfer that was cut off is io.ErrUnexpectedEOF.
func (c *Client) ReadObject(ctx context.Context, bucket, at, key string) (io.ReadCloser, error) {
	q := url.Values{"key": {key}} // a key may hold slashes and dots in every place, which paths don't survive
	if at != "" {
		q.Set("at", at)
	}
	resp, err := c.do(ctx, http.MethodGet, path("buckets", bucket, "object"), q, "*/*", nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
