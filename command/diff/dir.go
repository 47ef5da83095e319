package diff

import (
	"sort"
	"strings"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// maxDepth bounds nested directories.
const maxDepth = 4096

// list returns the names in a directory, sorted; those that are excluded aren't there. A missing directory is empty.
func (d *differ) list(in input, nested bool) ([]string, error) {
	if in.missing {
		return nil, nil
	}
	entries, err := d.t.ReadDir(in.name)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.Name == "." || e.Name == ".." || d.excluded(e.Name) || !nested && d.starting != "" && e.Name < d.starting {
			continue
		}
		out = append(out, e.Name)
	}
	sort.Slice(out, func(i, j int) bool { return d.order(out[i], out[j]) < 0 })
	return out, nil
}

func (d *differ) order(a, b string) int {
	if d.foldNames {
		if c := strings.Compare(strings.ToLower(a), strings.ToLower(b)); c != 0 {
			return c
		}
	}
	return strings.Compare(a, b)
}

func (d *differ) excluded(name string) bool {
	for _, p := range d.exclude {
		if tool.Glob(p, name, 0) {
			return true
		}
	}
	return false
}

// loops reports whether a directory is one of those above it, and enters it otherwise.
func (d *differ) loops(in [2]input) bool {
	for i := range in {
		if in[i].missing {
			continue
		}
		for _, a := range d.ancestors[i] {
			if a.Dev == in[i].attr.Dev && a.Ino == in[i].attr.Ino {
				d.t.Warn("%s: recursive directory loop", in[i].name)
				return true
			}
		}
	}
	return len(d.ancestors[0]) > maxDepth
}

// directories compares two directories entry by entry.
func (d *differ) directories(a, b input, nested bool) int {
	if nested && !d.recursive {
		d.t.Out.WriteString("Common subdirectories: " + d.word(a) + " and " + d.word(b) + "\n")
		return 0
	}
	if d.style == 'D' {
		d.t.Fatal(2, "-D option not supported with directories")
	}
	if d.loops([2]input{a, b}) {
		return 2
	}
	for i, in := range []input{a, b} {
		d.ancestors[i] = append(d.ancestors[i], in.attr)
	}
	defer func() {
		for i := range d.ancestors {
			d.ancestors[i] = d.ancestors[i][:len(d.ancestors[i])-1]
		}
	}()
	xs, err := d.list(a, nested)
	if err != nil {
		d.t.WarnFile(a.name, err)
		return 2
	}
	ys, err := d.list(b, nested)
	if err != nil {
		d.t.WarnFile(b.name, err)
		return 2
	}
	status := 0
	for len(xs) > 0 || len(ys) > 0 {
		d.t.Check()
		c := 0
		switch {
		case len(xs) == 0:
			c = 1
		case len(ys) == 0:
			c = -1
		case d.foldNames:
			c = strings.Compare(strings.ToLower(xs[0]), strings.ToLower(ys[0]))
		default:
			c = strings.Compare(xs[0], ys[0])
		}
		x, y := "", ""
		if c <= 0 {
			x, xs = xs[0], xs[1:]
		}
		if c >= 0 {
			y, ys = ys[0], ys[1:]
		}
		status = max(status, d.entries(a, b, x, y))
	}
	return status
}

// entries compares what a name stands for in two directories; an empty name is in one of them only.
func (d *differ) entries(a, b input, x, y string) int {
	if x == "" && !(d.newFile || d.oneWay) || y == "" && !d.newFile {
		dir, name := a.name, x
		if x == "" {
			dir, name = b.name, y
		}
		d.t.Out.WriteString("Only in " + quoteName(dir) + ": " + quoteName(name) + "\n")
		return 1
	}
	var in, other input
	switch {
	case x == "":
		other = d.stat(joinName(b.name, y))
		in = input{name: joinName(a.name, y), missing: true, attr: vfs.Attr{Mode: other.attr.Mode}}
	case y == "":
		in = d.stat(joinName(a.name, x))
		other = input{name: joinName(b.name, x), missing: true, attr: vfs.Attr{Mode: in.attr.Mode}}
	default:
		in, other = d.stat(joinName(a.name, x)), d.stat(joinName(b.name, y))
	}
	return d.compareInputs(in, other, true)
}
