package initramfs

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"agentrun.dev/errs"
)

// Module is a kernel module, unpacked.
type Module struct {
	Name string // with underscores, as the kernel has it
	Data []byte
}

// maxModule bounds a module's size, unpacked; the largest of Debian's that a VM needs has 2 MB.
const maxModule = 64 << 20

// Modules returns modules by their names and all that they depend on, in an order in which they can be loaded. dir is searched through,
// as a kernel's package has it (/lib/modules/VERSION); no index is needed. Modules packed with gzip, xz or zstd are unpacked.
// errs.NotFound names the one that isn't there.
func Modules(dir string, names ...string) ([]Module, error) {
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if stem, _, ok := strings.Cut(d.Name(), ".ko"); ok {
			files[normal(stem)] = p
		}
		return nil
	})
	if err != nil {
		return nil, errs.New(errs.NotFound, "kernel modules", dir, err)
	}
	r := &resolver{files: files, state: make(map[string]bool)}
	for _, name := range names {
		if err := r.add(normal(name), ""); err != nil {
			return nil, err
		}
	}
	return r.found, nil
}

// normal is a module's name as the kernel has it: its file may be called virtio-rng.ko.
func normal(name string) string { return strings.ReplaceAll(name, "-", "_") }

type resolver struct {
	files map[string]string
	state map[string]bool // false while what it depends on is looked for
	found []Module
}

func (r *resolver) add(name, by string) error {
	done, met := r.state[name]
	switch {
	case met && !done:
		return errs.Msg(errs.Corrupt, "kernel module", name, "it depends on itself")
	case met:
		return nil
	}
	file, ok := r.files[name]
	if !ok {
		err := errs.Msg(errs.NotFound, "kernel module", name, "there is no such file")
		if by != "" {
			err = errs.Msg(errs.NotFound, "kernel module", name, by+" needs it, but there is no such file")
		}
		return err
	}
	r.state[name] = false
	data, err := unpack(file)
	if err != nil {
		return errs.New(errs.Corrupt, "kernel module", name, err)
	}
	depends, err := dependencies(data)
	if err != nil {
		return errs.New(errs.Corrupt, "kernel module", name, err)
	}
	for _, d := range depends {
		if err := r.add(d, name); err != nil {
			return err
		}
	}
	r.state[name] = true
	r.found = append(r.found, Module{Name: name, Data: data})
	return nil
}

func unpack(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	switch filepath.Ext(file) {
	case ".gz":
		r, err = gzip.NewReader(f)
	case ".xz":
		r, err = xz.NewReader(f)
	case ".zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(f); err == nil {
			defer z.Close()
			r = z
		}
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if err == nil && len(data) > maxModule {
		err = fmt.Errorf("more than %d MiB", maxModule>>20)
	}
	return data, err
}

// dependencies reads the field "depends" of a module's section .modinfo.
func dependencies(data []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	section := f.Section(".modinfo")
	if section == nil || section.Size > uint64(len(data)) {
		return nil, fmt.Errorf("no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	var names []string
	for field := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok {
			for name := range strings.SplitSeq(list, ",") {
				if name != "" {
					names = append(names, normal(name))
				}
			}
		}
	}
	sort.Strings(names)
	return names, nil
}

// AddModules puts modules into an archive: /modules/ORDER-NAME.ko, in the order in which they are given, which is how
// cmd/agentrun-guest loads them.
func (w *Writer) AddModules(modules []Module) error {
	for i, m := range modules {
		if err := w.File(fmt.Sprintf("modules/%03d-%s.ko", i, m.Name), 0o644, int64(len(m.Data)), bytes.NewReader(m.Data)); err != nil {
			return err
		}
	}
	return nil
}
