package e2b

import "net/http"

// crossOrigin lets pages of any origin use the SDKs, as E2B's servers do, and answers what a browser asks before: nothing here goes by
// cookies, so that a page can do only what it has a key or a token for. The servers in sandboxes speak for themselves.
func (h *Handler) crossOrigin(w http.ResponseWriter, r *request) (answered bool) {
	own := r.target.kind == within && r.target.port != envdPort && r.target.port != interpreterPort
	if r.Header.Get("Origin") == "" || own {
		return false
	}
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Access-Control-Expose-Headers", "X-Next-Token, X-Total-Running, X-Request-Id, Location, Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	head.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" && len(asked) < 2048 {
		head.Set("Access-Control-Allow-Headers", asked)
	}
	head.Set("Access-Control-Max-Age", "7200")
	head.Add("Vary", "Access-Control-Request-Headers")
	w.WriteHeader(http.StatusNoContent)
	return true
}
