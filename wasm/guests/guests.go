// Package guests holds the WebAssembly guests that build.sh makes: interpreters built for package wasm.
//
// They aren't in the repository; a build without them works, and their programs say what is missing.
package guests

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// ErrMissing says that a guest wasn't there when this program was built.
var ErrMissing = errors.New("not part of this build: run 'make guests', then build again")

// Read returns a file of dist, such as "python.wasm". The bytes must not be changed. Errors: ErrMissing.
func Read(name string) ([]byte, error) {
	data, err := dist.ReadFile("dist/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is %w", name, ErrMissing)
	}
	return data, err
}

// Has tells whether a file of dist is there.
func Has(name string) bool {
	f, err := dist.Open("dist/" + name)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
