package web

import (
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"strings"
)

// formPart is one -F.
type formPart struct {
	name, value, file, fileName, contentType string
	headers                                  []string
	inline                                   bool // "<": the file's content as a plain value
}

// setData applies options that bring what is sent.
func (p *curlParser) setData(name, arg string) bool {
	c := p.config
	switch name {
	case "data", "data-ascii":
		if file, ok := strings.CutPrefix(arg, "@"); ok {
			arg = strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(p.readData(file))
		}
		c.addData(arg, "&")
	case "data-binary":
		if file, ok := strings.CutPrefix(arg, "@"); ok {
			arg = p.readData(file)
		}
		c.addData(arg, "&")
	case "data-raw":
		c.addData(arg, "&")
	case "data-urlencode":
		c.addData(p.urlEncoded(arg), "&")
	case "url-query":
		if rest, ok := strings.CutPrefix(arg, "+"); ok {
			c.urlQuery = append(c.urlQuery, rest)
		} else {
			c.urlQuery = append(c.urlQuery, p.urlEncoded(arg))
		}
	case "json":
		if file, ok := strings.CutPrefix(arg, "@"); ok {
			arg = p.readData(file)
		}
		c.addData(arg, "")
		c.json = true
	case "form", "form-string":
		p.form(arg, name == "form-string")
	default:
		return false
	}
	return true
}

func (c *curlConfig) addData(s, sep string) {
	if c.hasData {
		c.data = append(c.data, sep...)
	}
	c.data, c.hasData = append(c.data, s...), true
}

func (p *curlParser) readData(file string) string {
	b, err := p.c.t.ReadFile(file, maxConfig)
	if err != nil {
		p.c.warn("Couldn't read data from file \"%s\", this makes an empty POST.", file)
		return ""
	}
	return string(b)
}

// urlEncoded is --data-urlencode's argument: content, =content, name=content, @file or name@file.
func (p *curlParser) urlEncoded(arg string) string {
	i := strings.IndexAny(arg, "=@")
	if i < 0 {
		return escapeData(arg)
	}
	name, content := arg[:i], arg[i+1:]
	if arg[i] == '@' {
		content = p.readData(content)
	}
	if name != "" {
		return name + "=" + escapeData(content)
	}
	return escapeData(content)
}

// escapeData escapes all but unreserved characters; a blank becomes a plus sign.
func escapeData(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else if c == ' ' {
			b.WriteByte('+')
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// form reads a -F argument.
func (p *curlParser) form(arg string, literal bool) {
	name, value, ok := strings.Cut(arg, "=")
	if !ok {
		p.c.warn("Illegally formatted input field!")
		p.c.usage("option --form: is badly used here")
	}
	part := formPart{name: name, value: value}
	if literal || value == "" || value[0] != '@' && value[0] != '<' {
		if !literal {
			part.value = part.parameters(value)
		}
		p.config.form = append(p.config.form, part)
		return
	}
	part.inline = value[0] == '<'
	part.value = ""
	files := part.parameters(value[1:])
	if part.inline {
		part.file = files
		p.config.form = append(p.config.form, part)
		return
	}
	for f := range strings.SplitSeq(files, ",") {
		one := part
		one.file = f
		p.config.form = append(p.config.form, one)
	}
}

// parameters takes ";type=…", ";filename=…" and ";headers=…" off a value.
func (part *formPart) parameters(s string) string {
	value, rest := formWord(s)
	for strings.HasPrefix(rest, ";") {
		rest = strings.TrimLeft(rest[1:], " ")
		key, tail, ok := strings.Cut(rest, "=")
		if !ok {
			break
		}
		var v string
		v, rest = formWord(tail)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "type":
			for strings.HasPrefix(rest, ";") && !strings.HasPrefix(rest, ";filename=") && !strings.HasPrefix(rest, ";headers=") {
				more, next := formWord(rest[1:])
				v, rest = v+";"+more, next
			}
			part.contentType = v
		case "filename":
			part.fileName = v
		case "headers":
			part.headers = append(part.headers, v)
		}
	}
	return value
}

// formWord reads up to a semicolon; a word in quotes may hold them.
func formWord(s string) (word, rest string) {
	if !strings.HasPrefix(s, `"`) {
		if i := strings.IndexByte(s, ';'); i >= 0 {
			return s[:i], s[i:]
		}
		return s, ""
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\') {
				i++
			}
		case '"':
			return b.String(), s[i+1:]
		}
		b.WriteByte(s[i])
	}
	return s, ""
}

// formTypes are what -F guesses from a file's name.
var formTypes = map[string]string{".gif": "image/gif", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml",
	".txt": "text/plain", ".htm": "text/html", ".html": "text/html", ".pdf": "application/pdf", ".xml": "application/xml"}

var formQuote = strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A")

// multipart makes the body of a form.
func (x *transfer) multipart() (body io.Reader, size int64, contentType string, err error) {
	var random [8]byte
	if _, err := io.ReadFull(x.c.t.Rand(), random[:]); err != nil {
		return nil, 0, "", err
	}
	boundary := "------------------------" + hex.EncodeToString(random[:])
	var parts []io.Reader
	add := func(s string) {
		parts = append(parts, strings.NewReader(s))
		size += int64(len(s))
	}
	for i := range x.config.form {
		part := &x.config.form[i]
		add("--" + boundary + "\r\n" + part.head())
		if part.file == "" {
			add(part.value + "\r\n")
			continue
		}
		in, n, err := x.formFile(part.file)
		if err != nil {
			return nil, 0, "", err
		}
		parts = append(parts, in)
		size += n
		add("\r\n")
	}
	add("--" + boundary + "--\r\n")
	return io.MultiReader(parts...), size, "multipart/form-data; boundary=" + boundary, nil
}

func (x *transfer) formFile(name string) (io.Reader, int64, error) {
	in, err := x.c.t.Open(name)
	if err != nil {
		return nil, 0, &curlError{26, "Failed to open/read local data from file/application"}
	}
	x.close = append(x.close, in)
	if a, err := in.Attr(); err == nil && a.Mode.IsRegular() && name != "-" {
		return in, a.Size, nil
	}
	b, err := io.ReadAll(io.LimitReader(in, maxConfig))
	if err != nil {
		return nil, 0, &curlError{26, "Failed to open/read local data from file/application"}
	}
	return strings.NewReader(string(b)), int64(len(b)), nil
}

func (part *formPart) head() string {
	head := fmt.Sprintf("Content-Disposition: form-data; name=\"%s\"", formQuote.Replace(part.name))
	fileName, contentType := part.fileName, part.contentType
	if part.file != "" && !part.inline {
		if fileName == "" {
			fileName = path.Base(part.file)
		}
		if contentType == "" {
			if contentType = formTypes[strings.ToLower(path.Ext(fileName))]; contentType == "" {
				contentType = "application/octet-stream"
			}
		}
	}
	if fileName != "" {
		head += fmt.Sprintf("; filename=\"%s\"", formQuote.Replace(fileName))
	}
	head += "\r\n"
	if contentType != "" {
		head += "Content-Type: " + contentType + "\r\n"
	}
	for _, h := range part.headers {
		head += h + "\r\n"
	}
	return head + "\r\n"
}
