package sqlite_test

import (
	"testing"

	"agentrun.dev/command/commandtest"
)

// BenchmarkStart is a whole run of the command on a database in memory, a fresh sandbox included.
func BenchmarkStart(b *testing.B) {
	table := commandtest.Table{}
	b.ReportAllocs()
	for b.Loop() {
		table.Sandbox(b, commands, []string{"sqlite3", ":memory:", "select 1"}, "")
	}
}
