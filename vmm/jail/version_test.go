package jail_test

import (
	"strings"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/jail"
)

// A program that was built at another time is told from one that is broken.
func TestAnotherVersion(t *testing.T) {
	for said, want := range map[string]string{
		`{"Op":"ready"}`:                            "without versions",
		`{"Op":"ready","Version":"0-12345678"}`:     "0-12345678",
		`{"Op":"ready","Version":"7","Failed":{}}`:  `"7"`,
		`{"Op":"ready","Version":"7","Setup":true}`: "", // not even that can be read
	} {
		o := options(nil, 0)
		o.Args = []string{"be-another-vmm", said}
		p, err := jail.Start(limit(t), o)
		if err == nil {
			p.Close()
		}
		switch {
		case want == "":
			if !errs.Is(err, errs.Invalid) && !errs.Is(err, errs.Unavailable) {
				t.Errorf("%s: %v", said, err)
			}
		case !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), want) || !strings.Contains(errs.HintOf(err), "make build"):
			t.Errorf("%s: %v (%v, %q)", said, err, errs.KindOf(err), errs.HintOf(err))
		}
	}
}
