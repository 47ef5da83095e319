package e2b

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
)

// maxUpload bounds the files that one instruction of a recipe copies, packed, in bytes.
const maxUpload = 4 << 30

// linkTime is how long an upload link is good for.
const linkTime = time.Hour

// filesBucket is where the files of a template's builds lie, by their hash.
func filesBucket(template string) string {
	sum := sha256.Sum256([]byte(template))
	return "e2b-files-" + hex.EncodeToString(sum[:8])
}

// isHash holds hashes of files to what the SDKs make.
func isHash(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(s) >= 8 && len(s) <= 128
}

func (h *Handler) store(op string) error {
	if h.Store == nil {
		return errs.Msg(errs.Unsupported, op, "", "this server has no buckets")
	}
	return nil
}

// hasFiles reports whether files were sent already.
func (h *Handler) hasFiles(ctx context.Context, template, hash string) (bool, error) {
	view, err := h.Store.View(ctx, filesBucket(template), 0)
	if errs.Is(err, errs.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer view.Close()
	_, err = view.Get(ctx, hash)
	if errs.Is(err, errs.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// checkFiles sees that all files of a recipe were sent.
func (h *Handler) checkFiles(r *request, template string, hashes map[string]bool) error {
	if err := h.store("start build"); err != nil {
		return err
	}
	for hash := range hashes {
		ok, err := h.hasFiles(r.Context(), template, hash)
		if err != nil {
			return err
		}
		if !ok {
			return errs.Msg(errs.Invalid, "start build", clip(hash), "the files of this hash weren't sent")
		}
	}
	return nil
}

// A link's token is "files", the template, the hash, who was given it, and until when in Unix seconds.

// fileLink answers GET /templates/{id}/files/{hash}: where to send the files, and whether that was done already.
func (h *Handler) fileLink(w http.ResponseWriter, r *request) error {
	const op = "send files"
	if err := h.store(op); err != nil {
		return err
	}
	c, err := readName(r.vars["id"])
	if err != nil {
		return err
	}
	hash := r.vars["hash"]
	if !isHash(hash) {
		return errs.Msg(errs.Invalid, op, clip(hash), "want a hash")
	}
	present, err := h.hasFiles(r.Context(), c.name, hash)
	if err != nil {
		return err
	}
	token := h.tokens.Mint(fmt.Sprintf("files %s %s %s %d", c.name, hash, r.who.Principal.Name, h.Now().Add(linkTime).Unix()))
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	writeJSON(w, http.StatusCreated, map[string]any{"present": present, "url": scheme + "://" + r.Host + "/templates/" + c.name + "/files/" + hash + "?token=" + token})
	return nil
}

// putFiles takes files by a link: a tar archive, perhaps packed by gzip.
func (h *Handler) putFiles(w http.ResponseWriter, r *request) error {
	const op = "send files"
	text, ok := h.tokens.Open(r.URL.Query().Get("token"))
	var template, hash, who string
	var until int64
	if n, err := fmt.Sscanf(text, "files %s %s %s %d", &template, &hash, &who, &until); !ok || err != nil || n != 4 ||
		template != r.vars["id"] || hash != r.vars["hash"] || h.Now().Unix() > until {
		return errs.Msg(errs.Unauthorized, op, "", "the link isn't one of this server's, or is too old")
	}
	caller, err := h.Keys.CallerFor(r.Context(), who, "", r.RemoteAddr, r.id)
	if err != nil {
		return err
	}
	r.who = caller
	if err := h.store(op); err != nil {
		return err
	}
	if r.ContentLength > maxUpload {
		return errs.Msg(errs.TooLarge, op, "", fmt.Sprintf("more than %d bytes", int64(maxUpload)))
	}
	name := filesBucket(template)
	if _, err := h.Store.Create(r.Context(), name, bucket.CreateOptions{}); err != nil && !errs.Is(err, errs.Exists) {
		return err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	p, err := h.Store.Stage(r.Context(), http.MaxBytesReader(w, r.Body, maxUpload), r.ContentLength)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return errs.Msg(errs.TooLarge, op, "", fmt.Sprintf("more than %d bytes", int64(maxUpload)))
	}
	if err != nil {
		return err
	}
	b, err := h.Store.Bucket(r.Context(), name)
	if err == nil {
		_, err = b.Apply(r.Context(), []bucket.Op{{Kind: bucket.OpPut, Key: hash, Object: &bucket.Object{}, Payload: p}}, bucket.ApplyOptions{})
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// dropFiles deletes what was sent for a template that is gone.
func (h *Handler) dropFiles(r *request, template string) {
	if h.Store == nil {
		return
	}
	if err := h.Store.Delete(r.Context(), filesBucket(template), bucket.DeleteOptions{Force: true}); err != nil && !errs.Is(err, errs.NotFound) {
		h.Log.Warn("delete the files of a template", "template", template, "error", err)
	}
}

// level is that of a line of a log, by the kind of event that it tells of.
func level(kind string) string {
	switch kind {
	case api.EventFailed, api.EventBudget:
		return "error"
	case api.EventExpiring:
		return "warn"
	}
	return "info"
}

// trimmed is a text for a line of a log.
func trimmed(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\n", " ")) }
