package control

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// environment is what a sandbox was given by whoever claimed it. It is kept sealed, and given again to forks and after a sleep.
type environment struct {
	Env     map[string]string `json:"env,omitempty"`
	Secrets map[string]string `json:"secrets,omitempty"`
	Drop    []string          `json:"drop,omitempty"` // secrets that forks don't get
}

// all are the variables, secrets before others of the same name.
func (e *environment) all() []string {
	m := maps.Clone(e.Env)
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, e.Secrets)
	return environ(m)
}

// forked is what a fork gets: the parent's, less what is to be dropped, with its own over it.
func (e *environment) forked(own *environment) *environment {
	out := &environment{Env: maps.Clone(e.Env), Secrets: maps.Clone(e.Secrets)}
	for _, k := range e.Drop {
		delete(out.Secrets, k)
	}
	out.add(own)
	return out
}

// add puts another's variables over these.
func (e *environment) add(o *environment) {
	if e.Env == nil {
		e.Env = map[string]string{}
	}
	if e.Secrets == nil {
		e.Secrets = map[string]string{}
	}
	for k, v := range o.Env {
		e.Env[k] = v
		delete(e.Secrets, k)
	}
	maps.Copy(e.Secrets, o.Secrets)
	e.Drop = append(e.Drop, o.Drop...)
}

// environment finds what a request's secrets stand for: the caller must be allowed to use each of them.
func (c *Control) environment(ctx context.Context, who *access.Caller, env map[string]string, secrets []api.SecretUse) (*environment, error) {
	e := &environment{Env: env, Secrets: map[string]string{}}
	list, err := c.o.Guard.Resolve(ctx, who, secrets)
	if err != nil {
		return nil, err
	}
	for i, text := range list {
		name, value, _ := strings.Cut(text, "=")
		e.Secrets[name] = value
		if i < len(secrets) && secrets[i].Fork == "drop" {
			e.Drop = append(e.Drop, name)
		}
	}
	return e, checkEnv("environment", e.Secrets)
}

func (c *Control) sealJSON(place string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, errs.New(errs.Other, "seal", place, err)
	}
	return c.sealer().Seal(place, b)
}

func (c *Control) openJSON(place string, sealed []byte, v any) error {
	b, err := c.sealer().Open(place, sealed)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return errs.New(errs.Corrupt, "open what was sealed", place, err)
	}
	return nil
}

func (c *Control) seal(id string, e *environment) ([]byte, error) {
	if len(e.Env)+len(e.Secrets) == 0 {
		return nil, nil
	}
	return c.sealJSON("sandbox/"+id, e)
}

func (c *Control) unseal(r *record) (*environment, error) {
	e := new(environment)
	if len(r.Sealed) == 0 {
		return e, nil
	}
	return e, c.openJSON("sandbox/"+r.ID, r.Sealed, e)
}

// identity is what a node gives a sandbox beside its image.
func (c *Control) identity(ctx context.Context, r *record, e *environment) node.Claim {
	return node.Claim{Env: e.all(), Network: rules(r.Network), Volumes: r.Mounts, Budget: c.left(ctx, r.Owner)}
}

// reidentify is identity for a sandbox that has one.
func (c *Control) reidentify(ctx context.Context, r *record) (node.Claim, error) {
	e, err := c.unseal(r)
	if err != nil {
		return node.Claim{}, err
	}
	return c.identity(ctx, r, e), nil
}
