package s3

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"agentrun.dev/serve/s3/fault"
)

// xmlDoc writes an XML document. It is by hand because listings are long and reflection slow.
type xmlDoc struct{ buf []byte }

const (
	xmlHead   = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	namespace = ` xmlns="http://s3.amazonaws.com/doc/2006-03-01/"`
)

func (x *xmlDoc) open(tag string) {
	if len(x.buf) == 0 {
		x.buf = append(x.buf, xmlHead...)
	}
	x.buf = append(x.buf, '<')
	x.buf = append(x.buf, tag...)
	x.buf = append(x.buf, '>')
}

// root opens the outermost element, in S3's namespace.
func (x *xmlDoc) root(tag string) { x.open(tag + namespace) }

func (x *xmlDoc) close(tag string) {
	x.buf = append(x.buf, "</"...)
	x.buf = append(x.buf, tag...)
	x.buf = append(x.buf, '>')
}

func (x *xmlDoc) text(tag, value string) {
	x.open(tag)
	x.escape(value)
	x.close(tag)
}

// opt writes an element unless it would be empty.
func (x *xmlDoc) opt(tag, value string) {
	if value != "" {
		x.text(tag, value)
	}
}

func (x *xmlDoc) int(tag string, n int64) {
	x.open(tag)
	x.buf = strconv.AppendInt(x.buf, n, 10)
	x.close(tag)
}

func (x *xmlDoc) bool(tag string, b bool) { x.text(tag, strconv.FormatBool(b)) }

// time writes a moment with milliseconds, as S3 does.
func (x *xmlDoc) time(tag string, t time.Time) {
	x.open(tag)
	x.buf = t.UTC().AppendFormat(x.buf, "2006-01-02T15:04:05.000Z")
	x.close(tag)
}

// quoted writes an ETag with its quotes.
func (x *xmlDoc) quoted(tag, etag string) {
	x.open(tag)
	x.buf = append(x.buf, "&quot;"...)
	x.escape(etag)
	x.buf = append(x.buf, "&quot;"...)
	x.close(tag)
}

func (x *xmlDoc) owner(tag, id string) {
	x.open(tag)
	x.text("ID", id)
	x.text("DisplayName", id)
	x.close(tag)
}

// escape writes the text of an element, never of an attribute: quotes stand as they are. Control characters, which XML 1.0 can't hold, become references as S3 writes them; clients
// that may meet such keys ask for encoding-type=url.
func (x *xmlDoc) escape(s string) {
	last := 0
	for i := 0; i < len(s); {
		ch := s[i]
		if ch >= utf8.RuneSelf {
			if r, n := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		} else if ch >= ' ' && ch != '<' && ch != '>' && ch != '&' {
			i++
			continue
		}
		x.buf = append(x.buf, s[last:i]...)
		switch ch {
		case '<':
			x.buf = append(x.buf, "&lt;"...)
		case '>':
			x.buf = append(x.buf, "&gt;"...)
		case '&':
			x.buf = append(x.buf, "&amp;"...)
		default:
			if ch >= utf8.RuneSelf {
				x.buf = append(x.buf, "\uFFFD"...)
			} else if ch == 0 {
				x.buf = append(x.buf, "\uFFFD"...) // not even a reference to it is XML
			} else {
				x.buf = append(x.buf, "&#x"...)
				x.buf = strconv.AppendUint(x.buf, uint64(ch), 16)
				x.buf = append(x.buf, ';')
			}
		}
		i++
		last = i
	}
	x.buf = append(x.buf, s[last:]...)
}

// send answers with the document.
func (c *call) sendXML(status int, x *xmlDoc) error {
	h := c.w.Header()
	h["Content-Type"] = []string{"application/xml"}
	h["Content-Length"] = []string{strconv.Itoa(len(x.buf))}
	c.started = true
	c.w.WriteHeader(status)
	_, err := c.w.Write(x.buf)
	return err
}

// Limits of XML request bodies, in bytes.
const (
	maxDelete   = 4 << 20 // DeleteObjects with 1,000 keys, CompleteMultipartUpload with 10,000 parts
	maxSettings = 64 << 10
)

// readXML decodes the request's body into v, a pointer to a structure.
func (c *call) readXML(v any, limit int64) error {
	data, err := c.readDocument(limit)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return fault.MissingRequestBody
	}
	if err := decodeXML(data, v); err != nil {
		return fault.MalformedXML
	}
	return nil
}

// decodeXML decodes exactly one element, and no document type.
func decodeXML(data []byte, v any) error {
	d := xml.NewDecoder(&byteReader{data})
	if err := d.Decode(v); err != nil {
		return err
	}
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch tok := tok.(type) {
		case xml.CharData:
			for _, ch := range tok {
				if ch != ' ' && ch != '\n' && ch != '\r' && ch != '\t' {
					return fault.MalformedXML
				}
			}
		case xml.Comment, xml.ProcInst:
		default:
			return fault.MalformedXML
		}
	}
}

type byteReader struct{ b []byte }

func (r *byteReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

func (r *byteReader) ReadByte() (byte, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	ch := r.b[0]
	r.b = r.b[1:]
	return ch, nil
}

// noContent answers 204.
func (c *call) noContent() error {
	c.started = true
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// ok answers 200 without a body.
func (c *call) ok() error {
	c.set("Content-Length", "0")
	c.started = true
	c.w.WriteHeader(http.StatusOK)
	return nil
}
