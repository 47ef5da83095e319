package rest

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs.json anew")

// TestDocs checks that docs.json has what package api's comments say now.
func TestDocs(t *testing.T) {
	want, err := json.MarshalIndent(comments(t, "../../api"), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("docs.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, docsJSON) {
		t.Error("docs.json is out of date: run 'go generate ./serve/rest'")
	}
}

// comments returns the comments of a package's types and of their fields, as JSON calls these.
func comments(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				ts, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				doc := ts.Doc
				if doc == nil {
					doc = g.Doc
				}
				if text := flat(doc); text != "" {
					out[ts.Name.Name] = text
				}
				st, ok := ts.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, fl := range st.Fields.List {
					text := strings.TrimSpace(flat(fl.Doc) + " " + flat(fl.Comment))
					if text == "" || fl.Tag == nil {
						continue
					}
					name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(fl.Tag.Value, "`")).Get("json"), ",")
					out[ts.Name.Name+"."+name] = text
				}
			}
		}
	}
	return out
}

// flat is a comment with paragraphs, but without other line breaks.
func flat(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	paragraphs := strings.Split(strings.TrimSpace(c.Text()), "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}
