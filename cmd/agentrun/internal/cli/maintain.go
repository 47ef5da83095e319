package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/client"
	"agentrun.dev/cmd/agentrun/internal/server"
)

// maintenance is what gc and fsck need: a server, or a data directory that no server has open.
type maintenance struct {
	gc   func(ctx context.Context) (*api.GCResult, error)
	fsck func(ctx context.Context, in api.Fsck, progress func(api.Progress)) (*api.FsckResult, error)
}

// maintain opens the store in a directory or, without one, connects to the server.
func (a *app) maintain(ctx context.Context, data string, f func(maintenance) error) error {
	if data == "" {
		return a.withServer(func(_ context.Context, c *client.Client, _ []string) error {
			return f(maintenance{gc: c.GC, fsck: c.Fsck})
		})(&cobra.Command{}, nil)
	}
	store, err := server.OpenStore(ctx, data, server.StoreOptions{Existing: true})
	if err != nil {
		return err
	}
	err = f(maintenance{
		gc: func(ctx context.Context) (*api.GCResult, error) {
			r, err := store.GC(ctx)
			if err != nil {
				return nil, err
			}
			return &api.GCResult{Views: r.Views, Nodes: r.Nodes, Slots: r.Slots, Bytes: r.Bytes}, nil
		},
		fsck: func(ctx context.Context, in api.Fsck, progress func(api.Progress)) (*api.FsckResult, error) {
			r, err := store.Fsck(ctx, bucket.FsckOptions{Repair: in.Repair, Payload: in.Payload, Progress: func(p bucket.Progress) {
				progress(api.Progress{Phase: p.Phase, Done: p.Done, Total: p.Total})
			}})
			if err != nil {
				return nil, err
			}
			out := &api.FsckResult{Buckets: r.Buckets, Snapshots: r.Snapshots, Views: r.Views, Nodes: r.Nodes, Slots: r.Slots,
				Objects: r.Objects, Bytes: r.Bytes, Repaired: r.Repaired, Defects: make([]api.Defect, 0, len(r.Problems))}
			for _, p := range r.Problems {
				out.Defects = append(out.Defects, api.Defect{Kind: p.Kind, Where: p.Where, What: p.What, Repaired: p.Repaired})
			}
			return out, nil
		},
	})
	if closeErr := store.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (a *app) gc() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "gc [--data DIR]", Short: "Collect what nothing refers to any more",
		Long: `Collect what nothing refers to any more. A server does so by itself; this does it now. With --data,
the store in a directory is collected, which no server may have open.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.maintain(cmd.Context(), data, func(m maintenance) error {
				r, err := m.gc(cmd.Context())
				if err != nil {
					return err
				}
				if a.json {
					return a.out.json(r)
				}
				a.out.printf("collected %s: %s, %s, %s\n", size(r.Bytes), count(r.Views, "view"), count(r.Nodes, "node"), count(r.Slots, "slot"))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "`DIR` of a store that no server has open")
	return cmd
}

func (a *app) fsck() *cobra.Command {
	var data string
	var in api.Fsck
	cmd := &cobra.Command{
		Use: "fsck [--repair] [--payload] [--data DIR]", Short: "Check the store, and repair it",
		Long: `Check that everything the store refers to is there, and that it is counted right. The exit status is
1 if something is wrong and wasn't repaired. With --data, the store in a directory is checked, which
no server may have open.`,
		Example: a.example(`
  agentrun fsck
  agentrun fsck --payload --data /var/lib/agentrun`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.maintain(cmd.Context(), data, func(m maintenance) error {
				meter := a.out.meter()
				r, err := m.fsck(cmd.Context(), in, meter.update)
				meter.done()
				if err != nil {
					return err
				}
				return a.report(r)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&in.Repair, "repair", false, "correct what can be corrected")
	f.BoolVar(&in.Payload, "payload", false, "read every byte and check it, not only that it is there")
	f.StringVar(&data, "data", "", "`DIR` of a store that no server has open")
	return cmd
}

// report prints what a check found.
func (a *app) report(r *api.FsckResult) error {
	open := 0
	t := newTable("DEFECT", "WHERE", "WHAT", "REPAIRED")
	for _, d := range r.Defects {
		repaired := "yes"
		if !d.Repaired {
			open++
			repaired = "no"
		}
		t.add(d.Kind, printable(d.Where), printable(d.What), repaired)
	}
	if open > 0 {
		a.status = exitFailed
	}
	if a.json {
		return a.out.json(r)
	}
	a.out.table(t)
	a.out.printf("checked %s, %s, %s, %s, %s", count(r.Buckets, "bucket"), count(r.Snapshots, "snapshot"), count(r.Objects, "object"),
		count(r.Nodes, "node"), count(r.Slots, "slot"))
	if r.Bytes > 0 {
		a.out.printf(", read %s", size(r.Bytes))
	}
	switch {
	case len(r.Defects) == 0:
		a.out.printf(": sound\n")
	case open == 0:
		a.out.printf(": %s, all repaired\n", count(uint64(len(r.Defects)), "defect"))
	default:
		a.out.printf(": %s, %d not repaired\n", count(uint64(len(r.Defects)), "defect"), open)
	}
	return nil
}
