package coreutils

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

var ddSpec = tool.Spec{
	Usage: []string{"[OPERAND]...", "OPTION"},
	About: `Copy a file, converting and formatting according to the operands.

  bs=BYTES        read and write up to BYTES bytes at a time (default: 512)
  cbs=BYTES       convert BYTES bytes at a time
  conv=CONVS      convert the file as per the comma separated symbol list
  count=N         copy only N input blocks
  ibs=BYTES       read up to BYTES bytes at a time (default: 512)
  if=FILE         read from FILE instead of stdin
  iflag=FLAGS     read as per the comma separated symbol list
  obs=BYTES       write BYTES bytes at a time (default: 512)
  of=FILE         write to FILE instead of stdout
  oflag=FLAGS     write as per the comma separated symbol list
  seek=N          (or oseek=N) skip N obs-sized output blocks
  skip=N          (or iseek=N) skip N ibs-sized input blocks
  status=LEVEL    the LEVEL of information to print to stderr: none, noxfer, progress`,
	Package: tool.Coreutils,
}

// ddMaxBlock bounds a block, since one of input and one of output are held in memory.
const ddMaxBlock = 1 << 30

const (
	ddConvs  = "ascii ebcdic ibm block unblock lcase ucase sparse swab sync excl nocreat notrunc noerror fdatasync fsync"
	ddIflags = "append binary cio direct directory dsync fullblock nocache noatime noctty nofollow nolinks nonblock sync text count_bytes skip_bytes seek_bytes"
)

// dd copies blocks.
type dd struct {
	t                        *tool.T
	ifile, ofile             string
	ibs, obs, cbs            int
	count, skip, seek        int64
	countB, skipB, seekB     bool // they count bytes
	conv, iflag, oflag       map[string]bool
	status                   string
	in                       io.Reader
	out                      vfs.File
	w                        io.Writer
	table                    *[256]byte
	obuf                     []byte
	full, part, ofull, opart int64 // records
	truncated, written       int64
	col                      int // of block and unblock
	pendingBlanks            int
	swab                     int // a byte left over, -1 for none
	start                    time.Time
	sparseTail               int64 // zeros skipped at the end, which truncation makes good
}

// Dd copies and converts a file.
func Dd(t *tool.T) int {
	d := &dd{t: t, count: -1, conv: map[string]bool{}, iflag: map[string]bool{}, oflag: map[string]bool{}, swab: -1}
	_, args := t.Parse(&ddSpec)
	d.arguments(args)
	d.start = t.Now()
	if !d.open() {
		return 1
	}
	ok := d.copy()
	if d.out != nil {
		if d.conv["fsync"] || d.conv["fdatasync"] {
			d.out.Sync()
		}
		if err := d.out.Close(); err != nil {
			t.Warn("closing output file %s: %s", tool.QuoteAF(d.ofile), tool.Strerror(err))
			ok = false
		}
	}
	d.report()
	return status(!ok)
}

func (d *dd) arguments(args []string) {
	t := d.t
	bs := 0
	for _, a := range args {
		name, val, ok := strings.Cut(a, "=")
		if !ok {
			t.UsageError(1, "unrecognized operand %s", tool.Quote(a))
		}
		switch name {
		case "if":
			d.ifile = val
		case "of":
			d.ofile = val
		case "bs":
			bs = d.block(val)
		case "ibs":
			d.ibs = d.block(val)
		case "obs":
			d.obs = d.block(val)
		case "cbs":
			d.cbs = d.block(val)
		case "count":
			d.count, d.countB = d.number(val)
		case "skip", "iseek":
			d.skip, d.skipB = d.number(val)
		case "seek", "oseek":
			d.seek, d.seekB = d.number(val)
		case "conv":
			d.symbols(d.conv, val, ddConvs, "conversion")
		case "iflag":
			d.symbols(d.iflag, val, ddIflags, "input flag")
		case "oflag":
			d.symbols(d.oflag, val, ddIflags, "output flag")
		case "status":
			if val != "none" && val != "noxfer" && val != "progress" {
				t.UsageError(1, "invalid status level: %s", tool.Quote(val))
			}
			d.status = val
		default:
			t.UsageError(1, "unrecognized operand %s", tool.Quote(a))
		}
	}
	if bs > 0 {
		d.ibs, d.obs = bs, bs
	}
	if d.ibs == 0 {
		d.ibs = 512
	}
	if d.obs == 0 {
		d.obs = 512
	}
	if bs > 0 && !(d.conv["ascii"] || d.conv["ebcdic"] || d.conv["ibm"] || d.conv["block"] || d.conv["unblock"] || d.conv["lcase"] || d.conv["ucase"] || d.conv["swab"]) {
		d.obs = 0 // blocks are written as they are read
	}
	d.countB = d.countB || d.iflag["count_bytes"]
	d.skipB = d.skipB || d.iflag["skip_bytes"]
	d.seekB = d.seekB || d.oflag["seek_bytes"]
	d.exclusive("ascii", "ebcdic", "ibm")
	d.exclusive("block", "unblock")
	d.exclusive("lcase", "ucase")
	d.exclusive("excl", "nocreat")
	if d.conv["ascii"] && d.cbs > 0 {
		d.conv["unblock"] = true
	}
	if (d.conv["ebcdic"] || d.conv["ibm"]) && d.cbs > 0 {
		d.conv["block"] = true
	}
	d.table = ddTable(d.conv)
}

func (d *dd) exclusive(names ...string) {
	n := 0
	for _, name := range names {
		if d.conv[name] {
			n++
		}
	}
	if n > 1 {
		d.t.Fatal(1, "cannot combine any two of {%s}", strings.Join(names, ","))
	}
}

func (d *dd) symbols(into map[string]bool, list, known, what string) {
	for _, s := range strings.Split(list, ",") {
		if s == "" || !strings.Contains(" "+known+" ", " "+s+" ") {
			d.t.UsageError(1, "invalid %s: %s", what, tool.Quote(s))
		}
		into[s] = true
	}
}

// number reads N with suffixes and factors such as 2x80x1k; a B at the end makes it count bytes.
func (d *dd) number(s string) (int64, bool) {
	total := uint64(1)
	bytes := false
	for i, part := range strings.Split(s, "x") {
		bytes = strings.HasSuffix(part, "B")
		num := part
		if bytes && len(part) > 1 && part[len(part)-2] >= '0' && part[len(part)-2] <= '9' {
			num = part[:len(part)-1]
		}
		n, err := tool.ParseSize(num, "bcEGkKMPTwYZ0")
		if err == nil && (num == "" || num[0] < '0' || num[0] > '9') {
			err = tool.ErrNotNumber
		}
		if err == nil && n > 0 && total > math.MaxInt64/n {
			err = tool.ErrRange
		}
		switch {
		case errors.Is(err, tool.ErrRange):
			d.t.Fatal(1, "invalid number: %s: %s", tool.Quote(s), tool.Strerror(err))
		case err != nil:
			d.t.Fatal(1, "invalid number: %s", tool.Quote(s))
		}
		if n == 0 && i == 0 && strings.HasPrefix(s, "0x") {
			d.t.Warn("warning: %s is a zero multiplier; use %s if that is intended", tool.Quote("0x"), tool.Quote("00x"))
		}
		total *= n
	}
	return int64(total), bytes
}

func (d *dd) block(s string) int {
	n, _ := d.number(s)
	if n == 0 {
		d.t.Fatal(1, "invalid number: %s", tool.Quote(s))
	}
	if n > ddMaxBlock {
		d.t.Fatal(1, "memory exhausted by input buffer of size %d bytes", n)
	}
	return int(n)
}

func (d *dd) open() bool {
	t := d.t
	d.in = t.Stdin()
	var in vfs.File
	if d.ifile != "" {
		f, err := t.Process.Open(d.ifile, syscall.O_RDONLY, 0)
		if err == nil && d.iflag["directory"] {
			if a, aerr := f.Attr(); aerr == nil && !a.Mode.IsDir() {
				err = syscall.ENOTDIR
			}
		}
		if err != nil {
			t.Warn("failed to open %s: %s", tool.QuoteAF(d.ifile), tool.Strerror(err))
			return false
		}
		in, d.in = f, f
	} else {
		d.ifile = "standard input"
		in, _ = t.File(0)
	}
	offset := d.seek
	if !d.seekB {
		offset = satMul(d.seek, int64(max(d.obs, 1)))
		if d.obs == 0 {
			offset = satMul(d.seek, int64(d.ibs))
		}
	}
	if !d.openOut(offset) {
		return false
	}
	return d.skipInput(in)
}

func satMul(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

func (d *dd) openOut(offset int64) bool {
	t := d.t
	if d.ofile == "" {
		d.ofile = "standard output"
		d.w = t.Stdout()
		f, _ := t.File(1)
		if offset > 0 && f != nil {
			if _, err := f.Seek(offset, io.SeekCurrent); err != nil {
				t.Warn("%s: cannot seek: %s", tool.QuoteAF(d.ofile), tool.Strerror(err))
				return false
			}
		}
		return true
	}
	flags := syscall.O_WRONLY | syscall.O_CREAT
	if d.conv["nocreat"] {
		flags &^= syscall.O_CREAT
	}
	if d.conv["excl"] {
		flags |= syscall.O_EXCL
	}
	if d.oflag["append"] {
		flags |= syscall.O_APPEND
	}
	if offset == 0 && !d.conv["notrunc"] {
		flags |= syscall.O_TRUNC
	}
	f, err := t.Process.Open(d.ofile, flags, 0o666)
	if err != nil {
		t.Warn("failed to open %s: %s", tool.QuoteAF(d.ofile), tool.Strerror(err))
		return false
	}
	d.out, d.w = f, f
	if offset == 0 {
		return true
	}
	a, err := f.Attr()
	if err == nil && a.Mode.IsRegular() && !d.conv["notrunc"] {
		if err := f.SetAttr(vfs.SetAttr{Size: &offset}); err != nil {
			t.Warn("failed to truncate to %d bytes in output file %s: %s", offset, tool.QuoteAF(d.ofile), tool.Strerror(err))
			return false
		}
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil && !errors.Is(err, syscall.ESPIPE) {
		t.Warn("%s: cannot seek: %s", tool.QuoteAF(d.ofile), tool.Strerror(err))
		return false
	}
	return true
}

// skipInput passes over the beginning of the input, by seeking or reading.
func (d *dd) skipInput(in vfs.File) bool {
	n := d.skip
	if n == 0 {
		return true
	}
	if !d.skipB {
		n = satMul(n, int64(d.ibs))
	}
	if in != nil {
		a, err := in.Attr()
		if err == nil && a.Mode.IsRegular() {
			at, err := in.Seek(0, io.SeekCurrent)
			if err == nil && at+n > a.Size {
				d.t.Warn("%s: cannot skip to specified offset", tool.QuoteF(d.ifile))
			}
			if err == nil {
				if _, err = in.Seek(n, io.SeekCurrent); err == nil {
					return true
				}
			}
		}
	}
	if m, err := io.Copy(io.Discard, struct{ io.Reader }{io.LimitReader(d.in, n)}); err == nil && m < n {
		d.t.Warn("%s: cannot skip to specified offset", tool.QuoteF(d.ifile))
	}
	return true
}

// report tells how much was copied.
func (d *dd) report() {
	if d.status == "none" {
		return
	}
	t := d.t
	fmt.Fprintf(t.Stderr(), "%d+%d records in\n%d+%d records out\n", d.full, d.part, d.ofull, d.opart)
	if d.truncated == 1 {
		fmt.Fprintf(t.Stderr(), "1 truncated record\n")
	} else if d.truncated > 1 {
		fmt.Fprintf(t.Stderr(), "%d truncated records\n", d.truncated)
	}
	if d.status == "noxfer" {
		return
	}
	n := uint64(d.written)
	text := fmt.Sprintf("%d bytes", n)
	if n == 1 {
		text = "1 byte"
	}
	si, iec := humanBlock(float64(n), 1000), humanBlock(float64(n), 1024)
	if n >= 1000 {
		text += " (" + si
		if n >= 1024 {
			text += ", " + iec
		}
		text += ")"
	}
	sec := t.Now().Sub(d.start).Seconds()
	rate := "Infinity B"
	if sec > 0 {
		rate = humanBlock(float64(n)/sec, 1000)
	}
	fmt.Fprintf(t.Stderr(), "%s copied, %g s, %s/s\n", text, roundTo6(sec), rate)
}

func roundTo6(f float64) float64 {
	if f <= 0 {
		return 0
	}
	p := math.Pow(10, math.Ceil(math.Log10(f)))
	return math.Round(f/p*1e6) / 1e6 * p
}

// humanBlock words a size as dd does: "1.5 kB", "12 MiB".
func humanBlock(n, base float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	if base == 1024 {
		units = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	}
	i := 0
	for n >= base && i < len(units)-1 {
		n /= base
		i++
	}
	if n < 10 && i > 0 {
		return fmt.Sprintf("%.1f %s", n, units[i])
	}
	return fmt.Sprintf("%.0f %s", n, units[i])
}
