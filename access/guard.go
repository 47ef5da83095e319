package access

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// Guard decides, and writes down what it decided. All methods may be called concurrently.
//
// The methods that are named after what they do to principals, keys, secrets and the log ask the guard themselves whether the caller may.
type Guard struct {
	keys *Keys
	log  *trail

	mu      sync.Mutex // of the count of those who were turned away at the door
	window  time.Time
	turned  int
	skipped uint64
}

// NewGuard opens the audit log and returns the guard of the callers that keys let in. A store has one guard.
func NewGuard(ctx context.Context, keys *Keys, o AuditOptions) (*Guard, error) {
	log, err := openTrail(ctx, keys, o)
	if err != nil {
		return nil, err
	}
	g := &Guard{keys: keys, log: log}
	e := newEntry(System("start"), "audit.open", "audit")
	e.Allowed, e.Rule = true, "system"
	if err := log.add(ctx, e, true, true); err != nil {
		return nil, errors.Join(err, g.Close(ctx))
	}
	log.retire()
	return g, nil
}

// Close writes what the log has still to write. Nothing is allowed afterwards. A log whose last entry isn't audit.close, or in which
// audit.open follows something else, is that of a process that was ended by force: looks of its last second may be missing.
func (g *Guard) Close(ctx context.Context) error {
	if g == nil || g.log == nil {
		return nil
	}
	e := newEntry(System("stop"), "audit.close", "audit")
	e.Time, e.Allowed, e.Rule = g.log.now().UTC(), true, "system"
	return g.log.close(ctx, e)
}

// Check is nil if the caller may, else errs.Denied that names the rule (errs.NotFound where the caller mayn't know that the thing
// exists). It returns once the decision is in the audit log durably, except for verbs that only look, which are there within a second.
// Where the log can't be written nothing is allowed: the error is then the log's.
func (g *Guard) Check(ctx context.Context, who *Caller, v Verb, t Thing) error {
	wait, err := g.Begin(ctx, who, v, t)
	if err != nil {
		return err
	}
	return wait(ctx)
}

// Begin is Check for callers who have something to do while the decision is being written down. They mustn't act on it, beyond what they
// can take back, nor tell of it, before wait returned nil. An error of Begin's own is final and in the log.
func (g *Guard) Begin(ctx context.Context, who *Caller, v Verb, t Thing) (wait func(context.Context) error, err error) {
	d, err := g.decide(ctx, who, v, t)
	if err != nil {
		return nil, err
	}
	if !d.allowed {
		if err := g.record(ctx, who, v, t, false, d.rule); err != nil {
			return nil, err
		}
		return nil, d.err(v, t)
	}
	written, err := g.put(ctx, who, v, t, true, d.rule)
	if err != nil {
		return nil, logErr(v, t, err)
	}
	return func(ctx context.Context) error { return logErr(v, t, written(ctx)) }, nil
}

// record puts a decision into the log; one of a verb that changes something is durable when it returns.
func (g *Guard) record(ctx context.Context, who *Caller, v Verb, t Thing, allowed bool, rule string) error {
	wait, err := g.put(ctx, who, v, t, allowed, rule)
	if err == nil {
		err = wait(ctx)
	}
	return logErr(v, t, err)
}

// refuse records that something was refused that the policy alone would allow, and returns the error.
func (g *Guard) refuse(ctx context.Context, who *Caller, v Verb, t Thing, rule string) error {
	if err := g.record(ctx, who, v, t, false, rule); err != nil {
		return err
	}
	return (&decision{seen: true, rule: rule}).err(v, t)
}

func (g *Guard) put(ctx context.Context, who *Caller, v Verb, t Thing, allowed bool, rule string) (func(context.Context) error, error) {
	e := newEntry(who, string(v), t.name())
	e.Allowed, e.Rule, e.Data = allowed, clean(who, rule, maxRule), t.data(who)
	return g.log.put(ctx, e, !v.Looks(), v.frees())
}

func logErr(v Verb, t Thing, err error) error {
	if err == nil {
		return nil
	}
	return errs.New(errs.KindOf(err), string(v), t.shown(), err)
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
	if g == nil || g.log == nil {
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

// maxTurned bounds the entries of a minute about callers that nobody knows: they must not be able to fill the log.
const maxTurned = 60

// Caller is Keys.Caller; that a token is refused is put into the log, but not more than 60 times a minute: an entry says how many were left out
// before it.
func (g *Guard) Caller(ctx context.Context, token, remote, request string) (*Caller, error) {
	who, err := g.keys.Caller(ctx, token, remote, request)
	if !errs.Is(err, errs.Unauthorized) {
		return who, err
	}
	g.mu.Lock()
	now := g.keys.now()
	if d := now.Sub(g.window); d >= time.Minute || d < 0 {
		g.window, g.turned = now, 0
	}
	g.turned++
	skip, skipped := g.turned > maxTurned, g.skipped
	if g.skipped = 0; skip {
		g.skipped = skipped + 1
	}
	g.mu.Unlock()
	if skip {
		return nil, err
	}
	e := newEntry(&Caller{Remote: remote, Request: request}, "authenticate", "")
	e.Rule = "unknown key, or a wrong secret"
	if id, _, perr := ParseToken(token); perr == nil && validID(id) {
		e.Thing = printable("key/"+id, maxThing)
	}
	if skipped > 0 {
		e.Data = map[string]string{"skipped": strconv.FormatUint(skipped, 10)}
	}
	_ = g.log.add(ctx, e, false, false) // the caller is refused in any case
	return nil, err
}

// err is a decision as the caller is told it.
func (d *decision) err(v Verb, t Thing) error {
	switch {
	case d.allowed:
		return nil
	case d.seen:
		return errs.Msg(errs.Denied, string(v), t.shown(), d.rule)
	}
	return Missing(v, t)
}

// Missing is what a caller is told about a thing that doesn't exist, and about one that it mayn't see.
func Missing(v Verb, t Thing) error {
	kind := t.Kind
	if kind == "" {
		kind = "thing"
	}
	return errs.Msg(errs.NotFound, string(v), t.shown(), "no such "+kind)
}
