package ssh

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"agentrun.dev/access"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// maxAuthorized bounds the file of authorized keys.
const maxAuthorized = 1 << 20

// Access decides about logins by AgentRun's access keys.
//
// The password is an API key (ID.SECRET): who has it may fork the buckets that it may read, and the base. A public key is let
// in by a line of a file in the format of OpenSSH's authorized_keys. With the option access-key="ID" it stands for that access
// key, whose revocation and end hold for it too; without one, for the owner of the server, who may fork every bucket.
// The user's name chooses: that of a bucket (or BUCKET@SNAPSHOT) which may be forked is what is forked, any other name is
// nobody's, and gets a fork of the base. +TEMPLATE is a sandbox of that template instead, for whoever may make one of it; and so is, with
// Template, any name that isn't a bucket's.
type Access struct {
	Store *bucket.Store
	Keys  *access.Keys
	File  string // of authorized keys; may be missing
	Base  string // BUCKET or BUCKET@SNAPSHOT for everyone; "": an empty bucket
	Open  bool   // clients needn't prove anything
	// Template is what sandboxes are made of where the user's name says nothing else; "": of the server's own engine, on a fork of Base. Those
	// who prove nothing may use this one and no other, as the owner.
	Template string
	// Named lets those who prove nothing name a bucket, too: any.
	Named bool
}

// errLogin is all that a client learns.
var errLogin = errs.Msg(errs.Unauthorized, "ssh", "", "not let in")

// Login is for Options.Login.
func (a *Access) Login(ctx context.Context, c Credentials) (*Login, error) {
	var key *access.Key
	var err error
	switch {
	case a.Open:
		key = &access.Key{ID: "anyone", Root: a.Named}
	case c.Key != nil:
		key, err = a.authorized(ctx, c.Key)
	case c.Password != "":
		key, err = a.Keys.Verify(ctx, c.Password)
	default:
		err = errLogin
	}
	if err == nil && !key.MayRun() {
		err = errLogin
	}
	if err != nil {
		return nil, err
	}
	l := &Login{Name: key.ID, Base: a.Base, Keep: key.Root}
	if template, ok := strings.CutPrefix(c.User, "+"); ok {
		a.ofTemplate(ctx, l, template, key, c)
	} else if a.forkable(ctx, key, c.User) {
		l.Base = c.User
	} else if a.Template != "" {
		a.ofTemplate(ctx, l, a.Template, key, c)
	}
	return l, nil
}

// ofTemplate makes a login one for a sandbox of a template, by whoever the key stands for. What it may do, the service finds.
func (a *Access) ofTemplate(ctx context.Context, l *Login, template string, key *access.Key, c Credentials) {
	l.Template = template
	id := key.ID
	switch {
	case template == "":
		l.Refused = errs.Msg(errs.Invalid, "ssh", "", "which template? ssh +TEMPLATE@HOST")
		return
	case a.Open && template != a.Template:
		l.Refused = errs.Msg(errs.Denied, "ssh", template, "without a key there are no sandboxes of this template").
			WithHint("the server's owner can allow one: up --ssh-template NAME; or make people log in: --ssh-auth keys")
		return
	case a.Open, id == ownerKey:
		id = a.Keys.RootID()
	}
	l.Caller, l.Refused = a.Keys.CallerOf(ctx, id, c.Remote, "ssh")
	l.Keep = l.Refused == nil && !a.Open // it is theirs
}

// ownerKey is the id of the key that the server's owner has without one.
const ownerKey = "owner"

// forkable reports whether a user's name is that of a bucket which the key may read: a fork is a copy that goes. Those that
// other sessions have aren't to be found.
func (a *Access) forkable(ctx context.Context, key *access.Key, user string) bool {
	name, _, err := a.Store.Point(ctx, user)
	if err != nil {
		return false
	}
	info, err := a.Store.Info(ctx, name)
	return err == nil && info.Attributes[volume.Attribute] == "" && key.Allows(access.Read, info.ID)
}

// authorized finds who a public key stands for.
func (a *Access) authorized(ctx context.Context, key ssh.PublicKey) (*access.Key, error) {
	list, err := a.list()
	if err != nil {
		return nil, err
	}
	want := key.Marshal()
	for _, l := range list {
		if !bytes.Equal(l.key.Marshal(), want) {
			continue
		}
		if l.accessKey == "" {
			return &access.Key{ID: ownerKey, Name: l.comment, Root: true}, nil
		}
		return a.Keys.Get(ctx, l.accessKey)
	}
	return nil, errLogin
}

// list reads the file of authorized keys, anew at each login: a line that is taken out is out.
func (a *Access) list() ([]authorizedKey, error) {
	if a.File == "" {
		return nil, nil
	}
	st, err := os.Stat(a.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && st.Size() > maxAuthorized {
		return nil, errs.Msg(errs.TooLarge, "authorized keys", a.File, "more than 1 MiB")
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(a.File)
	}
	if err != nil {
		return nil, errs.New(errs.Other, "authorized keys", a.File, err)
	}
	list, _ := parseAuthorized(b)
	return list, nil
}

// CheckAuthorized reads a file of authorized keys and tells which of its lines let nobody in, and why. A missing file is fine.
func CheckAuthorized(file string) (lines int, bad []error, err error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, errs.New(errs.Other, "authorized keys", file, err)
	}
	list, bad := parseAuthorized(b)
	return len(list), bad, nil
}

// authorizedKey is a line of the file.
type authorizedKey struct {
	key       ssh.PublicKey
	accessKey string // id; "": the owner
	comment   string
}

// parseAuthorized reads the lines. One that isn't understood as a whole lets nobody in: an option that isn't known may be one
// that forbids something.
func parseAuthorized(b []byte) (list []authorizedKey, bad []error) {
	for i, line := range bytes.Split(b, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		k, err := parseLine(line)
		if err != nil {
			bad = append(bad, errs.New(errs.Invalid, "authorized keys", "line "+strconv.Itoa(i+1), err))
			continue
		}
		list = append(list, k)
	}
	return list, bad
}

func parseLine(line []byte) (authorizedKey, error) {
	key, comment, options, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return authorizedKey{}, err
	}
	out := authorizedKey{key: key, comment: comment}
	for _, o := range options {
		name, value, has := strings.Cut(o, "=")
		switch strings.ToLower(name) {
		case "access-key":
			value, quoted := strings.CutPrefix(value, `"`)
			if !has || !quoted || !strings.HasSuffix(value, `"`) || len(value) < 2 || out.accessKey != "" {
				return out, errs.Msg(errs.Invalid, "", "access-key", `want access-key="ID"`)
			}
			out.accessKey = value[:len(value)-1]
		case "no-port-forwarding", "no-agent-forwarding", "no-x11-forwarding", "no-user-rc": // so it is for everyone
		default:
			return out, errs.Msg(errs.Unsupported, "", name, "no such option here")
		}
	}
	return out, nil
}
