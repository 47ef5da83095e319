// Package manifest reads the YAML (or JSON) in which templates, pools, claims and forks are declared, group
// agentrun.dev/v1alpha1: the same files for 'agentrun apply' and for kubectl.
//
// A field that isn't known, a quantity that can't be read and a name that can't be one are errors that say where: file, line
// and field.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// APIVersion is the one that is read.
const APIVersion = "agentrun.dev/v1alpha1"

// Kinds of objects.
const (
	SandboxTemplate = "SandboxTemplate"
	SandboxPool     = "SandboxPool"
	SandboxClaim    = "SandboxClaim"
	SandboxFork     = "SandboxFork"
)

// Limits of what is read.
const (
	MaxFile    = 4 << 20 // bytes
	MaxObjects = 1000
)

// Object is one declared object. Exactly one of the specs is set, that of its Kind.
type Object struct {
	Kind     string
	Name     string
	Labels   api.Labels
	File     string // where it was read, for errors
	Line     int
	Template *api.TemplateSpec
	Pool     *api.PoolSpec
	Claim    *api.ClaimSpec
	Fork     *api.ForkSpec
}

// Read reads all objects of a file; name is the file's, for errors.
func Read(name string, r io.Reader) ([]Object, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return nil, errs.New(errs.Other, "read", name, err)
	}
	if len(text) > MaxFile {
		return nil, errs.Msg(errs.TooLarge, "read", name, fmt.Sprintf("a file of manifests has at most %d bytes", MaxFile))
	}
	var out []Object
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errs.Msg(errs.Invalid, "read", name, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
			continue // nothing but comments
		}
		o, err := object(name, doc.Content[0])
		if err != nil {
			return nil, err
		}
		if out = append(out, *o); len(out) > MaxObjects {
			return nil, errs.Msg(errs.Limit, "read", name, fmt.Sprintf("more than %d objects", MaxObjects))
		}
	}
	if len(out) == 0 {
		return nil, errs.Msg(errs.Invalid, "read", name, "there is no object in it").WithHint("an object has apiVersion, kind, metadata and spec")
	}
	return out, nil
}

// head is what every object begins with.
type head struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
}

// object reads one document.
func object(file string, n *yaml.Node) (*Object, error) {
	bad := func(line int, thing, text string) error {
		return errs.Msg(errs.Invalid, "read", fmt.Sprintf("%s:%d", file, line), strings.TrimPrefix(thing+": "+text, ": "))
	}
	if n.Kind != yaml.MappingNode {
		return nil, bad(n.Line, "", "want an object with apiVersion, kind, metadata and spec")
	}
	o := &Object{File: file, Line: n.Line}
	var h head
	var spec *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch k := n.Content[i]; k.Value {
		case "apiVersion", "kind", "metadata", "status": // status is what kubectl prints
		case "spec":
			spec = n.Content[i+1]
		default:
			return nil, bad(k.Line, k.Value, "no such field; there are apiVersion, kind, metadata and spec")
		}
	}
	if err := n.Decode(&h); err != nil {
		return nil, bad(n.Line, "", plain(err))
	}
	if h.APIVersion != APIVersion {
		return nil, bad(n.Line, "apiVersion", fmt.Sprintf("%q isn't known; want %s", h.APIVersion, APIVersion))
	}
	if o.Kind, o.Name, o.Labels = h.Kind, h.Metadata.Name, h.Metadata.Labels; !api.ValidName(o.Name) {
		return nil, bad(n.Line, "metadata.name", fmt.Sprintf("%q isn't 1 to 63 of a-z, 0-9 and '-', with no '-' at either end", o.Name))
	}
	if spec == nil {
		return nil, bad(n.Line, "spec", "it is missing")
	}
	var err error
	switch o.Kind {
	case SandboxTemplate:
		o.Template, err = convert[templateSpec, api.TemplateSpec](spec)
	case SandboxPool:
		o.Pool, err = convert[poolSpec, api.PoolSpec](spec)
	case SandboxClaim:
		o.Claim, err = convert[claimSpec, api.ClaimSpec](spec)
	case SandboxFork:
		o.Fork, err = convert[forkSpec, api.ForkSpec](spec)
	default:
		return nil, bad(n.Line, "kind", fmt.Sprintf("%q isn't known; there are %s, %s, %s and %s", o.Kind, SandboxTemplate, SandboxPool, SandboxClaim, SandboxFork))
	}
	if err != nil {
		line := spec.Line
		var at *fieldError
		if errors.As(err, &at) && at.line > 0 {
			line = at.line
		}
		return nil, bad(line, "", o.Kind+" "+o.Name+": "+err.Error())
	}
	if o.Pool != nil {
		o.Pool.Labels = o.Labels
	}
	if o.Claim != nil {
		o.Claim.Labels = o.Labels
	}
	return o, nil
}

// fieldError is an error at a line.
type fieldError struct {
	line int
	text string
}

func (e *fieldError) Error() string { return e.text }

// converter is a spec as it is written, which becomes one of the API.
type converter[A any] interface{ api() (*A, error) }

// convert reads a spec strictly.
func convert[S converter[A], A any](n *yaml.Node) (*A, error) {
	var s S
	if n.Kind != yaml.MappingNode {
		return nil, &fieldError{n.Line, "spec isn't an object"}
	}
	if err := known(n, fieldsOf[S](), "spec"); err != nil {
		return nil, err
	}
	if err := n.Decode(&s); err != nil {
		return nil, &fieldError{0, plain(err)}
	}
	return s.api()
}

// plain takes the library's name from an error of it.
func plain(err error) string {
	var te *yaml.TypeError
	if errors.As(err, &te) && len(te.Errors) > 0 {
		return te.Errors[0]
	}
	return strings.TrimPrefix(err.Error(), "yaml: ")
}
