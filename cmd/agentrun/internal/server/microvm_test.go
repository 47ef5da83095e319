package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentrun.dev/errs"
)

func TestLocalImage(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"python/index.json", "deb:12/index.json", "team/tool.tar", "not-one/readme", "../outside/index.json"} {
		file = filepath.Join(dir, "images", file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir = filepath.Join(dir, "images")
	for ref, want := range map[string]string{
		"":                                      "",
		"python":                                "oci:DIR/python",
		"python:3.12-slim":                      "oci:DIR/python:3.12-slim",
		"docker.io/library/python:3":            "oci:DIR/python:3",
		"deb:12":                                "oci:DIR/deb:12",
		"deb:13":                                "deb:13",
		"team/tool":                             "tar:DIR/team/tool.tar",
		"team/tool:v1":                          "tar:DIR/team/tool.tar:team/tool:v1",
		"not-one":                               "not-one",
		"registry.example:5000/python":          "registry.example:5000/python",
		"../outside":                            "../outside",
		"python/../../outside":                  "python/../../outside",
		"/etc":                                  "/etc",
		"node@sha256:" + strings.Repeat("0", 8): "node@sha256:00000000",
	} {
		got, err := localImage(dir, ref)
		if got = strings.Replace(got, dir, "DIR", 1); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", ref, got, err, want)
		}
	}
	for _, ref := range []string{"oci:" + dir + "/python", "tar:/etc/passwd", "oci:."} {
		if got, err := localImage(dir, ref); !errs.Is(err, errs.Denied) {
			t.Errorf("%s: %s, %v", ref, got, err)
		}
	}
	if got, err := localImage("", "python:3"); got != "python:3" || err != nil {
		t.Errorf("no folder: %s, %v", got, err)
	}
}
