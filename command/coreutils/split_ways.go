package coreutils

import (
	"errors"
	"io"

	"agentrun.dev/command/tool"
)

// splitBuffer is how much is read at once.
const splitBuffer = 64 << 10

func (s *splitter) byLines(in io.Reader) error {
	l := tool.NewLines(in, s.sep)
	for n := uint64(0); ; n++ {
		line, ok := l.Next()
		if !ok {
			return l.Err
		}
		if n%s.n == 0 {
			s.open()
		}
		s.write(s.cur, line)
		if l.Terminated {
			s.write(s.cur, []byte{s.sep})
		}
	}
}

// bySize writes pieces of a size; with chunks, exactly so many, of which the last takes the rest.
func (s *splitter) bySize(in io.Reader, size, chunks uint64) error {
	buf := make([]byte, splitBuffer)
	left, opened := uint64(0), uint64(0)
	for {
		n, err := in.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			if left == 0 {
				if chunks > 0 && opened == chunks {
					break
				}
				s.open()
				opened++
				left = size
			}
			m := int(min(uint64(len(b)), left))
			s.write(s.cur, b[:m])
			b, left = b[m:], left-uint64(m)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// byLineBytes puts whole lines into pieces while they fit; a line that is longer than a piece is cut.
func (s *splitter) byLineBytes(in io.Reader) error {
	l := tool.NewLines(in, s.sep)
	left := uint64(0)
	for {
		line, ok := l.Next()
		if !ok {
			return l.Err
		}
		b := append([]byte(nil), line...)
		if l.Terminated {
			b = append(b, s.sep)
		}
		if uint64(len(b)) > left && uint64(len(b)) <= s.n || left == 0 {
			s.open()
			left = s.n
		} else if uint64(len(b)) > s.n && left < s.n {
			s.open()
			left = s.n
		}
		for len(b) > 0 {
			if left == 0 {
				s.open()
				left = s.n
			}
			m := int(min(uint64(len(b)), left))
			s.write(s.cur, b[:m])
			b, left = b[m:], left-uint64(m)
		}
	}
}

// chunkStart returns where chunk i of n begins, from 0: the last takes the remainder of the division.
func chunkStart(size, n, i uint64) uint64 {
	if i == n {
		return size
	}
	return min(size, max(1, size/n)*i)
}

func (s *splitter) byteChunks(in io.Reader, size uint64) error {
	if s.k > 0 {
		from, to := chunkStart(size, s.n, s.k-1), chunkStart(size, s.n, s.k)
		if _, err := io.CopyN(io.Discard, struct{ io.Reader }{in}, int64(from)); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return s.t.Copy(io.LimitReader(in, int64(to-from)))
	}
	for i := range s.n {
		length := chunkStart(size, s.n, i+1) - chunkStart(size, s.n, i)
		if length == 0 && s.elide {
			return nil
		}
		s.open()
		if _, err := io.CopyN(writerFunc(func(b []byte) { s.write(s.cur, b) }), in, int64(length)); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// lineChunks gives each line to the chunk in which it begins.
func (s *splitter) lineChunks(in io.Reader, size uint64) error {
	l := tool.NewLines(in, s.sep)
	at, chunk := uint64(0), uint64(0) // chunk: how many were opened
	advance := func(until uint64) {
		for chunk < until {
			chunk++
			if s.k > 0 || s.elide && chunk < until {
				continue
			}
			s.open()
		}
	}
	for {
		line, ok := l.Next()
		if !ok {
			break
		}
		end := chunk
		if end == 0 {
			end = 1
		}
		for end < s.n && at >= chunkStart(size, s.n, end) {
			end++
		}
		advance(end)
		if s.k == 0 || s.k == chunk {
			s.write(s.cur, line)
			if l.Terminated {
				s.write(s.cur, []byte{s.sep})
			}
		}
		at += uint64(len(line)) + 1
	}
	if !s.elide {
		advance(s.n)
	}
	return l.Err
}

// roundRobin deals lines out. All pieces are open at once.
func (s *splitter) roundRobin(in io.Reader) error {
	l := tool.NewLines(in, s.sep)
	var pieces []*piece
	if s.k == 0 && !s.elide {
		for range s.n {
			pieces = append(pieces, s.create(s.next()))
		}
	}
	for n := uint64(0); ; n = (n + 1) % s.n {
		line, ok := l.Next()
		if !ok {
			break
		}
		var p *piece
		if s.k == 0 {
			if n >= uint64(len(pieces)) {
				pieces = append(pieces, s.create(s.next()))
			}
			p = pieces[n]
		} else if n != s.k-1 {
			continue
		}
		s.write(p, line)
		if l.Terminated {
			s.write(p, []byte{s.sep})
		}
		if s.unbuffered && p != nil {
			p.Flush()
		} else if s.unbuffered {
			s.t.Out.Flush()
		}
	}
	for _, p := range pieces {
		s.closePiece(p)
	}
	return l.Err
}
