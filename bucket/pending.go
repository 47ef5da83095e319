package bucket

import (
	"context"

	"agentrun.dev/errs"
)

var errSoon = errs.Msg(errs.Unsupported, "bucket", "", "lands within the hour")

func (s *Store) Usage(ctx context.Context, name string) (*Usage, error) { return nil, errSoon }
func (s *Store) GC(ctx context.Context) (*GCResult, error)              { return nil, errSoon }
func (s *Store) Fsck(ctx context.Context, o FsckOptions) (*FsckReport, error) {
	return nil, errSoon
}
