package node

import (
	"context"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

type sessions struct{}

func sessionOf(engine.Running) *struct{} { return nil }

func (s *Sandbox) begins(context.Context, string) error { return nil }

// languageOf checks a language's name.
func languageOf(name string) (string, error) {
	switch name {
	case "", api.Shell, api.Python, api.JavaScript:
		return name, nil
	}
	return "", errs.Msg(errs.Invalid, "run", name, "no language of this name; there are shell, python and javascript")
}

// Code implements Host.
func (l *local) Code(_ context.Context, id string, _ Code) (*CodeResult, error) {
	if _, err := l.hosted(id); err != nil {
		return nil, err
	}
	return nil, errs.Msg(errs.Unsupported, "run", id, "not here yet")
}
