package shell_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"testing"

	"agentrun.dev/shell"
)

// Every frame is one that a saved shell may have.
func TestFrameKinds(t *testing.T) {
	known := map[string]bool{}
	for _, name := range shell.FrameKinds() {
		known[name] = true
	}
	pkgs, err := parser.ParseDir(token.NewFileSet(), ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range pkgs["shell"].Files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "step" || len(f.Type.Params.List) != 1 {
				continue
			}
			star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			n++
			if name := star.X.(*ast.Ident).Name; !known[name] {
				t.Errorf("%s isn't in frameKinds", name)
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d frames found", n)
	}
}
