package rest

import "net/http"

func (s *server) openapi(w http.ResponseWriter, r *request) error {
	return answer(w, r, http.StatusOK, map[string]any{})
}
