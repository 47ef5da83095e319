package harness

import (
	"path/filepath"
	"testing"
)

// Environ returns the caller's environment without anything that configures a cloud client, for a user whose home folder
// this is.
func Environ(home string) []string { return clean(home, filepath.Join(home, ".config")) }

// ClientEnv returns the environment of a program whose home folder this is, of the user who started the server.
func (s *Server) ClientEnv(home string) []string {
	env := clean(home, s.config)
	if s.ca != "" {
		env = append(env, "AGENTRUN_CA_CERT="+s.ca)
	}
	return env
}

// FreePort returns a loopback address, host and port, that nothing listens on.
func FreePort(t testing.TB) string { return freePort(t) }
