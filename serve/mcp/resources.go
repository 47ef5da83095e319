package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// scheme is that of files' URIs: sandbox://ID/absolute/path.
const scheme = "sandbox"

// listedDepth is how many levels of the conversation's sandbox are listed as resources. Deeper ones are read by their template all the same.
const listedDepth = 3

// directoryType is the media type of directories, whose text is a list.
const directoryType = "inode/directory"

// fileURI names a file of a sandbox.
func fileURI(id, file string) string {
	return (&url.URL{Scheme: scheme, Host: id, Path: path.Join("/", file)}).String()
}

// parseURI is the inverse. What isn't escaped as it should be, such as a space, is fine.
func parseURI(uri string) (id, file string, err error) {
	rest, ok := strings.CutPrefix(uri, scheme+"://")
	id, file, _ = strings.Cut(rest, "/")
	if !ok || id == "" || len(uri) > 8192 {
		return "", "", errs.Msg(errs.Invalid, "resource", clipTo(uri, 200), "want sandbox://ID/absolute/path")
	}
	if decoded, err := url.PathUnescape(file); err == nil {
		file = decoded
	}
	if !utf8.ValidString(file) || strings.IndexByte(file, 0) >= 0 {
		return "", "", errs.Msg(errs.Invalid, "resource", clipTo(uri, 200), "the path isn't UTF-8, or has a NUL byte")
	}
	return id, path.Clean("/" + file), nil
}

// canonical is a URI as the template matches it; what is none of ours stays.
func canonical(uri string) string {
	id, file, err := parseURI(uri)
	if err != nil {
		return uri
	}
	return fileURI(id, file)
}

func addResources(s *mcp.Server, v *conversation) {
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "sandbox-file", Title: "File of a sandbox", URITemplate: scheme + "://{id}/{+path}",
		Description: "A file of a sandbox, by the sandbox's id or name and the file's absolute path; of a directory, a list. Can be subscribed to."}, v.readResource)
}

// failed makes an error of the protocol: resources have no other.
func failed(uri string, err error) error {
	switch errs.KindOf(err) {
	case errs.NotFound:
		return mcp.ResourceNotFoundError(uri)
	case errs.Invalid, errs.TooLarge:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	case errs.Denied:
		text := fmt.Sprintf("denied: %v", err)
		var e *client.Error
		if errors.As(err, &e) && e.Problem.Rule != "" {
			text += "; the rule that denied it: " + e.Problem.Rule
		}
		return &jsonrpc.Error{Code: codeDenied, Message: text}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// codeDenied is of the range that JSON-RPC leaves to servers.
const codeDenied = -32003

func (v *conversation) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	c, err := v.contents(ctx, uri)
	if err != nil {
		return nil, failed(uri, err)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

// contents are what a URI names: text, or bytes.
func (v *conversation) contents(ctx context.Context, uri string) (*mcp.ResourceContents, error) {
	id, file, err := parseURI(uri)
	if err != nil {
		return nil, err
	}
	info, err := v.c.StatFile(ctx, id, file)
	if err != nil {
		return nil, err
	}
	if info.Type == "directory" {
		return v.directory(ctx, uri, id, file)
	}
	data, err := whole(ctx, v.c, id, info)
	if err != nil {
		return nil, err
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: mediaType(file, data)}
	if binary(data) {
		c.Blob = data
	} else {
		c.Text = string(data)
	}
	return c, nil
}

// directory lists one, a name in a line, directories with a slash.
func (v *conversation) directory(ctx context.Context, uri, id, file string) (*mcp.ResourceContents, error) {
	var b bytes.Buffer
	for p := (client.Page{Limit: api.MaxPage}); ; {
		list, err := v.c.ListFiles(ctx, id, file, 1, p)
		if err != nil {
			return nil, err
		}
		for _, f := range list.Files {
			b.WriteString(f.Name)
			if f.Type == "directory" {
				b.WriteByte('/')
			}
			b.WriteByte('\n')
		}
		if p.Cursor = list.Next; list.Next == "" {
			return &mcp.ResourceContents{URI: uri, MIMEType: directoryType, Text: b.String()}, nil
		}
		if b.Len() > maxFile {
			return nil, errs.Msg(errs.TooLarge, "list directory", file, "it has too many files").WithHint("list_files lists it in parts")
		}
	}
}

// mediaType is by the name, where that tells, else by the first bytes.
func mediaType(file string, data []byte) string {
	if t := mime.TypeByExtension(path.Ext(file)); t != "" {
		return t
	}
	if len(data) > 0 && !binary(data) {
		return "text/plain; charset=utf-8"
	}
	return http.DetectContentType(data)
}

// listResources answers with the files of the conversation's sandbox, if there is one. next answers as if there were none.
func (v *conversation) listResources(ctx context.Context, p *mcp.ListResourcesParams, next func() (mcp.Result, error)) (mcp.Result, error) {
	cursor := ""
	if p != nil {
		cursor, p.Cursor = p.Cursor, ""
	}
	res, err := next()
	out, ok := res.(*mcp.ListResourcesResult)
	id := v.here()
	if err != nil || !ok || id == "" {
		return res, err
	}
	list, err := v.c.ListFiles(ctx, id, ".", listedDepth, client.Page{Limit: api.DefaultPage, Cursor: cursor})
	if errs.Is(v.gone(ctx, id, err), errs.NotFound) {
		return out, nil
	}
	if err != nil {
		return nil, failed("", err)
	}
	out.NextCursor = list.Next
	for _, f := range list.Files {
		r := &mcp.Resource{URI: fileURI(id, f.Path), Name: f.Name, Title: f.Path, MIMEType: mime.TypeByExtension(path.Ext(f.Name)), Size: f.Size}
		switch f.Type {
		case "directory":
			r.MIMEType, r.Size = directoryType, 0
		case "other":
			continue
		}
		out.Resources = append(out.Resources, r)
	}
	return out, nil
}

// complete offers ids of sandboxes, and files, for the parameters of the template.
func (v *conversation) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	out := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	p := req.Params
	if p.Ref == nil || p.Ref.Type != "ref/resource" {
		return out, nil
	}
	d := &out.Completion
	offer := func(s string) {
		if strings.HasPrefix(s, p.Argument.Value) {
			if d.Total++; len(d.Values) < 100 {
				d.Values = append(d.Values, s)
			}
		}
	}
	switch p.Argument.Name {
	case "id":
		list, err := v.c.Sandboxes(ctx, client.SandboxFilter{Page: client.Page{Limit: api.MaxPage}})
		if err != nil {
			return out, nil // whoever completes wants no errors
		}
		for _, b := range list.Sandboxes {
			offer(b.ID)
			if b.Name != "" {
				offer(b.Name)
			}
		}
		d.HasMore = list.Next != ""
	case "path":
		id := v.here()
		if p.Context != nil && p.Context.Arguments["id"] != "" {
			id = p.Context.Arguments["id"]
		}
		if id == "" {
			return out, nil
		}
		dir := p.Argument.Value[:strings.LastIndexByte(p.Argument.Value, '/')+1]
		list, err := v.c.ListFiles(ctx, id, "/"+dir, 1, client.Page{Limit: api.MaxPage})
		if err != nil {
			return out, nil
		}
		for _, f := range list.Files {
			name := dir + f.Name
			if f.Type == "directory" {
				name += "/"
			}
			offer(name)
		}
		d.HasMore = list.Next != ""
	}
	d.HasMore = d.HasMore || d.Total > len(d.Values)
	return out, nil
}
