package datetime

import (
	"time"

	"agentrun.dev/proc"
)

// Location finds the time zone that a TZ variable names, see proc.Zone.
func Location(tz string, read func(path string) ([]byte, error)) *time.Location {
	return proc.Zone(tz, read)
}
