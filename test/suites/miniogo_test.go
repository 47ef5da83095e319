package suites

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentrun.dev/test/harness"
)

// TestMinioGo runs minio-go's functional tests, each in a process of its own, against one server. A case passes if it
// ends well and reports no failure and nothing as not available. (Some good ones report nothing at all.)
func TestMinioGo(t *testing.T) {
	s := harness.NewSession(t, harness.Start(t))
	binary := harness.Tool(t, "miniogo")
	for name, value := range map[string]string{"SERVER_ENDPOINT": s.Server.Host(), "ACCESS_KEY": s.Server.AccessKey,
		"SECRET_KEY": s.Server.SecretKey, "ENABLE_HTTPS": "0", "MINT_MODE": "full", "RUN_ON_FAIL": "1"} {
		s.Set(name, value)
	}
	names := strings.Fields(s.Run(binary))
	if len(names) < 100 {
		t.Fatalf("only %d cases", len(names))
	}
	excluded := rules(t, "miniogo.excluded")
	results := map[string]outcome{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	queue := make(chan string)
	for range 3 { // the cases wait much, for clocks and for each other's requests
		wg.Go(func() {
			for name := range queue {
				// An excluded case isn't run: some wait for minutes for what will not come.
				o := outcome{}
				if match(excluded, name) == nil {
					r := s.Exec(binary, name)
					o = read(r)
				}
				mu.Lock()
				results[name] = o
				mu.Unlock()
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(set(names))) {
		queue <- name
	}
	close(queue)
	wg.Wait()
	judge(t, "miniogo", results)
}

func set(names []string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// read judges one case by its log.
func read(r harness.Result) outcome {
	var bad []string
	for sc := bufio.NewScanner(strings.NewReader(r.Stdout)); sc.Scan(); {
		var line struct{ Status, Alert, Message, Error, Function string }
		if json.Unmarshal(sc.Bytes(), &line) != nil {
			continue
		}
		switch line.Status {
		case "PASS", "":
		default:
			bad = append(bad, strings.Join(strings.Fields(fmt.Sprint(line.Status, " ", line.Function, " ", line.Alert, " ", line.Message, " ", line.Error)), " "))
		}
	}
	if r.Exit != 0 {
		bad = append(bad, fmt.Sprintf("exit status %d: %.2000s", r.Exit, r.Stderr))
	}
	return outcome{len(bad) == 0, strings.Join(bad, "; ")}
}
