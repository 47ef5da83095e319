package envd_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentrun.dev/access"
	"agentrun.dev/control"
	"agentrun.dev/errs"
	"agentrun.dev/serve/e2b/envd"
)

// The SDKs make types of statuses and codes: a full disk isn't a rate limit, in calls neither.
func TestErrorForms(t *testing.T) {
	for _, tc := range []struct {
		kind   errs.Kind
		status int
		code   string
	}{{errs.NoSpace, http.StatusInsufficientStorage, "internal"}, {errs.Limit, http.StatusTooManyRequests, "resource_exhausted"},
		{errs.Denied, http.StatusForbidden, "permission_denied"}, {errs.NotFound, http.StatusBadGateway, "unavailable"}} {
		h := envd.New(envd.Options{Use: func(*http.Request, access.Verb) (*control.Session, error) {
			return nil, errs.Msg(tc.kind, "use", "it", "reason")
		}})
		plain := httptest.NewRecorder()
		h.ServeHTTP(plain, httptest.NewRequest(http.MethodGet, "/files?path=x", nil))
		call, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/filesystem.Filesystem/Stat", strings.NewReader(`{"path":"x"}`))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(call, r)
		if plain.Code != tc.status || !strings.Contains(call.Body.String(), `"code":"`+tc.code+`"`) {
			t.Errorf("%v: %d %s, %d %s", tc.kind, plain.Code, plain.Body, call.Code, call.Body)
		}
	}
}
