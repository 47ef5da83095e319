package s3

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// bucketRole is Tigris' way to say what a key may do.
type bucketRole struct {
	Bucket string `json:"bucket"`
	Role   string `json:"role"`
}

// Roles that Tigris knows. NamespaceAdmin, for the bucket "*", makes a root key.
const (
	roleEditor    = "Editor"
	roleReadWrite = "ReadWrite"
	roleReadOnly  = "ReadOnly"
	roleAdmin     = "NamespaceAdmin"
)

// iam answers the calls about keys that Tigris' clients make of their IAM service. They are for root keys: whoever manages
// buckets only gets here, but no further.
func (c *call) iam() error {
	if !c.key.Root {
		return fault.AccessDenied
	}
	data, err := c.readDocument(maxSettings)
	if err != nil {
		return err
	}
	form, err := url.ParseQuery(string(data))
	if err != nil {
		return fault.InvalidArgument.Text("The form is malformed.")
	}
	action := c.q.Get("Action")
	if action == "" {
		action = form.Get("Action")
	}
	switch action {
	case "CreateAccessKeyWithBucketsRole":
		return c.createKey(form.Get("Req"))
	case "UpdateAccessKeyWithBucketsRole":
		return c.updateKey(form.Get("Req"))
	case "ListAccessKeys":
		return c.listKeys(form.Get("KeyId"), form.Get("Marker"), form.Get("MaxItems"))
	case "DeleteAccessKey":
		if err := c.keys.Revoke(c.r.Context(), form.Get("AccessKeyId")); err != nil {
			return keyFault(err)
		}
		return c.sendJSON(http.StatusOK, map[string]string{"status": "success"})
	case "RotateAccessKey":
		key, err := c.keys.Rotate(c.r.Context(), form.Get("AccessKeyId"))
		if err != nil {
			return keyFault(err)
		}
		return c.sendJSON(http.StatusOK, map[string]any{"status": "success",
			"rotate_access_key_result": map[string]string{"id": key.ID, "new_secret": key.Secret}})
	}
	return fault.NotImplemented.Text("AgentRun doesn't have the action "+strconv.Quote(action)+".").With("Action", action)
}

// keyFault translates errors of keys: the caller's own key is in order, so that Unauthorized can't be meant.
func keyFault(err error) error {
	return as(err, errs.NotFound, fault.InvalidAccessKeyId.Coded("NoSuchEntity").Text("There is no such access key."))
}

// grants turns roles into grants of the buckets that bear those names now.
func (c *call) grants(roles []bucketRole) (root bool, grants []access.Grant, err error) {
	for _, r := range roles {
		if r.Bucket == "*" {
			if r.Role != roleAdmin || len(roles) > 1 {
				return false, nil, fault.Argument("buckets_role", r.Role, "The bucket * goes with the role NamespaceAdmin, alone.")
			}
			return true, nil, nil
		}
		g := access.Grant{Name: r.Bucket}
		switch r.Role {
		case roleEditor, roleReadWrite:
			g.Write = true
		case roleReadOnly:
		default:
			return false, nil, fault.Argument("buckets_role", r.Role, "want Editor, ReadWrite or ReadOnly")
		}
		b, err := c.openBucket(r.Bucket)
		if err != nil {
			return false, nil, err
		}
		g.Bucket = b.ID()
		grants = append(grants, g)
	}
	return false, grants, nil
}

func (c *call) createKey(text string) error {
	var req struct {
		Name  string       `json:"name"`
		Roles []bucketRole `json:"buckets_role"`
	}
	if err := json.Unmarshal([]byte(text), &req); err != nil {
		return fault.Argument("Req", "", "The request's JSON document is malformed.")
	}
	root, grants, err := c.grants(req.Roles)
	if err != nil {
		return err
	}
	key, err := c.keys.Create(c.r.Context(), access.NewKey{Name: req.Name, Root: root, Grants: grants, Prefix: "tid_"})
	if err != nil {
		return err
	}
	return c.sendJSON(http.StatusOK, map[string]any{"CreateAccessKeyResult": map[string]any{"AccessKey": map[string]any{
		"AccessKeyId": key.ID, "SecretAccessKey": key.Secret, "UserName": key.Name, "Status": "Active", "CreateDate": key.Created}}})
}

func (c *call) updateKey(text string) error {
	var req struct {
		ID    string       `json:"id"`
		Roles []bucketRole `json:"buckets_role"`
	}
	if err := json.Unmarshal([]byte(text), &req); err != nil {
		return fault.Argument("Req", "", "The request's JSON document is malformed.")
	}
	root, grants, err := c.grants(req.Roles)
	if err != nil {
		return err
	}
	if err := c.keys.SetGrants(c.r.Context(), req.ID, root, grants); err != nil {
		return keyFault(err)
	}
	return c.sendJSON(http.StatusOK, map[string]string{"status": "success"})
}

// keyEntry is a key as Tigris' clients list it.
type keyEntry struct {
	ID        string       `json:"access_key_id"`
	Name      string       `json:"username"`
	Created   time.Time    `json:"created_at"`
	Status    string       `json:"status"`
	Namespace string       `json:"namespace_id"`
	Roles     []bucketRole `json:"buckets_role"`
}

func (c *call) listKeys(id, after, limit string) error {
	most := maxKeys
	if n, err := strconv.Atoi(limit); err == nil && n > 0 {
		most = min(n, maxKeys)
	}
	entries := []keyEntry{}
	marker := ""
	err := c.keys.List(c.r.Context(), func(k *access.Key) error {
		if id != "" && k.ID != id || k.ID <= after {
			return nil
		}
		if len(entries) == most {
			marker = entries[most-1].ID
			return io.EOF
		}
		e := keyEntry{ID: k.ID, Name: k.Name, Created: k.Created, Status: "active", Namespace: c.owner(), Roles: []bucketRole{}}
		if k.Expired(c.o.Now()) {
			e.Status = "inactive"
		}
		if k.Root {
			e.Roles = append(e.Roles, bucketRole{"*", roleAdmin})
		}
		for _, g := range k.Grants {
			role := roleReadOnly
			if g.Write {
				role = roleEditor
			}
			e.Roles = append(e.Roles, bucketRole{g.Name, role})
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil && err != io.EOF {
		return err
	}
	return c.sendJSON(http.StatusOK, map[string]any{"Keys": entries, "IsTruncated": marker != "", "Marker": marker})
}
