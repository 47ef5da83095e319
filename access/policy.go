package access

import (
	"fmt"
	"strings"
)

// relation is how a caller and a thing are related. A thing has one to each caller: the first that fits.
type relation uint8

const (
	unrelated  relation = iota // it belongs to another, or to nobody
	shownAll                   // it is visible to all
	shownTeam                  // it is visible to a team that the caller is of
	delegated                  // its owner acts on the caller's behalf
	owned                      // it is the caller's own
	notOne                     // the verb is about no thing in particular: a list, a thing yet to be made
	nRelations = iota
)

// row is the policy for one verb: the least role that may do it, by relation. noRole is that nobody may. Delegated things are as the
// caller's own.
type row struct {
	verb                       Verb
	kind                       string // of the things that it sees: this is the verb that decides whether a caller sees one
	notOne, own, team, all, no rank
	about                      string // for people
}

// policy says who may do what. It is all there is: every decision is a look into this table.
var policy = []row{
	{SandboxGet, "sandbox", viewer, viewer, viewer, viewer, operator, "list and describe sandboxes, wait for them, see what they used"},
	{SandboxCreate, "", user, user, operator, operator, operator, "create a sandbox, for oneself or for another owner"},
	{SandboxExec, "", user, user, user, operator, operator, "run in a sandbox, write its files, connect to its ports"},
	{SandboxRead, "", viewer, viewer, viewer, viewer, operator, "read its files, compare them"},
	{SandboxChange, "", user, user, operator, operator, operator, "name, label, lease, network, hibernate, resume, snapshot, merge into, promote; its S3 credentials"},
	{SandboxFork, "", user, user, user, user, operator, "fork it"},
	{SandboxEnd, "", user, user, operator, operator, operator, "end it, give it back to its pool"},
	{TemplateGet, "template", viewer, viewer, viewer, viewer, operator, "list and describe templates, read the logs of their builds"},
	{TemplateChange, "", operator, operator, operator, operator, operator, "make, change and delete templates"},
	{PoolGet, "pool", viewer, viewer, viewer, viewer, operator, "list and describe pools"},
	{PoolChange, "", operator, operator, operator, operator, operator, "make, change and delete pools"},
	{SnapshotGet, "snapshot", viewer, viewer, viewer, viewer, operator, "list and describe snapshots of sandboxes, start from one"},
	{SnapshotChange, "", user, user, operator, operator, operator, "delete snapshots"},
	{VolumeGet, "volume", viewer, viewer, viewer, viewer, operator, "list and describe volumes, read their files, mount them read-only"},
	{VolumeChange, "", user, user, operator, operator, operator, "make and delete volumes, write their files, mount them"},
	{AgentGet, "agent", viewer, viewer, viewer, viewer, operator, "list and describe agents"},
	{AgentChange, "", operator, operator, operator, operator, operator, "make, change and delete agents"},
	{ConversationGet, "conversation", viewer, viewer, viewer, viewer, operator, "describe a conversation"},
	{Converse, "", user, user, operator, operator, operator, "attach to and detach from a conversation, end it"},
	{SecretUse, "", user, user, user, admin, admin, "give a sandbox the values of a secret"},
	{SecretGet, "secret", viewer, viewer, viewer, admin, admin, "list and describe secrets, without their values"},
	{SecretChange, "", user, user, admin, admin, admin, "make, change and delete secrets"},
	{PrincipalGet, "principal", viewer, viewer, operator, operator, operator, "list and describe principals"},
	{PrincipalChange, "", admin, admin, admin, admin, admin, "make, change and delete principals"},
	{KeyGet, "key", viewer, viewer, admin, admin, admin, "list and describe keys, without their secrets"},
	{KeyChange, "", viewer, viewer, admin, admin, admin, "make and revoke keys: with no more than the caller has"},
	{UsageGet, "usage", viewer, viewer, operator, operator, operator, "see what a principal used, and its budget"},
	{EventGet, "event", viewer, viewer, viewer, viewer, operator, "read events of what one sees"},
	{NodeGet, "node", operator, operator, operator, operator, operator, "list and describe nodes"},
	{NodeChange, "", admin, admin, admin, admin, admin, "drain nodes, let nodes join"},
	{MountGet, "mount", viewer, viewer, viewer, viewer, viewer, "see what stands behind the mounts"},
	{MountChange, "", admin, admin, admin, admin, admin, "say what stands behind the mounts"},
	{AuditGet, "audit", admin, admin, admin, admin, admin, "read, check and export the audit log"},
	{AuditChange, "", admin, admin, admin, admin, admin, "cut off the beginning of the audit log"},
	{BucketUse, "bucket", operator, user, operator, operator, operator, "make a bucket the source or a mount of a template or sandbox"},
}

// least returns the role from which on a verb may be done in a relation.
func (p *row) least(r relation) rank {
	switch r {
	case notOne:
		return p.notOne
	case owned, delegated:
		return p.own
	case shownTeam:
		return p.team
	case shownAll:
		return p.all
	}
	return p.no
}

// Policy is the table in Markdown, for docs/access.md.
func Policy() string {
	var b strings.Builder
	b.WriteString("| verb | | no thing in particular | own | shown to one's team | shown to all | of others |\n|-|-|-|-|-|-|-|\n")
	for _, p := range policy {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", p.verb, p.about, p.notOne, p.own, p.team, p.all, p.no)
	}
	return b.String()
}

// lookup finds the row of a verb; nil if there is no such verb.
func lookup(v Verb) *row {
	for i := range policy {
		if policy[i].verb == v {
			return &policy[i]
		}
	}
	return nil
}

// sight finds the row that decides whether a caller sees things of a kind; nil if no rule hides any.
func sight(kind string) *row {
	for i := range policy {
		if kind != "" && policy[i].kind == kind {
			return &policy[i]
		}
	}
	return nil
}

// bond is a relation and what makes it: the team, or the owner that acts for the caller.
type bond struct {
	relation
	by string
}

// decision is what the policy says, and the rule that says it.
type decision struct {
	allowed bool
	seen    bool // the caller may know that the thing exists
	rule    string
}

// decide looks a case up. It depends on nothing but its arguments.
func decide(role rank, v Verb, kind string, b bond) decision {
	if role == noRole {
		return decision{rule: "no principal", seen: b.relation == notOne}
	}
	p := lookup(v)
	if p == nil {
		return decision{rule: "no verb " + printable(string(v), 64), seen: true}
	}
	see := sight(kind)
	d := decision{seen: b.relation == notOne || see == nil || role >= see.least(b.relation) || role >= see.no}
	least := p.least(b.relation)
	switch {
	case least != noRole && role >= least:
		d.allowed, d.seen, d.rule = true, true, grantedBy(role, least, b)
	default:
		d.rule = refusedBy(role, p, b)
	}
	return d
}

func grantedBy(role, least rank, b bond) string {
	if least >= operator {
		return "role " + role.String()
	}
	switch b.relation {
	case owned:
		return "owner"
	case delegated:
		return b.by + " acts for the caller"
	case shownTeam:
		return "team " + b.by
	case shownAll:
		return "visible to all"
	}
	return "role " + role.String()
}

func refusedBy(role rank, p *row, b bond) string {
	rule := "role " + role.String() + " may not " + string(p.verb)
	if p.own == p.no {
		return rule // whosever it is
	}
	switch b.relation {
	case shownTeam:
		return rule + " what team " + b.by + " is shown"
	case shownAll:
		return rule + " what all are shown"
	case unrelated:
		return rule + " what isn't its own"
	}
	return rule
}
