package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// maxText is how large an object may be, in bytes, for its lines to be compared.
const maxText = 1 << 20

func (a *app) diff() *cobra.Command {
	var stat, content bool
	var prefix string
	cmd := &cobra.Command{
		Use:   "diff A [B] [--stat | --content] [--prefix P]",
		Short: "Show what changed from one bucket, snapshot or moment to another",
		Long: `Show what changed from A to B. Each is a bucket, or a bucket as it was: NAME@VERSION,
NAME@SNAPSHOT-NAME or NAME@TIME. With a fork alone: what changed in it since it was forked. Two sandboxes,
by id or name, are compared by their files.

The letters are A added, M modified, D deleted, and P for properties only: same bytes, other metadata.
With --json, each line is an object of JSON: an 'item' per change, at the end a 'result'.`,
		Example: a.example(`
  agentrun diff task-42
  agentrun diff agent-base task-42 --stat
  agentrun diff agent-base@before-upgrade agent-base --prefix src/ --content`),
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeBuckets(2),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			if stat && content {
				return usage("--stat, --content", "one or the other")
			}
			if len(args) == 1 {
				base, err := forkedFrom(ctx, c, args[0])
				if a.isSandbox(ctx, c, args[0], err) {
					return a.sandboxDiff(ctx, c, args[0], "", prefix)
				}
				if err != nil {
					return err
				}
				args = []string{base, args[0]}
			}
			d := &differ{a: a, c: c, w: bufio.NewWriter(a.Stdout), from: args[0], to: args[1], stat: stat, content: content}
			defer d.w.Flush()
			err := d.run(ctx, prefix)
			if a.isSandbox(ctx, c, args[0], err) {
				return a.sandboxDiff(ctx, c, args[0], args[1], prefix)
			}
			return err
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&stat, "stat", false, "only how much changed, by the first part of the keys")
	f.BoolVar(&content, "content", false, "the changed lines of objects that are text")
	f.StringVar(&prefix, "prefix", "", "only keys that begin with `PREFIX`")
	return cmd
}

// forkedFrom names the point from which a fork was made, as the fork itself remembers it.
func forkedFrom(ctx context.Context, c *client.Client, fork string) (string, error) {
	name, _, _ := strings.Cut(fork, "@")
	b, err := c.Bucket(ctx, name)
	if err != nil {
		return "", err
	}
	if b.Parent == nil {
		return "", usage(fork, "it isn't a fork: compare it with what?").WithHint("'agentrun diff " + fork + "@SNAPSHOT " + fork + "' compares with a snapshot")
	}
	return name + "@" + b.Parent.Snapshot.String(), nil
}

// differ prints one comparison.
type differ struct {
	a             *app
	c             *client.Client
	w             *bufio.Writer
	from, to      string
	stat, content bool
	grown, shrunk uint64 // bytes that came and went
	parts         map[string]*part
	order         []string
}

// part is what changed beneath one first component.
type part struct {
	added, modified, deleted int
	grown, shrunk            uint64
}

func (d *differ) run(ctx context.Context, prefix string) error {
	d.parts = map[string]*part{}
	enc := json.NewEncoder(d.w)
	enc.SetEscapeHTML(false)
	res, err := d.c.Diff(ctx, d.from, d.to, prefix, func(c *api.Change) error {
		if d.a.json {
			return enc.Encode(api.Line[api.Change, api.DiffResult]{Item: c})
		}
		return d.change(ctx, c, prefix)
	})
	if err != nil {
		return err
	}
	if d.a.json {
		return enc.Encode(api.Line[api.Change, api.DiffResult]{Result: res})
	}
	if d.stat {
		d.w.Flush()
		d.table()
	}
	if !d.content {
		fmt.Fprintf(d.w, "%d added, %d modified, %d deleted", res.Added, res.Modified, res.Deleted)
		if res.Metadata > 0 {
			fmt.Fprintf(d.w, ", %d with other properties", res.Metadata)
		}
		fmt.Fprintf(d.w, "; +%s -%s\n", size(d.grown), size(d.shrunk))
	}
	return nil
}

// letters and colours of the kinds of change.
var kinds = map[string]struct{ letter, colour string }{
	"added": {"A", green}, "modified": {"M", yellow}, "deleted": {"D", red}, "metadata": {"P", cyan},
}

func (d *differ) change(ctx context.Context, c *api.Change, prefix string) error {
	var was, is uint64
	if c.Old != nil && c.Kind != "metadata" {
		was = uint64(c.Old.Size)
	}
	if c.New != nil && c.Kind != "metadata" {
		is = uint64(c.New.Size)
	}
	d.grown, d.shrunk = d.grown+is, d.shrunk+was
	if d.stat {
		d.tally(c, prefix, was, is)
		return nil
	}
	if d.content {
		return d.text(ctx, c)
	}
	k := kinds[c.Kind]
	sizes := ""
	switch c.Kind {
	case "added":
		sizes = size(is)
	case "modified":
		sizes = size(was) + " → " + size(is)
	}
	if sizes != "" {
		sizes = d.a.out.paint(dim, "  "+sizes)
	}
	_, err := fmt.Fprintf(d.w, "%s  %s%s\n", d.a.out.paint(k.colour, k.letter), printable(c.Key), sizes)
	return err
}

// tally counts a change beneath the part of its key up to the first slash.
func (d *differ) tally(c *api.Change, prefix string, was, is uint64) {
	rest := strings.TrimPrefix(c.Key, prefix)
	name := c.Key
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		name = c.Key[:len(c.Key)-len(rest)+i+1]
	}
	const most = 200 // lines; the rest is counted together
	p := d.parts[name]
	if p == nil {
		if len(d.parts) >= most {
			name = "(others)"
			p = d.parts[name]
		}
		if p == nil {
			p = &part{}
			d.parts[name] = p
			d.order = append(d.order, name)
		}
	}
	switch c.Kind {
	case "added":
		p.added++
	case "deleted":
		p.deleted++
	default:
		p.modified++
	}
	p.grown, p.shrunk = p.grown+is, p.shrunk+was
}

func (d *differ) table() {
	t := newTable("WHERE", ">ADDED", ">MODIFIED", ">DELETED", ">+BYTES", ">-BYTES")
	for _, name := range d.order {
		p := d.parts[name]
		t.add(printable(name), count(uint64(p.added), ""), count(uint64(p.modified), ""), count(uint64(p.deleted), ""), size(p.grown), size(p.shrunk))
	}
	d.a.out.table(t)
}

// text prints the changed lines of an object.
func (d *differ) text(ctx context.Context, c *api.Change) error {
	name := printable(c.Key)
	oldName, newName := "a/"+name, "b/"+name
	if c.Kind == "metadata" {
		fmt.Fprintf(d.w, "%s\n", d.a.out.paint(bold, "properties of "+name+" differ"))
		return nil
	}
	was, note, err := d.read(ctx, d.from, c.Key, c.Old)
	if err != nil {
		return err
	}
	is, note2, err := d.read(ctx, d.to, c.Key, c.New)
	if err != nil {
		return err
	}
	if c.Old == nil {
		oldName = "/dev/null"
	}
	if c.New == nil {
		newName = "/dev/null"
	}
	if note = first(note, note2); note != "" {
		_, err := fmt.Fprintf(d.w, "%s\n", d.a.out.paint(bold, note+" "+oldName+" and "+newName+" differ"))
		return err
	}
	out := diff.Diff(oldName, was, newName, is)
	if len(out) == 0 { // an empty object that was added or deleted
		_, err := fmt.Fprintf(d.w, "%s\n", d.a.out.paint(bold, c.Kind+" "+name+", which is empty"))
		return err
	}
	for line := range bytes.Lines(out) {
		d.line(strings.TrimSuffix(string(line), "\n"))
	}
	return nil
}

// line prints a line of a comparison, without control characters that could act on the terminal.
func (d *differ) line(s string) {
	colour := ""
	switch {
	case strings.HasPrefix(s, "diff "), strings.HasPrefix(s, "--- "), strings.HasPrefix(s, "+++ "):
		colour = bold
	case strings.HasPrefix(s, "@@"):
		colour = cyan
	case strings.HasPrefix(s, "+"):
		colour = green
	case strings.HasPrefix(s, "-"):
		colour = red
	}
	if d.a.out.colour { // a terminal; a file gets the bytes as they are, so that it can be applied
		s = strings.Map(func(r rune) rune {
			if r < ' ' && r != '\t' || r == 0x7f {
				return '\ufffd'
			}
			return r
		}, s)
	}
	if colour != "" {
		s = d.a.out.paint(colour, s)
	}
	fmt.Fprintln(d.w, s)
}

// read fetches an object as it is at a point. note says why its lines can't be compared.
func (d *differ) read(ctx context.Context, point, key string, o *api.Object) (b []byte, note string, err error) {
	if o == nil {
		return nil, "", nil
	}
	if o.Size > maxText {
		return nil, "large objects", nil
	}
	name, at, _ := strings.Cut(point, "@")
	r, err := d.c.ReadObject(ctx, name, at, key)
	if errs.Is(err, errs.NotFound) {
		return nil, "changing objects", nil // deleted since the comparison saw it
	}
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	b, err = io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return nil, "", errs.New(errs.Unavailable, "read object", key, err)
	}
	if bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b) {
		return nil, "binary objects", nil
	}
	return b, "", nil
}
