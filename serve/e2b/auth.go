package e2b

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// authenticate finds out who asks the control plane, by an API key of either form.
func (h *Handler) authenticate(r *request) error {
	token := r.Header.Get(keyHeader)
	if token == "" {
		scheme, t, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "Bearer") {
			token = t
		}
	}
	if token = strings.TrimSpace(token); token == "" {
		return errs.Msg(errs.Unauthorized, "authenticate", "", "no API key").WithHint("set E2B_API_KEY to what 'agentrun keys create --e2b' prints")
	}
	who, err := h.Guard.Caller(r.Context(), token, r.RemoteAddr, r.id)
	if errs.Is(err, errs.Unauthorized) {
		return errs.Msg(errs.Unauthorized, "authenticate", "", "the API key isn't valid").WithHint("'agentrun keys create --e2b' makes one")
	}
	if err != nil {
		return err
	}
	if who.Principal.Name == "" {
		return errs.Msg(errs.Denied, "authenticate", "", "this key is limited to its buckets").WithHint("use a key of a principal")
	}
	r.who = who
	return nil
}

// An envd token's text is "envd", the sandbox's id, a principal's name and its role, with spaces between: none of them has one.
// A traffic token's is "traffic" and the sandbox's id.

// envdToken is the token by which a caller uses a sandbox. It can't do more than the key that it was told to.
func (h *Handler) envdToken(sandbox string, who *access.Caller) string {
	return h.envdTokenOf(sandbox, who.Principal.Name, who.Principal.Role)
}

func (h *Handler) envdTokenOf(sandbox, principal, role string) string {
	return h.tokens.Mint("envd " + sandbox + " " + principal + " " + role)
}

// trafficToken is the token that the ports of a sandbox ask for, where they aren't open.
func (h *Handler) trafficToken(sandbox string) string { return h.tokens.Mint("traffic " + sandbox) }

// readToken returns whom an envd token is of, and for which sandbox.
func (h *Handler) readToken(token string) (sandbox, principal, role string, ok bool) {
	text, ok := h.tokens.Open(token)
	parts := splitToken(text)
	if !ok || len(parts) != 4 || parts[0] != "envd" {
		return "", "", "", false
	}
	return parts[1], parts[2], parts[3], true
}

// splitToken returns the parts of a token's text.
func splitToken(text string) []string { return strings.Split(text, " ") }

// authorise finds out which sandbox a request is for and as whom it acts there: by an envd token, a signature or an API key, and where
// the sandbox asks for none of these, as the sandbox's owner, who made it so.
func (h *Handler) authorise(r *request) (*api.Sandbox, *access.Caller, error) {
	if token := r.Header.Get(tokenHeader); token != "" {
		return h.byToken(r, token)
	}
	if signature := r.URL.Query().Get("signature"); signature != "" && r.target.port == envdPort && r.URL.Path == "/files" {
		return h.bySignature(r, signature)
	}
	if r.target.sandbox == "" {
		return nil, nil, errs.Msg(errs.Invalid, "find sandbox", clip(r.URL.Path), "the request names no sandbox").
			WithHint("the SDKs send its id as " + sandboxHeader + ", or in the host name")
	}
	sb, err := h.running(r.target.sandbox)
	if err != nil {
		return nil, nil, err
	}
	if r.Header.Get(keyHeader) != "" {
		if err := h.authenticate(r); err != nil {
			return nil, nil, err
		}
		return sb, r.who, nil
	}
	if !h.open(r, sb) {
		return nil, nil, errs.Msg(errs.Unauthorized, "authenticate", "sandbox "+sb.ID, "no access token, or a wrong one")
	}
	who, err := h.Keys.CallerFor(r.Context(), sb.Owner, "", r.RemoteAddr, r.id)
	return sb, who, err
}

// open reports whether a request may do without saying who asks.
func (h *Handler) open(r *request, sb *api.Sandbox) bool {
	o := optionsOf(sb)
	switch {
	case !o.ours: // made by AgentRun's own API, which promises no such thing
		return false
	case r.target.port == envdPort:
		return o.Insecure
	case o.Closed:
		return subtle.ConstantTimeCompare([]byte(r.Header.Get(trafficHeader)), []byte(h.trafficToken(sb.ID))) == 1
	}
	return true
}

func (h *Handler) byToken(r *request, token string) (*api.Sandbox, *access.Caller, error) {
	wrong := errs.Msg(errs.Unauthorized, "authenticate", clip(r.target.sandbox), "no access token, or a wrong one")
	id, principal, role, ok := h.readToken(token)
	if !ok {
		return nil, nil, wrong
	}
	name := r.target.sandbox
	if name == "" {
		name = id
	}
	sb, err := h.running(name)
	if err != nil {
		return nil, nil, err
	}
	if sb.ID != id {
		return nil, nil, wrong
	}
	who, err := h.Keys.CallerFor(r.Context(), principal, role, r.RemoteAddr, r.id)
	return sb, who, err
}

// signatureSize is the length of "v1_" and the Base64 of an SHA-256, without padding.
const signatureSize = 3 + 43

// bySignature finds who made a URL: one of those who have tokens for the sandbox that it names, or for any, where it names none.
func (h *Handler) bySignature(r *request, signature string) (*api.Sandbox, *access.Caller, error) {
	// E2B's words, as they are: programs compare them.
	q := r.URL.Query()
	operation, expires := "read", q.Get("signature_expiration")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		operation = "write"
	}
	if expires != "" {
		at, err := strconv.ParseInt(expires, 10, 64)
		if err != nil || at < h.Now().Unix() {
			return nil, nil, errs.Msg(errs.Unauthorized, "", "", "signature is already expired")
		}
	}
	signature = strings.TrimRight(signature, "=")
	if len(signature) != signatureSize {
		return nil, nil, errs.Msg(errs.Unauthorized, "", "", "invalid signature")
	}
	begin := q.Get("path") + ":" + operation + ":" + q.Get("username") + ":"
	fits := func(sb *api.Sandbox, who *api.Principal) bool {
		text := begin + h.envdTokenOf(sb.ID, who.Name, who.Role)
		if expires != "" {
			text += ":" + expires
		}
		sum := sha256.Sum256([]byte(text))
		want := "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
		return subtle.ConstantTimeCompare([]byte(signature), []byte(want)) == 1
	}
	sb, who, err := h.signer(r, fits)
	if err != nil {
		return nil, nil, err
	}
	if sb == nil {
		return nil, nil, errs.Msg(errs.Unauthorized, "", "", "invalid signature")
	}
	c, err := h.Keys.CallerFor(r.Context(), who.Name, who.Role, r.RemoteAddr, r.id)
	return sb, c, err
}

// signer finds the sandbox and the principal that fit, or nil.
func (h *Handler) signer(r *request, fits func(*api.Sandbox, *api.Principal) bool) (*api.Sandbox, *api.Principal, error) {
	var list []*api.Sandbox
	if r.target.sandbox != "" {
		sb, err := h.running(r.target.sandbox)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, sb)
	} else {
		list = h.Control.Glances(func(sb *api.Sandbox) bool { return made(sb) })
	}
	// A token has its principal's role, or where a key was limited, a lesser one, which is looked for last.
	for _, limited := range []bool{false, true} {
		for _, sb := range list {
			for _, name := range h.holders(sb) {
				p, err := h.Keys.Principal(r.Context(), name)
				if err != nil {
					continue // gone, and its tokens with it
				}
				roles := []string{p.Role}
				if limited {
					roles = []string{api.RoleAdmin, api.RoleOperator, api.RoleUser, api.RoleViewer}
				}
				for _, role := range roles {
					who := &api.Principal{Name: name, Role: role}
					if fits(sb, who) {
						return sb, who, nil
					}
				}
			}
		}
	}
	return nil, nil, nil
}

// holders are those who may have been told tokens for a sandbox.
func (h *Handler) holders(sb *api.Sandbox) []string {
	return append([]string{sb.Owner}, optionsOf(sb).Guests...)
}

// running finds a sandbox that hasn't ended, for whoever asks.
func (h *Handler) running(id string) (*api.Sandbox, error) {
	sb := h.Control.Glance(id)
	if sb == nil {
		return nil, errs.Msg(errs.NotFound, "find sandbox", clip(id), "The sandbox was not found")
	}
	return sb, nil
}

type insideKey struct{}

// use is Use for what answers inside of a sandbox.
func (h *Handler) use(hr *http.Request, verb access.Verb) (*control.Session, error) {
	r, ok := hr.Context().Value(insideKey{}).(*request)
	if !ok || r.who == nil || r.sandbox == "" {
		return nil, errs.Msg(errs.Unauthorized, "use sandbox", "", "nobody asks")
	}
	return h.Control.Use(hr.Context(), r.who, r.sandbox, verb)
}

// serveInside hands a request on to what answers inside of its sandbox.
func (h *Handler) serveInside(w http.ResponseWriter, r *request) error {
	next := h.ports
	switch r.target.port {
	case envdPort:
		next = h.envd
	case interpreterPort:
		next = h.interpreter
	default:
		if sb := h.Control.Glance(r.target.sandbox); r.target.byHost && (sb == nil || !made(sb)) {
			h.Next.ServeHTTP(w, r.Request) // AgentRun's own way to ports, which asks for a key
			return nil
		}
	}
	if r.target.port == envdPort && r.URL.Path == "/health" {
		return h.health(w, r)
	}
	sb, who, err := h.authorise(r)
	if err != nil {
		return err
	}
	r.who, r.sandbox = who, sb.ID
	if asleep(sb) && !optionsOf(sb).resumes() {
		return errs.Msg(errs.NotFound, "use sandbox", sb.ID, "the sandbox is paused").WithHint("connect to it, or create it with autoResume")
	}
	if next == nil {
		return errs.Msg(errs.Unsupported, "connect", "", "nothing answers at port "+strconv.Itoa(r.target.port))
	}
	if asleep(sb) && made(sb) {
		// It wakes for five minutes at least, as E2B has it. Who may not change it wakes it by its use, for the time that it was made for.
		if err := h.extend(r, sb.ID, defaultTimeout); err != nil && !errs.Is(err, errs.Denied) {
			return err
		}
	}
	ctx, done := h.active.begin(r.Context(), sb.ID)
	defer done()
	hr := r.Request.WithContext(context.WithValue(ctx, insideKey{}, r))
	if r.target.port != envdPort && r.target.port != interpreterPort {
		hr = h.asPort(hr, r.target, sb.ID)
	}
	r.inside = true
	next.ServeHTTP(w, hr)
	return nil
}

// health answers whether a sandbox runs, to anybody, and doesn't count as a use.
func (h *Handler) health(w http.ResponseWriter, r *request) error {
	if r.target.sandbox == "" {
		return errs.Msg(errs.Invalid, "find sandbox", "", "the request names no sandbox")
	}
	sb, err := h.running(r.target.sandbox)
	if err != nil {
		return err
	}
	if asleep(sb) {
		return errs.Msg(errs.NotFound, "use sandbox", sb.ID, "the sandbox is paused")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// asPort makes a request one that the proxy finds by its host name, without what is between the client and this service.
func (h *Handler) asPort(r *http.Request, t target, sandbox string) *http.Request {
	out := r.Clone(r.Context())
	for _, name := range []string{sandboxHeader, portHeader, tokenHeader, trafficHeader} {
		out.Header.Del(name)
	}
	if v := r.Header.Values("Authorization"); len(v) > 0 {
		out.Header["X-Sandbox-Authorization"] = v // for the server inside: E2B has none of its own there
	}
	if !t.byHost {
		out.Host = strconv.Itoa(t.port) + "-" + sandbox + "." + h.portHost()
	}
	return out
}

// portHost is the host beneath which the proxy finds ports.
func (h *Handler) portHost() string {
	if h.host == "" {
		return "sandboxes.invalid"
	}
	return h.host
}

// asleep reports whether a sandbox is paused, or about to be.
func asleep(sb *api.Sandbox) bool {
	return sb.State == api.StateHibernated || sb.State == api.StateHibernating
}
