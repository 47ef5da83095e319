// Package server wires the server that 'agentrun up' runs: one store in one directory, served over two protocols.
package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"agentrun.dev/blob"
	"agentrun.dev/blob/dir"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
	"agentrun.dev/kv/pebble"
)

// Store is a bucket store and what it lies on.
type Store struct {
	*bucket.Store
	KV    kv.Store
	Blobs blob.Store
	dir   string
}

// StoreOptions are the choices for OpenStore.
type StoreOptions struct {
	History time.Duration // see bucket.Options
	Log     *slog.Logger
	// Existing refuses a directory that holds no store, instead of making one there.
	Existing bool
}

// OpenStore opens the store in a data directory: records in DIR/kv, payload in DIR/blobs. One process at a time may have
// it; another one's is errs.Unavailable, which says whose.
func OpenStore(ctx context.Context, data string, o StoreOptions) (*Store, error) {
	if o.Existing {
		if _, err := os.Stat(filepath.Join(data, "kv")); errors.Is(err, fs.ErrNotExist) {
			return nil, errs.Msg(errs.NotFound, "open store", data, "there is none in this directory").
				WithHint("'agentrun up --data DIR' makes one")
		}
	}
	records, err := pebble.Open(filepath.Join(data, "kv"), pebble.Options{})
	if errs.Is(err, errs.Unavailable) {
		return nil, errs.New(errs.Unavailable, "", "", err).
			WithHint("another process has the store open: stop it, or give another directory with --data")
	}
	if err != nil {
		return nil, err
	}
	blobs, err := dir.Open(filepath.Join(data, "blobs"), dir.Options{})
	if err != nil {
		return nil, errors.Join(err, records.Close())
	}
	store, err := bucket.Open(ctx, bucket.Options{KV: records, Blobs: blobs, History: o.History, Log: o.Log})
	if err != nil {
		_ = records.Close()
		return nil, err
	}
	return &Store{Store: store, KV: records, Blobs: blobs, dir: data}, nil
}

// Close ends the store and what it lies on.
func (s *Store) Close() error { return errors.Join(s.Store.Close(), s.KV.Close()) }

// Stored returns what the store takes on the disk, in bytes.
func (s *Store) Stored(ctx context.Context) (payload, index uint64, err error) {
	err = s.Blobs.List(ctx, "", func(i blob.Info) error {
		payload += uint64(i.Stored)
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	err = filepath.WalkDir(filepath.Join(s.dir, "kv"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var st fs.FileInfo
			if st, err = d.Info(); err == nil {
				index += uint64(st.Size())
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // compacted away meanwhile
			return nil
		}
		return err
	})
	return payload, index, err
}
