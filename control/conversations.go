package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// defaultRetention of the sandbox of a conversation that ended, in seconds.
const chatRetention = 24 * 3600

// conversation is what is recorded of a conversation.
type conversation struct {
	api.Conversation
	Fresh     bool      `json:"fresh,omitempty"`     // the sandbox was made for it, and ends after it
	Retention int64     `json:"retention,omitempty"` // seconds
	Forget    time.Time `json:"forget,omitzero"`     // when it is forgotten, once it has ended
}

func conversationThing(id string, k *conversation) access.Thing {
	t := access.Thing{Kind: "conversation", ID: short(id)}
	if k != nil {
		t.Owner = k.User
	}
	return t
}

func checkConversation(op, id string) error {
	if id == "" || len(id) > 255 {
		return invalid(op, short(id), "the id of a conversation is 1 to 255 bytes")
	}
	for _, b := range []byte(id) {
		if b <= ' ' || b == '/' || b == 0x7f {
			return invalid(op, short(id), "the id of a conversation has no spaces, slashes or control characters")
		}
	}
	return nil
}

// Attach attaches a sandbox to a conversation, as its agent's mode has it; without an agent, the one that is named.
func (c *Control) Attach(ctx context.Context, who *access.Caller, id string, a api.Attach) (*api.Conversation, error) {
	const op = "attach sandbox"
	if err := checkConversation(op, id); err != nil {
		return nil, err
	}
	leave, err := c.requests.enter(ctx, "conversation/"+id) // one attachment at a time
	if err != nil {
		return nil, err
	}
	defer leave()
	was := c.conversations.get(id)
	user := cmp.Or(a.User, ownerOf(who))
	thing := conversationThing(id, was)
	if was == nil {
		thing.Owner = user
	}
	if err := c.allow(ctx, who, access.Converse, thing); err != nil {
		return nil, err
	}
	n := &conversation{Conversation: api.Conversation{ID: id, User: user, Agent: a.Agent, Mode: api.ModeChoose}}
	if was != nil {
		if !was.Ended.IsZero() {
			return nil, errs.Msg(errs.Conflict, op, id, "the conversation ended at "+was.Ended.Format(time.RFC3339))
		}
		*n = *was
		n.Agent = cmp.Or(a.Agent, was.Agent)
	}
	b, err := c.chosen(ctx, who, op, n, was, a.Sandbox)
	if err != nil {
		return nil, err
	}
	if was != nil && was.Sandbox == b.id && was.Agent == n.Agent {
		return &was.Conversation, nil
	}
	return c.attach(ctx, n, was, b)
}

// chosen finds the sandbox that a conversation gets, or makes it.
func (c *Control) chosen(ctx context.Context, who *access.Caller, op string, n, was *conversation, named string) (*box, error) {
	agent := &api.Agent{Mode: api.ModeChoose}
	if n.Agent != "" {
		var err error
		if agent, err = c.findAgent(ctx, who, access.AgentGet, op, n.Agent); err != nil {
			return nil, err
		}
	}
	n.Mode = agent.Mode
	if named != "" && agent.Mode != api.ModeChoose {
		return nil, errs.Msg(errs.Conflict, op, n.ID, "which sandbox it gets is the agent's to say: its mode is "+agent.Mode)
	}
	// What is attached already stays, as long as it lives.
	current := func() *box {
		if was == nil || was.Sandbox == "" || was.Agent != n.Agent {
			return nil
		}
		return c.box(c.resolved(was.Sandbox))
	}
	switch agent.Mode {
	case api.ModeNone:
		return nil, errs.Msg(errs.Conflict, op, n.ID, "conversations with the agent "+agent.Name+" get no sandbox: its mode is none")
	case api.ModeFixed:
		return c.findLive(ctx, who, access.SandboxExec, op, agent.Sandbox)
	case api.ModePerUser:
		return c.usersOwn(ctx, who, op, agent, n.User)
	case api.ModeFresh:
		if b := current(); b != nil {
			return b, nil
		}
		n.Fresh, n.Retention = true, cmp.Or(agent.Retention, chatRetention)
		return c.freshFor(ctx, who, op, agent, n.User, "")
	}
	if named != "" {
		return c.findLive(ctx, who, access.SandboxExec, op, named)
	}
	if b := current(); b != nil {
		return b, nil
	}
	if b := c.lastUsed(n.User); b != nil {
		return b, c.allow(ctx, who, access.SandboxExec, b.rec.Load().thing())
	}
	return nil, errs.Msg(errs.Conflict, op, n.ID, "the user is to choose a sandbox, and none was named").WithHint("create one, then attach it by its id or name")
}

// perUser is the claim by which a user's own sandbox is found.
func perUser(agent, user string) string { return agent + "/" + user }

// usersOwn finds the sandbox that a user has with an agent, or makes it. Where that one has ended, a new one takes its place.
func (c *Control) usersOwn(ctx context.Context, who *access.Caller, op string, agent *api.Agent, user string) (*box, error) {
	name := perUser(agent.Name, user)
	leave, err := c.requests.enter(ctx, "claim/"+name)
	if err != nil {
		return nil, err
	}
	defer leave()
	if k := c.claims.get(name); k != nil {
		if b := c.box(c.resolved(k.Sandbox)); b != nil && b.rec.Load().State != api.StateEnding {
			return b, nil
		}
	}
	return c.freshFor(ctx, who, op, agent, user, name)
}

// freshFor makes a sandbox for a user of an agent.
func (c *Control) freshFor(ctx context.Context, who *access.Caller, op string, agent *api.Agent, user, claimed string) (*box, error) {
	req := api.CreateSandbox{Pool: agent.Pool, Template: agent.Template, Labels: api.Labels{"agent": agent.Name}}
	if user != ownerOf(who) {
		req.Owner = user
	}
	o, err := c.order(ctx, who, op, req)
	if err != nil {
		return nil, err
	}
	if claimed != "" {
		o.claim = claimed
		o.also = func(t *txn, r *record) {
			was := c.claims.get(claimed)
			c.claims.set(c, t, claimed, was, &claim{Name: claimed, Pool: agent.Pool, From: agent.Template, Sandbox: r.ID, Owner: o.owner, Created: c.clock.now()})
		}
	}
	return c.obtain(ctx, o)
}

// lastUsed is a user's newest sandbox, or nil.
func (c *Control) lastUsed(user string) (best *box) {
	for _, b := range c.index.list() {
		r := b.rec.Load()
		if r.Owner == user && r.claimed() && r.State != api.StateEnding && (best == nil || b.id > best.id) {
			best = b
		}
	}
	return best
}

// attach records that a sandbox is a conversation's. What was attached before is not any more.
func (c *Control) attach(ctx context.Context, n, was *conversation, b *box) (*api.Conversation, error) {
	if was != nil && was.Sandbox != "" && was.Sandbox != b.id {
		if _, err := c.detach(ctx, was); err != nil {
			return nil, err
		}
		was = c.conversations.get(n.ID)
	}
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	defer b.give()
	r := b.rec.Load()
	if !r.live() || r.State == api.StateEnding {
		return nil, over("attach sandbox", r)
	}
	n.Sandbox, n.Attached = b.id, c.clock.now()
	t := new(txn)
	c.conversations.set(c, t, n.ID, was, n)
	k := r.clone()
	if !slices.Contains(r.Conversations, n.ID) {
		k.Conversations = append(slices.Clone(r.Conversations), n.ID)
	}
	c.set(t, b, k)
	e := k.event(api.EventAttached, "")
	e.Data = map[string]string{"conversation": n.ID, "agent": n.Agent}
	t.event(e)
	if err := c.commit(ctx, t); err != nil {
		return nil, err
	}
	c.touch(b)
	return &n.Conversation, nil
}

// Detach detaches the sandbox of a conversation, which goes on. A conversation without one is fine.
func (c *Control) Detach(ctx context.Context, who *access.Caller, id string) (*api.Conversation, error) {
	k, err := c.findConversation(ctx, who, access.Converse, "detach sandbox", id)
	if err != nil {
		return nil, err
	}
	leave, err := c.requests.enter(ctx, "conversation/"+id)
	if err != nil {
		return nil, err
	}
	defer leave()
	if k = c.conversations.get(id); k == nil {
		return nil, noConversation("detach sandbox", id)
	}
	n, err := c.detach(ctx, k)
	if err != nil {
		return nil, err
	}
	return &n.Conversation, nil
}

func (c *Control) detach(ctx context.Context, k *conversation) (*conversation, error) {
	if k.Sandbox == "" {
		return k, nil
	}
	n := *k
	n.Sandbox, n.Attached = "", time.Time{}
	t := new(txn)
	c.conversations.set(c, t, k.ID, k, &n)
	if b := c.box(c.resolved(k.Sandbox)); b != nil {
		if err := b.take(ctx); err != nil {
			return nil, err
		}
		defer b.give()
		if r := b.rec.Load(); r.live() {
			m := r.clone()
			m.Conversations = slices.DeleteFunc(slices.Clone(r.Conversations), func(s string) bool { return s == k.ID })
			c.set(t, b, m)
			e := m.event(api.EventDetached, "")
			e.Data = map[string]string{"conversation": k.ID}
			t.event(e)
		}
	}
	return &n, c.commit(ctx, t)
}

func noConversation(op, id string) error {
	return errs.Msg(errs.NotFound, op, short(id), "there is no conversation of this id")
}

func (c *Control) findConversation(ctx context.Context, who *access.Caller, v access.Verb, op, id string) (*conversation, error) {
	k := c.conversations.get(id)
	if err := c.allow(ctx, who, v, conversationThing(id, k)); err != nil {
		return nil, err
	}
	if k == nil {
		return nil, noConversation(op, id)
	}
	return k, nil
}

// Conversation returns a conversation.
func (c *Control) Conversation(ctx context.Context, who *access.Caller, id string) (*api.Conversation, error) {
	k, err := c.findConversation(ctx, who, access.ConversationGet, "find conversation", id)
	if err != nil {
		return nil, err
	}
	v := k.Conversation
	v.Sandbox = c.resolved(v.Sandbox)
	return &v, nil
}

// EndConversation ends a conversation. A sandbox that was made for it ends when the agent's retention has passed; any other is detached.
func (c *Control) EndConversation(ctx context.Context, who *access.Caller, id string) error {
	const op = "end conversation"
	if _, err := c.findConversation(ctx, who, access.Converse, op, id); err != nil {
		return err
	}
	leave, err := c.requests.enter(ctx, "conversation/"+id)
	if err != nil {
		return err
	}
	defer leave()
	k := c.conversations.get(id)
	if k == nil {
		return noConversation(op, id)
	}
	if !k.Ended.IsZero() {
		return nil
	}
	if !k.Fresh {
		if k, err = c.detach(ctx, k); err != nil {
			return err
		}
		k = c.conversations.get(id)
	}
	n := *k
	n.Ended = c.clock.now()
	n.Forget = n.Ended.Add(seconds(cmp.Or(k.Retention, chatRetention)))
	t := new(txn)
	c.conversations.set(c, t, id, k, &n)
	return c.commit(ctx, t)
}

// endChats ends what was made for conversations whose retention has passed, and forgets those.
func (c *Control) endChats(ctx context.Context) {
	now := c.clock.now()
	var over []*conversation
	c.conversations.all(func(_ string, k *conversation) bool {
		if !k.Forget.IsZero() && now.After(k.Forget) {
			over = append(over, k)
		}
		return true
	})
	for _, k := range over {
		if b := c.box(c.resolved(k.Sandbox)); b != nil && k.Fresh {
			if b.take(ctx) != nil {
				return
			}
			err := c.end(ctx, b, "its conversation has ended")
			b.give()
			if err != nil {
				c.o.Log.Warn("end the sandbox of a conversation", "sandbox", b.id, "err", err)
				continue
			}
		}
		t := new(txn)
		if now := c.conversations.get(k.ID); now != nil {
			c.conversations.set(c, t, k.ID, now, nil)
			if err := c.commit(ctx, t); err != nil {
				c.o.Log.Warn("forget a conversation", "conversation", k.ID, "err", err)
			}
		}
	}
}

// leaveAll detaches a sandbox that has ended from its conversations, within a transition.
func (c *Control) leaveAll(t *txn, r *record) {
	for _, id := range r.Conversations {
		k := c.conversations.get(id)
		if k == nil || k.Sandbox != r.ID {
			continue
		}
		n := *k
		n.Sandbox, n.Attached = "", time.Time{}
		c.conversations.set(c, t, id, k, &n)
	}
}

// moveChats makes the conversations of one sandbox another's, within a transition.
func (c *Control) moveChats(t *txn, from, to string) {
	var list []*conversation
	c.conversations.all(func(_ string, k *conversation) bool {
		if k.Sandbox == from {
			list = append(list, k)
		}
		return true
	})
	for _, k := range list {
		n := *k
		n.Sandbox = to
		c.conversations.set(c, t, k.ID, k, &n)
	}
}
