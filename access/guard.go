package access

import (
	"context"
	"slices"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// Guard decides, and writes down what it decided. All methods may be called concurrently.
//
// The methods that are named after what they do to principals, keys, secrets and the log ask the guard themselves whether the caller may.
type Guard struct {
	keys *Keys
}

// NewGuard returns the guard of the callers that keys let in.
func NewGuard(keys *Keys) *Guard { return &Guard{keys: keys} }

// Check is nil if the caller may, else errs.Denied that names the rule (errs.NotFound where the caller mayn't know that the thing
// exists). It returns once the decision is in the audit log durably, except for verbs that only look, which are there within a second.
// Where the log can't be written nothing is allowed: the error is then the log's.
func (g *Guard) Check(ctx context.Context, who *Caller, v Verb, t Thing) error {
	d, err := g.decide(ctx, who, v, t)
	if err != nil {
		return err
	}
	return d.err(v, t)
}

// Sees reports, without a trace in the log, whether a thing is listed for the caller.
func (g *Guard) Sees(who *Caller, t Thing) bool {
	see := sight(t.Kind)
	if see == nil {
		return false
	}
	d, err := g.decide(context.Background(), who, see.verb, t)
	return err == nil && d.allowed
}

func (g *Guard) decide(ctx context.Context, who *Caller, v Verb, t Thing) (decision, error) {
	if g == nil || g.keys == nil {
		return decision{}, errs.Msg(errs.Unavailable, string(v), t.name(), "there is no guard")
	}
	role := noRole
	if who != nil && who.Principal.Name != "" {
		role = rankOf(who.Principal.Role)
	}
	b, err := g.relate(ctx, who, t)
	if err != nil {
		return decision{}, err
	}
	d := decide(role, v, t.Kind, b)
	d.seen = d.seen || t.ID == "" // what is yet to be made is no secret
	return d, nil
}

// relate finds how a caller and a thing are related.
func (g *Guard) relate(ctx context.Context, who *Caller, t Thing) (bond, error) {
	if t.ID == "" && t.Owner == "" {
		return bond{relation: notOne}, nil
	}
	if who == nil || who.Principal.Name == "" {
		return bond{}, nil
	}
	me := &who.Principal
	if t.Owner == me.Name {
		return bond{relation: owned}, nil
	}
	if t.Owner != "" {
		ward, err := g.keys.ActsFor(ctx, t.Owner, me.Name)
		if err != nil {
			return bond{}, err
		}
		if ward {
			return bond{delegated, t.Owner}, nil
		}
	}
	switch t.visibility() {
	case api.Team:
		team, err := g.shared(ctx, me, t)
		if team != "" || err != nil {
			return bond{shownTeam, team}, err
		}
	case api.All:
		return bond{relation: shownAll}, nil
	}
	return bond{}, nil
}

// shared returns the team through which a caller is shown a thing; "" if there is none.
func (g *Guard) shared(ctx context.Context, me *api.Principal, t Thing) (string, error) {
	if len(me.Teams) == 0 {
		return "", nil
	}
	if t.Team != "" {
		if slices.Contains(me.Teams, t.Team) {
			return t.Team, nil
		}
		return "", nil
	}
	if t.Owner == "" {
		return "", nil
	}
	owner, err := g.keys.Principal(ctx, t.Owner)
	if errs.Is(err, errs.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, team := range owner.Teams {
		if slices.Contains(me.Teams, team) {
			return team, nil
		}
	}
	return "", nil
}

// err is a decision as the caller is told it.
func (d *decision) err(v Verb, t Thing) error {
	switch {
	case d.allowed:
		return nil
	case d.seen:
		return errs.Msg(errs.Denied, string(v), t.ID, d.rule)
	}
	return Missing(v, t)
}

// Missing is what a caller is told about a thing that doesn't exist, and about one that it mayn't see.
func Missing(v Verb, t Thing) error {
	kind := t.Kind
	if kind == "" {
		kind = "thing"
	}
	return errs.Msg(errs.NotFound, string(v), t.ID, "no such "+kind)
}
