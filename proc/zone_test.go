package proc

import (
	"io/fs"
	"testing"
	"time"
)

func TestZone(t *testing.T) {
	at := time.Date(2024, 7, 1, 12, 0, 0, 0, time.UTC)
	for tz, want := range map[string]string{"": "12:00 UTC", "UTC0": "12:00 UTC", "EST5EDT": "08:00 EDT", "JST-9": "21:00 JST", "<+03>-3": "15:00 +03",
		"CET-1CEST,M3.5.0,M10.5.0/3": "14:00 CEST", "../etc/passwd": "12:00 UTC", "Nope/Nope": "12:00 Nope"} {
		if got := at.In(Zone(tz, nil)).Format("15:04 MST"); got != want {
			t.Errorf("%q: got %s, want %s", tz, got, want)
		}
	}
}

// The zones are the sandbox's own, then those of the program, whatever the host has.
func TestZoneOfSandbox(t *testing.T) {
	at := time.Date(2024, 7, 1, 12, 0, 0, 0, time.UTC)
	files := map[string][]byte{
		"/usr/share/zoneinfo/Europe/Berlin":    tzif("LMT", 3600, "CET-1CEST,M3.5.0,M10.5.0/3"),
		"/usr/share/zoneinfo/America/New_York": tzif("ODD", -7200, "ODD2"), // unlike the real one
		"/usr/share/zoneinfo/Bad/Zone":         []byte("TZif2 nonsense"),
	}
	read := func(path string) ([]byte, error) {
		if b, ok := files[path]; ok {
			return b, nil
		}
		return nil, fs.ErrNotExist
	}
	for tz, want := range map[string]string{"Europe/Berlin": "14:00 CEST", ":Europe/Berlin": "14:00 CEST", "America/New_York": "10:00 ODD", "Bad/Zone": "12:00 Bad", "Europe/Paris": "14:00 CEST",
		"Asia/Tokyo": "21:00 JST", "/usr/share/zoneinfo/Europe/Paris": "12:00 UTC", "Local": "12:00 Local", "EST5EDT,M3.2.0,M11.1.0": "08:00 EDT"} {
		if got := at.In(Zone(tz, read)).Format("15:04 MST"); got != want {
			t.Errorf("%q: got %s, want %s", tz, got, want)
		}
	}
}
