package coreutils

import (
	"bytes"
	"errors"
	"io"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// copy moves all blocks from input to output.
func (d *dd) copy() bool {
	buf := make([]byte, d.ibs)
	ok := true
	var bytesRead int64
	for blocks := int64(0); ; blocks++ {
		d.t.Check()
		want := len(buf)
		if d.count >= 0 {
			if d.countB {
				left := d.count - bytesRead
				if left <= 0 {
					break
				}
				want = int(min(int64(want), left))
			} else if blocks >= d.count {
				break
			}
		}
		n, err := d.read(buf[:want])
		bytesRead += int64(n)
		if n == 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			d.t.Warn("error reading %s: %s", tool.QuoteAF(d.ifile), tool.Strerror(err))
			ok = false
			if !d.conv["noerror"] {
				break
			}
			if n == 0 && !d.conv["sync"] {
				break // an error that stays would go on for ever
			}
		}
		if n < len(buf) {
			d.part++
		} else {
			d.full++
		}
		if n < len(buf) && d.conv["sync"] {
			pad := byte(0)
			if d.conv["block"] || d.conv["unblock"] {
				pad = ' '
			}
			for i := n; i < len(buf); i++ {
				buf[i] = pad
			}
			n = len(buf)
		}
		if !d.convert(buf[:n]) {
			return false
		}
		if err != nil && !errors.Is(err, io.EOF) {
			break
		}
	}
	return d.finish() && ok
}

// read reads a block: with fullblock as much as there is, else what one read gives.
func (d *dd) read(b []byte) (int, error) {
	if d.iflag["fullblock"] {
		n, err := io.ReadFull(d.in, b)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		return n, err
	}
	n, err := d.in.Read(b)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// convert applies the conversions to a block and passes it on.
func (d *dd) convert(b []byte) bool {
	if d.table != nil {
		for i, c := range b {
			b[i] = d.table[c]
		}
	}
	if d.conv["swab"] {
		b = d.swap(b)
	}
	switch {
	case d.conv["block"] && d.cbs > 0:
		return d.toBlocks(b)
	case d.conv["unblock"] && d.cbs > 0:
		return d.fromBlocks(b)
	}
	if d.obs == 0 {
		return d.write(b, len(b) == d.ibs)
	}
	return d.put(b)
}

// swap exchanges each pair of bytes; an odd one waits for the next block.
func (d *dd) swap(b []byte) []byte {
	out := make([]byte, 0, len(b)+1)
	for _, c := range b {
		if d.swab < 0 {
			d.swab = int(c)
			continue
		}
		out = append(out, c, byte(d.swab))
		d.swab = -1
	}
	return out
}

// toBlocks pads lines with blanks to records of cbs bytes.
func (d *dd) toBlocks(b []byte) bool {
	newline, blank := byte('\n'), byte(' ')
	if d.conv["ebcdic"] || d.conv["ibm"] {
		newline, blank = d.table['\n'], d.table[' ']
	}
	for _, c := range b {
		if c == newline {
			if d.col < d.cbs && !d.put(bytes.Repeat([]byte{blank}, d.cbs-d.col)) {
				return false
			}
			d.col = 0
			continue
		}
		if d.col == d.cbs {
			d.truncated++
		} else if d.col < d.cbs && !d.put([]byte{c}) {
			return false
		}
		d.col++
	}
	return true
}

// fromBlocks turns records of cbs bytes into lines without the blanks at their ends.
func (d *dd) fromBlocks(b []byte) bool {
	for i := 0; i < len(b); i++ {
		c := b[i]
		if d.col == d.cbs {
			d.col, d.pendingBlanks = 0, 0
			if !d.put([]byte{'\n'}) {
				return false
			}
		}
		d.col++
		if c == ' ' {
			d.pendingBlanks++
			continue
		}
		if d.pendingBlanks > 0 && !d.put(bytes.Repeat([]byte{' '}, d.pendingBlanks)) {
			return false
		}
		d.pendingBlanks = 0
		if !d.put([]byte{c}) {
			return false
		}
	}
	return true
}

// put collects output blocks.
func (d *dd) put(b []byte) bool {
	if d.obs == 0 {
		return d.write(b, len(b) == d.ibs)
	}
	for len(b) > 0 {
		if len(d.obuf) == 0 && len(b) >= d.obs {
			if !d.write(b[:d.obs], true) {
				return false
			}
			b = b[d.obs:]
			continue
		}
		n := min(d.obs-len(d.obuf), len(b))
		d.obuf = append(d.obuf, b[:n]...)
		b = b[n:]
		if len(d.obuf) == d.obs {
			if !d.write(d.obuf, true) {
				return false
			}
			d.obuf = d.obuf[:0]
		}
	}
	return true
}

func (d *dd) write(b []byte, full bool) bool {
	if len(b) == 0 {
		return true
	}
	if d.conv["sparse"] && d.out != nil && len(bytes.Trim(b, "\x00")) == 0 {
		if _, err := d.out.Seek(int64(len(b)), io.SeekCurrent); err == nil {
			d.sparseTail += int64(len(b))
			d.count1(b, full)
			return true
		}
	}
	n, err := d.w.Write(b)
	d.sparseTail = 0
	if err != nil {
		d.written += int64(n)
		if d.out == nil {
			d.report()
			d.t.WriteFailed(err)
		}
		d.t.Warn("writing to %s: %s", tool.QuoteAF(d.ofile), tool.Strerror(err))
		return false
	}
	d.count1(b, full)
	return true
}

func (d *dd) count1(b []byte, full bool) {
	d.written += int64(len(b))
	if full {
		d.ofull++
	} else {
		d.opart++
	}
}

// finish writes what is left over.
func (d *dd) finish() bool {
	if d.swab >= 0 {
		c := byte(d.swab)
		d.swab = -1
		if !d.put([]byte{c}) {
			return false
		}
	}
	if d.conv["block"] && d.cbs > 0 && d.col > 0 && d.col < d.cbs {
		blank := byte(' ')
		if d.table != nil {
			blank = d.table[' ']
		}
		if !d.put(bytes.Repeat([]byte{blank}, d.cbs-d.col)) {
			return false
		}
	}
	if d.conv["unblock"] && d.cbs > 0 && d.col > 0 && !d.put([]byte{'\n'}) {
		return false
	}
	if len(d.obuf) > 0 && !d.write(d.obuf, false) {
		return false
	}
	if d.sparseTail > 0 {
		if at, err := d.out.Seek(0, io.SeekCurrent); err == nil {
			d.out.SetAttr(vfs.SetAttr{Size: &at})
		}
	}
	return true
}

// ddTable composes the conversions of single bytes; nil if there are none.
func ddTable(conv map[string]bool) *[256]byte {
	var t [256]byte
	for i := range t {
		t[i] = byte(i)
	}
	used := false
	apply := func(f func(byte) byte) {
		used = true
		for i := range t {
			t[i] = f(t[i])
		}
	}
	if conv["ascii"] {
		apply(func(c byte) byte { return ebcdicToASCII[c] })
	}
	if conv["ucase"] {
		apply(func(c byte) byte {
			if c >= 'a' && c <= 'z' {
				c -= 32
			}
			return c
		})
	}
	if conv["lcase"] {
		apply(func(c byte) byte {
			if c >= 'A' && c <= 'Z' {
				c += 32
			}
			return c
		})
	}
	if conv["ebcdic"] || conv["ibm"] {
		table := asciiToEBCDIC
		if conv["ibm"] {
			table = asciiToIBM
		}
		apply(func(c byte) byte { return table[c] })
	}
	if !used {
		return nil
	}
	return &t
}
