package interpreter

import (
	"fmt"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"agentrun.dev/node"
)

// plainScript makes JavaScript of a text of TypeScript: types are taken out, nothing is checked. Names that only later texts use stay.
func plainScript(text string) (string, *node.CodeError) {
	r := api.Transform(text, api.TransformOptions{Loader: api.LoaderTS, Target: api.ESNext, TreeShaking: api.TreeShakingFalse, Charset: api.CharsetUTF8,
		TsconfigRaw: `{"compilerOptions": {"verbatimModuleSyntax": true, "experimentalDecorators": true}}`, Sourcefile: "<cell>", LogLevel: api.LogLevelSilent})
	if len(r.Errors) == 0 {
		return string(r.Code), nil
	}
	e := r.Errors[0]
	problem := &node.CodeError{Name: "SyntaxError", Value: e.Text, Traceback: "SyntaxError: " + e.Text}
	if l := e.Location; l != nil {
		problem.Traceback = fmt.Sprintf("<cell>:%d:%d\n%s\n%s^\n\nSyntaxError: %s", l.Line, l.Column+1, l.LineText, strings.Repeat(" ", max(0, min(l.Column, 1000))), e.Text)
	}
	return "", problem
}
